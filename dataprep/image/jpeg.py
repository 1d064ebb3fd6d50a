"""Read, repair and decode JPEGs.

Markers after ITU-T T.81, Annex B; profiles in segments after ICC.1:2022, B.4; the orientation tag
after Exif 2.32, 4.6.4. libjpeg-turbo decodes, and every warning that it gives is read here: most of
them mean lost pixels.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

import simplejpeg

from dataprep.errors import CorruptImage, ImageTooLarge, UnsupportedImage
from dataprep.image.geometry import Pixels
from dataprep.image.policy import Notes

SOI = b"\xff\xd8"
EOI = b"\xff\xd9"
_SCAN = b"\xff\xda\0"  # a scan's marker, and the high byte of its length
_SOS = 0xDA
_APP1, _APP2 = 0xE1, 0xE2
_METADATA = frozenset({_APP1, _APP2})
_SOF = frozenset({0xC0, 0xC1, 0xC2, 0xC9, 0xCA})  # Huffman or arithmetic
_UNSUPPORTED_SOF = frozenset({0xC3, 0xC5, 0xC6, 0xC7, 0xCB, 0xCD, 0xCE, 0xCF})
_MEASURED = frozenset({*range(0xC0, 0xD0), *range(0xDA, 0xFF)})  # a length follows
_HEAD = struct.Struct(">BBH")
# A marker with a length, or the end: fill bytes and whatever libjpeg skips are passed over.
_NEXT_MARKER = re.compile(rb"\xff[\x02-\xcf\xd9-\xfe]")
_CHANNELS = {"Gray": 1, "YCbCr": 3, "RGB": 3, "CMYK": 4, "YCCK": 4}
_ICC = b"ICC_PROFILE\0"
_ICC_HEADER_BYTES = 12 + 2  # name, number and total
_ICC_PART_BYTES = 65_519  # 65,535 less the length's own two, the name's twelve and two numbers
_BYTE_ORDERS = {b"II*\0": "<", b"MM\0*": ">"}
_ORIENTATION = 0x0112
# Files use all of TIFF's integer types for this tag.
_INTEGER_BYTES = {1: 1, 3: 2, 4: 4, 6: 1, 8: 2, 9: 4}

_MOST_SCANNED_PIXELS = 10**9  # pixels times scans: a few seconds of work
_FEW_SCANS = 24  # allowed at any size: libjpeg itself writes up to 18

_PROFILE_WARNING = "bad ICC marker"
_SCAN_PARAMETERS = "Invalid SOS parameters for sequential"
_HARMLESS = re.compile(rf"{_PROFILE_WARNING}|{_SCAN_PARAMETERS}|extraneous bytes before marker")
_STRAY_END = re.compile(r"(\d+) extraneous bytes before marker 0xd9")
_SEQUENTIAL = b"\x00\x3f\x00"  # T.81, table B.3: all 64 coefficients at once, in full
# The file ends early, or its pixels do before an end marker.
_ENDS_EARLY = "remature end of"
_FILLED = 128  # what libjpeg puts where it has no data
_LEAST_SHARE = 0.01


Orientations: TypeAlias = list[tuple[int, int]]
"""The value of each orientation tag, and the offset of the byte that has it."""


class UnreadHeader(UnsupportedImage):
    """TurboJPEG does not take the JPEG: it is broken, or its colours are sampled unusually."""


class JpegHeader(NamedTuple):
    """What the segments before the first scan say. Sizes in pixels, as stored.

    ``channels`` are components a pixel: 1, 3 or 4. ``orientation`` is Exif's, 1 to 8; 1 where there
    is none that is valid. ``orientations`` are the values from 0 to 8 of all such tags, each with
    the offset of the byte that has it. ``profile`` is the ICC profile: None where there is none,
    empty where a part is missing or comes twice. ``subsampling`` is such as ``420``.
    ``several_scans`` says whether the first scan, whose pixels begin at ``scan_offset``, leaves
    anything to others.
    """

    width: int
    height: int
    channels: int
    colorspace: str
    orientation: int
    orientations: tuple[tuple[int, int], ...]
    profile: bytes | None
    subsampling: str
    several_scans: bool
    scan_offset: int


def read_header(data: bytes) -> JpegHeader:
    """Walk the segments up to the first scan.

    Raises:
        CorruptImage: the segments end early or do not follow each other.
        UnsupportedImage: lossless, hierarchical or not 8 bits a sample.
        UnreadHeader: TurboJPEG does not take it.
    """
    metadata = []
    size, start, end, marker = len(data), 0, len(SOI), 0
    while marker != _SOS:  # as in ``segments``, without a generator's step for each
        start = end + _HEAD.size
        if start <= size:
            first, marker, length = _HEAD.unpack_from(data, end)
            end += 2 + length
        if start > end or end > size or first != 0xFF or marker not in _MEASURED:
            marker, start, end = _segment(data, start - _HEAD.size)
        if marker in _METADATA:
            metadata.append((marker, start, end))
        elif marker in _UNSUPPORTED_SOF or (marker in _SOF and data[start : start + 1] != b"\x08"):
            raise UnsupportedImage("JPEG that is lossless, hierarchical or not of 8 bits a sample")
    try:
        height, width, colorspace, subsampling = simplejpeg.decode_jpeg_header(data, strict=False)
    except (ValueError, KeyError):
        raise UnreadHeader("JPEG whose header TurboJPEG does not take") from None
    channels = _CHANNELS[colorspace]
    orientations, profile = _read_metadata(data, metadata)
    return JpegHeader(
        width=width,
        height=height,
        channels=channels,
        colorspace="Grayscale" if channels == 1 else colorspace,
        orientation=next((value for value, _ in orientations if value), 1),
        orientations=tuple(orientations),
        profile=profile,
        subsampling=subsampling,
        # A sequential scan says that it ends with coefficient 63.
        several_scans=(data[start], data[end - 2]) != (channels, 63),
        scan_offset=end,
    )


def segments(data: bytes | bytearray) -> Iterator[tuple[int, int, int]]:
    """Marker, and start and end of the payload, of each segment up to the first scan's.

    Raises:
        CorruptImage: they end early.
    """
    end, marker = len(SOI), 0
    while marker != _SOS:
        marker, start, end = _segment(data, end)
        yield marker, start, end


def _segment(data: bytes | bytearray, position: int) -> tuple[int, int, int]:
    """The segment at ``position``, or behind what libjpeg skips there."""
    found = _NEXT_MARKER.search(data, position)
    if found is None:
        raise CorruptImage("truncated JPEG: it ends before its first scan")
    marker, position = data[found.start() + 1], found.end()
    if marker == EOI[1]:
        raise CorruptImage("corrupt JPEG: it ends before its first scan")
    length = int.from_bytes(data[position : position + 2], "big")
    if length < 2 or position + length > len(data):
        raise CorruptImage("truncated JPEG: a header segment runs past the end of the file")
    return marker, position + 2, position + length


def _read_metadata(
    data: bytes, found: Sequence[tuple[int, int, int]]
) -> tuple[Orientations, bytes | None]:
    """Exif's orientations, and the ICC profile."""
    orientations: Orientations = []
    parts = []
    for marker, start, end in found:
        if marker == _APP1 and data.startswith(b"Exif\0\0", start):
            orientations += _orientations(data, start + 6, end)
        elif marker == _APP2 and data.startswith(_ICC, start) and end >= start + _ICC_HEADER_BYTES:
            number, total = data[start + 12], data[start + 13]
            parts.append((number, total, data[start + _ICC_HEADER_BYTES : end]))
    if not parts:
        return orientations, None
    parts.sort()
    whole = [part[:2] for part in parts] == [(n + 1, len(parts)) for n in range(len(parts))]
    return orientations, b"".join(part[2] for part in parts) if whole else b""


