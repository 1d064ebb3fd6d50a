"""A JPEG's header, read and mended without decoding.

Markers after ITU-T T.81, Annex B; the Adobe segment after T.872, 6.5.3; profiles in segments after
ICC.1:2022, B.4; the orientation tag after Exif 2.32, 4.6.4.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import NamedTuple

from dataprep.errors import CorruptImage, UnsupportedImage

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
_METADATA = frozenset({0xE0, 0xE1, 0xE2, APP14})
_LARGEST_SIDE = 65_500  # JPEG_MAX_DIMENSION of libjpeg
_HEAD = struct.Struct(">BBH")
NEXT_MARKER = re.compile(rb"\xff[\x02-\xcf\xd9-\xfe]")
"""One with a length, or the end: behind fill bytes, pixels, and what libjpeg skips."""
_ICC = b"ICC_PROFILE\0"
_ICC_PART_BYTES = 12 + 2  # name, number and total
_ICC_HEADER_BYTES = 2 + 2 + 12 + 2  # marker, length, name, number and total
_ICC_CHUNK_BYTES = 65_519  # 65,535 less the length's own two, the name's twelve and two numbers
_ORIENTATION = 0x0112
_TIFF_SIZES = {1: 1, 3: 2, 4: 4}  # BYTE, SHORT, LONG: files use all three for this tag
_SIGNED_SIZES = {6: 1, 8: 2, 9: 4}

# How the components are sampled: one byte each, across and down (T.81, B.2.2).
_SUBSAMPLING = {
    b"\x11\x11\x11": "444",
    b"\x21\x11\x11": "422",
    b"\x22\x11\x11": "420",
    b"\x12\x11\x11": "440",
    b"\x41\x11\x11": "411",
}
# Other samplings that TurboJPEG takes: the same as above in other numbers, and those of four.
_ALSO_USUAL = frozenset(
    {b"\x22\x12\x12", b"\x22\x21\x21"}
    | {bytes([same] * 3) for same in (0x12, 0x13, 0x21, 0x31)}
    | {bytes([ink, 0x11, 0x11, ink]) for ink in (0x11, 0x12, 0x21, 0x22, 0x41)}
    | {bytes([same] * 4) for same in (0x12, 0x21)}
)


class OrientationTag(NamedTuple):
    """One orientation entry: its value and where its bytes stand in the file."""

    value: int
    offset: int
    size: int
    big_endian: bool


class IccChunk(NamedTuple):
    """A part of a profile: its number from 1, how many there are, and where its bytes stand."""

    number: int
    total: int
    start: int
    end: int


class JpegHeader(NamedTuple):
    """What the segments before the first scan say. Sizes in pixels, as stored.

    ``channels`` are components a pixel: 1, 3 or 4. ``orientation`` is Exif's, 1 to 8; 1 where there
    is none or none that is valid. ``subsampling`` is such as ``420``, empty where it has no such
    name. ``usual`` says whether TurboJPEG takes the sampling; libjpeg itself, which most decoders
    use, takes almost any. ``frame`` is the marker of its frame; ``components`` are their names and
    ``sampling`` their factors, a byte each. ``several_scans`` says whether the first scan, whose
    parameters lie from ``scan_start`` to ``scan_offset``, leaves anything to others.
    """

    width: int
    height: int
    channels: int
    colorspace: str
    orientation: int
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


class _Metadata:
    """What the application segments of a header say."""

    def __init__(self) -> None:
        self.jfif = False
        self.adobe: int | None = None
        self.orientation = 1
        self.tags: list[OrientationTag] = []
        self.chunks: list[IccChunk] = []

    def read(self, data: bytes, marker: int, start: int, end: int) -> None:
        """Read one of them."""
        if marker == 0xE0 and data.startswith(b"JFIF\0", start):
            self.jfif = True
        elif marker == 0xE1 and data.startswith(b"Exif\0\0", start):
            self.tags += _orientation_tags(data, start + 6, end)
            valid = [tag.value for tag in self.tags if 1 <= tag.value <= 8]
            self.orientation = valid[0] if valid else 1
        elif marker == 0xE2 and data.startswith(_ICC, start) and end - start >= _ICC_PART_BYTES:
            part = start + _ICC_PART_BYTES
            self.chunks.append(IccChunk(data[start + 12], data[start + 13], part, end))
        elif marker == APP14 and data.startswith(ADOBE, start) and end - start >= 12:
            self.adobe = data[start + ADOBE_TRANSFORM]


def read_header(data: bytes) -> JpegHeader:
    """Walk the segments up to the first scan.

    Raises:
        CorruptImage: the segments end early or do not follow each other.
        UnsupportedImage: lossless, hierarchical or not 8 bits a sample.
    """
    frame = -1
    width = height = 0
    components = sampling = b""
    found = _Metadata()
    size, start, end, marker = len(data), 0, len(SOI), 0
    while marker != SOS:  # as in ``segments``, without a generator's step for each
        start = end + _HEAD.size
        if start <= size:
            first, marker, length = _HEAD.unpack_from(data, end)
            end += 2 + length
        if start > end or end > size or first != 0xFF or marker not in _MEASURED:
            marker, start, end = _segment(data, start - _HEAD.size)
        if marker in _SOF:
            frame = marker
            width, height, components, sampling = _frame(marker, data[start:end])
        elif marker in _METADATA:
            found.read(data, marker, start, end)
    if frame < 0:
        raise CorruptImage("corrupt JPEG: the first scan comes before the frame header")
    count = len(components)
    return JpegHeader(
        width=width,
        height=height,
        channels=count,
        colorspace=_colorspace(components, found.jfif, found.adobe),
        orientation=found.orientation,
        orientations=tuple(found.tags),
        icc_chunks=tuple(found.chunks),
        subsampling=_SUBSAMPLING.get(sampling, ""),
        usual=count == 1 or sampling in _SUBSAMPLING or sampling in _ALSO_USUAL,
        frame=frame,
        components=components,
        sampling=sampling,
        several_scans=frame in PROGRESSIVE or data[start : start + 1] != bytes([count]),
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
    parts = []
    for number, chunk in enumerate(chunks, 1):
        if chunk[:2] != (number, len(chunks)):
            return b""
        parts.append(data[chunk.start : chunk.end])
    return b"".join(parts)


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
    end, marker = len(SOI), 0
    while marker != SOS:
        segment = _segment(data, end)
        marker, _, end = segment
        yield segment


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


def _frame(marker: int, payload: bytes) -> tuple[int, int, bytes, bytes]:
    """Width and height, and the names and samplings of the components."""
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
    return width, height, payload[6:end:3], payload[7:end:3]


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


def _orientation_tags(data: bytes, tiff: int, end: int) -> list[OrientationTag]:
    """Orientation entries in the first directory of the TIFF structure at ``tiff``."""
    order = data[tiff : tiff + 4]
    if order not in (b"II*\0", b"MM\0*"):
        return []
    big = order.startswith(b"M")

    def number(offset: int, size: int) -> int:
        return int.from_bytes(data[offset : offset + size], "big" if big else "little")

    directory = tiff + number(tiff + 4, 4)
    if directory + 2 > end:
        return []
    count = min(number(directory, 2), (end - directory - 2) // 12)
    found = []
    for entry in range(directory + 2, directory + 2 + 12 * count, 12):
        if number(entry, 2) != _ORIENTATION:
            continue
        kind, one = number(entry + 2, 2), number(entry + 4, 4) == 1
        size = _TIFF_SIZES.get(kind) or _SIGNED_SIZES.get(kind)
        value = number(entry + 8, size) if size else 0
        # Some decoders follow a tag of a wrong type or count too.
        if size and (1 <= value <= 8 or (one and kind in _TIFF_SIZES)):
            found.append(OrientationTag(value, entry + 8, size, big))
    return found
