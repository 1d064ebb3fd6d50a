"""A JPEG's header, read and mended without decoding.

Markers after ITU-T T.81, Annex B; the Adobe segment after T.872, 6.5.3; profiles in segments after
ICC.1:2022, B.4.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from itertools import starmap
from typing import NamedTuple

from dataprep.errors import CorruptImage, UnsupportedImage
from dataprep.image import sampling
from dataprep.image.orientation import OrientationTag, orientation_tags

SOI = b"\xff\xd8"
EOI = b"\xff\xd9"
SOS = 0xDA
APP14 = 0xEE
ADOBE = b"Adobe"
ADOBE_TRANSFORM = 11  # where the colour transform stands in Adobe's segment
_SOF = frozenset({0xC0, 0xC1, 0xC2, 0xC3, 0xC5, 0xC6, 0xC7, 0xC9, 0xCA, 0xCB, 0xCD, 0xCE, 0xCF})
_DECODABLE_SOF = frozenset({0xC0, 0xC1, 0xC2, 0xC9, 0xCA})  # Huffman or arithmetic, not lossless
PROGRESSIVE = frozenset({0xC2, 0xCA})
ARITHMETIC = frozenset({0xC9, 0xCA})
_STANDALONE = frozenset({0x01, *range(0xD0, 0xD9)})
_MEASURED = frozenset(range(0xC0, 0xFF)) - _STANDALONE - {0xD8, 0xD9}  # a length follows
_READ = _SOF | {0xE0, 0xE1, 0xE2, APP14}
_LARGEST_SIDE = 65_500  # JPEG_MAX_DIMENSION of libjpeg
_HEAD = struct.Struct(">BBH")
NEXT_MARKER = re.compile(rb"\xff[\x02-\xcf\xd9-\xfe]")
"""One with a length, or the end: behind fill bytes, pixels, and what libjpeg skips."""
_ICC = b"ICC_PROFILE\0"
_ICC_PART_BYTES = 12 + 2  # name, number and total
_ICC_HEADER_BYTES = 2 + 2 + 12 + 2  # marker, length, name, number and total
_ICC_CHUNK_BYTES = 65_519  # 65,535 less the length's own two, the name's twelve and two numbers


class IccChunk(NamedTuple):
    """A part of a profile: its number from 1, how many there are, and where its bytes stand."""

    number: int
    total: int
    start: int
    end: int


class JpegHeader(NamedTuple):
    """What the segments before the first scan say. Sizes in pixels, as stored.

    ``subsampling`` is such as ``420``, empty where it has no such name. ``usual`` says whether
    TurboJPEG takes the sampling; libjpeg itself, which most decoders use, takes almost any.
    ``frame`` is the marker of its frame; ``components`` are their names and ``sampling`` their
    factors, a byte each. ``several_scans`` says whether the first scan, whose parameters lie from
    ``scan_start`` to ``scan_offset``, leaves anything to others.
    """

    width: int
    height: int
    colorspace: str
    orientations: tuple[OrientationTag, ...]
    icc_chunks: tuple[IccChunk, ...]
    subsampling: str
    usual: bool
    frame: int
    components: bytes
    sampling: bytes
    several_scans: bool
    scan_start: int
    scan_offset: int

    @property
    def channels(self) -> int:
        """Components a pixel: 1, 3 or 4."""
        return {"Grayscale": 1, "CMYK": 4, "YCCK": 4}.get(self.colorspace, 3)

    @property
    def orientation(self) -> int:
        """The Exif orientation, 1 to 8; 1 where there is none or none that is valid."""
        for tag in self.orientations:
            if 1 <= tag.value <= 8:
                return tag.value
        return 1


def read_header(data: bytes) -> JpegHeader:
    """Walk the segments up to the first scan.

    Raises:
        CorruptImage: the segments end early or do not follow each other.
        UnsupportedImage: lossless, hierarchical or not 8 bits a sample.
    """
    frame: _Frame | None = None
    adobe: int | None = None
    jfif = False
    chunks: list[IccChunk] = []
    orientations: list[OrientationTag] = []
    start = end = 0
    for marker, start, end in _walked(data):
        if marker not in _READ:
            continue
        if marker in _SOF:
            frame = _frame(marker, data[start:end])
        elif marker == 0xE0 and data.startswith(b"JFIF\0", start):
            jfif = True
        elif marker == 0xE1 and data.startswith(b"Exif\0\0", start):
            orientations.extend(orientation_tags(data, start + 6, end))
        elif marker == 0xE2 and data.startswith(_ICC, start) and end - start >= _ICC_PART_BYTES:
            first = start + _ICC_PART_BYTES
            chunks.append(IccChunk(data[start + 12], data[start + 13], first, end))
        elif marker == APP14 and data.startswith(ADOBE, start) and end - start >= 12:
            adobe = data[start + ADOBE_TRANSFORM]
    if frame is None:
        raise CorruptImage("corrupt JPEG: the first scan comes before the frame header")
    return JpegHeader(
        width=frame.width,
        height=frame.height,
        colorspace=_colorspace(frame.components, jfif, adobe),
        orientations=tuple(orientations),
        icc_chunks=tuple(chunks),
        subsampling=sampling.name(frame.sampling),
        usual=sampling.is_usual(frame.sampling),
        frame=frame.marker,
        components=frame.components,
        sampling=frame.sampling,
        several_scans=frame.marker in PROGRESSIVE or data[start : start + 1] != frame.number,
        scan_start=start,
        scan_offset=end,
    )


def ends(data: bytes, header: JpegHeader) -> bool:
    """Whether an end-of-image marker follows the first scan: a cheap test for truncation."""
    return data.rfind(EOI, header.scan_offset) >= 0


def reset_orientation(data: bytes, header: JpegHeader) -> bytes:
    """The same file with every orientation tag set to 1 and no other byte changed."""
    mended = bytearray(data)
    for tag in header.orientations:
        one = (1).to_bytes(tag.size, "big" if tag.big_endian else "little")
        mended[tag.offset : tag.offset + tag.size] = one
    return bytes(mended)


def is_short_profile(data: bytes | bytearray, marker: int, start: int, end: int) -> bool:
    """Whether a segment is a part of a profile without its number and total."""
    return marker == 0xE2 and data.startswith(_ICC, start) and end - start < _ICC_PART_BYTES


def profile(data: bytes, header: JpegHeader) -> bytes | None:
    """The ICC profile, put together from its parts.

    None where there is none; empty where a part is missing or stands twice.
    """
    if not header.icc_chunks:
        return None
    chunks = sorted(header.icc_chunks)
    total = chunks[0].total
    if [chunk[:2] for chunk in chunks] != [(number, total) for number in range(1, total + 1)]:
        return b""
    return b"".join(data[chunk.start : chunk.end] for chunk in chunks)


def with_profile(data: bytes, profile: bytes) -> bytes:
    """The same JPEG with an ICC profile, behind its JFIF segment where it has one."""
    parts = range(0, len(profile), _ICC_CHUNK_BYTES)
    segments = []
    for number, start in enumerate(parts, 1):
        payload = _ICC + bytes([number, len(parts)]) + profile[start : start + _ICC_CHUNK_BYTES]
        segments.append(b"\xff\xe2" + (2 + len(payload)).to_bytes(2, "big") + payload)
    at = 2
    if data.startswith(b"\xff\xe0", at):
        at += 2 + int.from_bytes(data[4:6], "big")
    return b"".join([data[:at], *segments, data[at:]])


def without_profile(data: bytes, header: JpegHeader) -> bytes:
    """The same JPEG without the segments of its ICC profile."""
    parts, at = [], 0
    for chunk in sorted(header.icc_chunks, key=lambda chunk: chunk.start):
        parts.append(data[at : chunk.start - _ICC_HEADER_BYTES])
        at = chunk.end
    return b"".join([*parts, data[at:]])


class Segment(NamedTuple):
    """A marker's code, and where the payload behind its length begins and ends."""

    marker: int
    start: int
    end: int