def _orientations(data: bytes, tiff: int, end: int) -> Orientations:
    """Orientation entries in the first directory of the TIFF structure at ``tiff``.

    Their type and count may be any: some decoders follow tags that Exif does not know so.
    """
    order = _BYTE_ORDERS.get(data[tiff : tiff + 4])
    if order is None or end < tiff + 8:
        return []
    start = tiff + struct.unpack_from(order + "I", data, tiff + 4)[0] + 2
    if start > end:
        return []
    count = min(struct.unpack_from(order + "H", data, start - 2)[0], (end - start) // 12)
    found = []
    for entry in range(start, start + 12 * count, 12):
        tag, kind, _, content = struct.unpack_from(order + "HHI4s", data, entry)
        if tag == _ORIENTATION and kind in _INTEGER_BYTES:
            size = _INTEGER_BYTES[kind]
            low_byte = 0 if order == "<" else size - 1
            if sum(content[:size]) == content[low_byte] <= 8:  # the other bytes are 0
                found.append((content[low_byte], entry + 8 + low_byte))
    return found


def require_few_scans(data: bytes, header: JpegHeader) -> None:
    """Refuse a JPEG of more scans than encoders write: libjpeg decodes each over the whole image.

    Raises:
        ImageTooLarge: so many that a small file would take minutes or hours.
    """
    most = max(_FEW_SCANS, _MOST_SCANNED_PIXELS // (header.width * header.height))
    if 1 + data.count(_SCAN, header.scan_offset) > most:
        raise ImageTooLarge(
            f"more than {most} scans of {header.width} x {header.height} pixels: no encoder writes "
            "as many"
        )


def reset_orientation(data: bytes, header: JpegHeader) -> bytes:
    """The same file with every orientation tag set to 1; ``data`` itself where all are."""
    if all(value == 1 for value, _ in header.orientations):
        return data
    upright = bytearray(data)
    for _, offset in header.orientations:
        upright[offset] = 1
    return bytes(upright)


def with_profile(data: bytes, profile: bytes) -> bytes:
    """The same JPEG with an ICC profile, behind the JFIF segment with which it begins."""
    parts = range(0, len(profile), _ICC_PART_BYTES)
    embedded = []
    for number, start in enumerate(parts, 1):
        payload = _ICC + bytes([number, len(parts)]) + profile[start : start + _ICC_PART_BYTES]
        embedded.append(b"\xff\xe2" + (2 + len(payload)).to_bytes(2, "big") + payload)
    at = 4 + int.from_bytes(data[4:6], "big")
    return b"".join([data[:at], *embedded, data[at:]])


def decode(
    data: bytes,
    header: JpegHeader,
    colorspace: str,
    least: tuple[int, int] = (0, 0),
    *,
    keep_truncated: bool = False,
) -> tuple[Pixels, Notes]:
    """Pixels at the smallest size that is not below ``least``, and the file's quirks.

    Args:
        data: a JPEG.
        header: its header.
        colorspace: ``RGB``, ``GRAY``, or ``CMYK`` for what is stored as that or YCCK. RGB is a
            view of memory of four bytes a pixel (``resize``).
        least: width and height in pixels; 0 x 0 stands for the whole size.
        keep_truncated: whether a JPEG that ends early is decoded as far as it goes; libjpeg
            fills the rest with grey.

    Raises:
        CorruptImage: it is broken, or ends early.
    """
    rgb = colorspace == "RGB"
    load = partial(
        simplejpeg.decode_jpeg,
        colorspace="BGRX" if rgb else colorspace,
        min_height=least[1],
        min_width=least[0],
    )
    notes: Notes = ()
    try:
        pixels = load(data, strict=True)
    except ValueError as error:
        pixels, notes = _decode_flawed(
            data, header, str(error), load, keep_truncated=keep_truncated
        )
    return pixels[:, :, 2::-1] if rgb else pixels, notes


def _decode_flawed(
    data: bytes,
    header: JpegHeader,
    warning: str,
    load: Callable[..., Pixels],
    *,
    keep_truncated: bool,
) -> tuple[Pixels, Notes]:
    """Decode again without a flaw that costs no pixel; raise or keep what is left otherwise.

    libjpeg reports its first warning only: a harmless one may hide another one that is not.
    """
    head, scans = data[: header.scan_offset], data[header.scan_offset :]
    notes: Notes = ()
    for _ in range(3):  # flaws of the header twice, then before the end
        plain = _plain_head(head, sequential=_SCAN_PARAMETERS in warning)
        stray = _STRAY_END.search(warning)
        if head != plain and _HARMLESS.search(warning):
            head = plain
        elif stray:
            end = scans.find(EOI)
            scans = scans[: end - int(stray[1])] + scans[end:]
        else:
            break
        if _PROFILE_WARNING not in warning:
            notes = ("recovered",)
        try:
            return load(head + scans, strict=True), notes
        except ValueError as error:
            warning = str(error)
    if keep_truncated and _ENDS_EARLY in warning:
        try:
            pixels = load(head + scans, strict=False)
        except ValueError as error:
            raise CorruptImage(f"corrupt JPEG: {error}") from None
        if (pixels[:, :, :3] != _FILLED).any(axis=2).mean() < _LEAST_SHARE:
            raise CorruptImage("truncated JPEG: hardly a pixel of it decodes")
        return pixels, (*notes, "truncated_kept")
    is_short = "Premature end of JPEG" in warning
    raise CorruptImage(f"{'truncated' if is_short else 'corrupt'} JPEG: {warning}")


def _plain_head(head: bytes, *, sequential: bool) -> bytes:
    """The segments before the first scan, without stray bytes between them or an ICC profile.

    The parameters of a ``sequential`` scan become what libjpeg takes them for.
    """
    parts = [SOI]
    for marker, start, end in segments(head):
        segment = bytearray(head[start - 4 : end])
        if marker == _APP2 and head.startswith(_ICC, start):
            segment.clear()
        elif marker == _SOS and sequential:
            segment[-3:] = _SEQUENTIAL
        parts.append(bytes(segment))
    return b"".join(parts)