def segments(data: bytes | bytearray) -> Iterator[Segment]:
    """The segments up to the first scan's, which is the last.

    Raises:
        CorruptImage: they end early.
    """
    return starmap(Segment, _walked(data))


def _walked(data: bytes | bytearray) -> Iterator[tuple[int, int, int]]:
    """As ``segments``. One follows the other in all but a few files: that is made short work of."""
    size, end, marker = len(data), len(SOI), 0
    while marker != SOS:
        start = end + _HEAD.size
        if start <= size:
            first, marker, length = _HEAD.unpack_from(data, end)
            end += 2 + length
        if start > end or end > size or first != 0xFF or marker not in _MEASURED:
            marker, start, end = _segment(data, start - _HEAD.size)
        yield marker, start, end


def _segment(data: bytes | bytearray, position: int) -> Segment:
    """The segment at ``position``, or behind what libjpeg skips there."""
    found = NEXT_MARKER.search(data, position)
    if found is None:
        raise CorruptImage("truncated JPEG: it ends before its first scan")
    marker, position = data[found.start() + 1], found.end()
    if marker == 0xD9:
        raise CorruptImage("corrupt JPEG: it ends before its first scan")
    length = int.from_bytes(data[position : position + 2], "big")
    if length < 2 or position + length > len(data):
        raise CorruptImage("truncated JPEG: a header segment runs past the end of the file")
    return Segment(marker, position + 2, position + length)


class _Frame(NamedTuple):
    """``components`` and ``sampling`` are one byte each for a component, ``number`` is theirs."""

    marker: int
    width: int
    height: int
    number: bytes
    components: bytes
    sampling: bytes


def _frame(marker: int, payload: bytes) -> _Frame:
    if len(payload) < 6 or len(payload) < 6 + 3 * payload[5]:
        raise CorruptImage("corrupt JPEG: its frame header is too short")
    if marker not in _DECODABLE_SOF:
        raise UnsupportedImage(f"lossless or hierarchical JPEG (frame type 0x{marker:02X})")
    if payload[0] != 8:
        raise UnsupportedImage(f"JPEG with {payload[0]} bits a sample; 8 are supported")
    height, width = int.from_bytes(payload[1:3], "big"), int.from_bytes(payload[3:5], "big")
    if not height or not width:
        raise UnsupportedImage(f"JPEG of {width} x {height} pixels")
    if max(width, height) > _LARGEST_SIDE:
        raise UnsupportedImage(
            f"JPEG of {width} x {height} pixels; libjpeg decodes at most {_LARGEST_SIDE:,} a side"
        )
    end = 6 + 3 * payload[5]
    components, sampled = payload[6:end:3], payload[7:end:3]
    return _Frame(marker, width, height, payload[5:6], components, sampled)


def _colorspace(components: bytes, jfif: bool, adobe: int | None) -> str:
    """The stored colour space, by the rules libjpeg follows."""
    match len(components):
        case 1:
            return "Grayscale"
        case 3:
            if jfif:
                return "YCbCr"
            if adobe is not None:
                return "RGB" if adobe == 0 else "YCbCr"
            return "RGB" if components == b"RGB" else "YCbCr"
        case 4:
            return "CMYK" if adobe in (None, 0) else "YCCK"
        case count:
            raise UnsupportedImage(f"JPEG with {count} components")
