"""PURE. Read, repair and decode JPEGs.

libjpeg-turbo decodes the pixels. Most of its warnings mean that pixels are lost. Therefore this
module interprets each warning.

References: ITU-T T.81, Annex B (markers); ICC.1:2022, B.4 (profiles in segments); Exif 2.32, 4.6.4
(the orientation tag).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

import simplejpeg

from dataprep.errors import CorruptImage, ImageTooLarge, UnsupportedImage
from dataprep.image.output_size import Pixels
from dataprep.image.policy import Notes

SOI = b"\xff\xd8"
EOI = b"\xff\xd9"
_SCAN_START = b"\xff\xda\0"  # the marker of a scan, and the high byte of its length
_SOS = 0xDA  # start of scan
_APP1 = 0xE1  # Exif
_APP2 = 0xE2  # an ICC profile
_METADATA_MARKERS = frozenset({_APP1, _APP2})
_SOF = frozenset({0xC0, 0xC1, 0xC2, 0xC9, 0xCA})  # start of frame: Huffman or arithmetic coding
_UNSUPPORTED_SOF = frozenset({0xC3, 0xC5, 0xC6, 0xC7, 0xCB, 0xCD, 0xCE, 0xCF})
# The markers of segments, which are followed by the length of the segment.
_MARKERS_WITH_LENGTH = frozenset({*range(0xC0, 0xD0), *range(0xDA, 0xFF)})
_SEGMENT_HEAD = struct.Struct(">BBH")  # 0xff, the marker, and the length
# A marker with a length, or the end of the image. The pattern does not match fill bytes and other
# bytes that libjpeg skips.
_NEXT_MARKER = re.compile(rb"\xff[\x02-\xcf\xd9-\xfe]")
_CHANNELS = {"Gray": 1, "YCbCr": 3, "RGB": 3, "CMYK": 4, "YCCK": 4}
_ICC_NAME = b"ICC_PROFILE\0"
_ICC_HEADER_BYTES = 12 + 2  # the name, the number of the part, and the total number of parts
_ICC_PART_BYTES = 65_535 - 2 - _ICC_HEADER_BYTES  # two bytes are the length of the segment
_BYTE_ORDERS = {b"II*\0": "<", b"MM\0*": ">"}
_ORIENTATION_TAG = 0x0112
# The size in bytes of each integer type of TIFF. All of these types occur in orientation tags.
_INTEGER_BYTES = {1: 1, 3: 2, 4: 4, 6: 1, 8: 2, 9: 4}

_MAX_SCANNED_PIXELS = 10**9  # pixels times scans; decoding them takes a few seconds
_ALWAYS_ALLOWED_SCANS = 24  # libjpeg writes up to 18

_PROFILE_WARNING = "bad ICC marker"
_SCAN_PARAMETER_WARNING = "Invalid SOS parameters for sequential"
_HARMLESS_WARNING = re.compile(
    rf"{_PROFILE_WARNING}|{_SCAN_PARAMETER_WARNING}|extraneous bytes before marker"
)
_STRAY_BYTES_BEFORE_END = re.compile(r"(\d+) extraneous bytes before marker 0xd9")
_SEQUENTIAL_PARAMETERS = b"\x00\x3f\x00"  # T.81, table B.3: all 64 coefficients in one scan
# Part of the warning for a file that ends early ("Premature end of JPEG file"), and of the warning
# for pixels that end before the end marker ("premature end of data segment").
_ENDS_EARLY = "remature end of"
_FILL_VALUE = 128  # the grey level with which libjpeg fills missing pixels
_MIN_DECODED_SHARE = 0.01  # of the pixels of a truncated file


Orientations: TypeAlias = list[tuple[int, int]]
"""Pairs of the value of an orientation tag and the offset of the byte that holds this value."""


class UnreadableHeader(UnsupportedImage):
    """TurboJPEG cannot read the header. It is broken, or the subsampling is unusual."""


class JpegHeader(NamedTuple):
    """The properties of a JPEG, from the segments before its first scan.

    Attributes:
        width, height: the stored size in pixels.
        channels: the number of components of a pixel: 1, 3 or 4.
        colorspace: ``Grayscale``, ``YCbCr``, ``RGB``, ``CMYK`` or ``YCCK``.
        orientation: the orientation in the Exif data, 1 to 8; 1 if there is no valid one.
        orientations: the values of all orientation tags, 0 to 8, with their offsets.
        profile: the ICC profile. It is None if there is no profile, and empty if parts of the
            profile are missing or repeated.
        subsampling: the chroma subsampling, such as ``420``.
        has_several_scans: whether the first scan contains only a part of the image.
        scan_offset: the offset of the first byte of the compressed pixels in the first scan.
    """

    width: int
    height: int
    channels: int
    colorspace: str
    orientation: int
    orientations: tuple[tuple[int, int], ...]
    profile: bytes | None
    subsampling: str
    has_several_scans: bool
    scan_offset: int


def read_header(data: bytes) -> JpegHeader:
    """Read the segments up to the first scan.

    Raises:
        CorruptImage: the file ends before its first scan, or a segment runs past its end.
        UnsupportedImage: the JPEG is lossless or hierarchical, or does not have 8 bits per sample.
        UnreadableHeader: TurboJPEG cannot read the header.
    """
    metadata = []
    size = len(data)
    start = 0
    end = len(SOI)
    marker = 0
    # This loop goes through the segments, as the function ``segments`` does. It is faster, because
    # it is not a generator, and calls ``_segment`` only for unusual bytes.
    while marker != _SOS:
        head_start = end
        start = head_start + _SEGMENT_HEAD.size
        is_usual = False
        if start <= size:
            first_byte, marker, length = _SEGMENT_HEAD.unpack_from(data, head_start)
            end = head_start + 2 + length
            is_marker = first_byte == 0xFF and marker in _MARKERS_WITH_LENGTH
            is_usual = is_marker and start <= end <= size
        if not is_usual:
            marker, start, end = _segment(data, head_start)
        if marker in _METADATA_MARKERS:
            metadata.append((marker, start, end))
        elif marker in _UNSUPPORTED_SOF or (marker in _SOF and data[start : start + 1] != b"\x08"):
            raise UnsupportedImage(
                "a JPEG that is lossless, hierarchical, or does not have 8 bits per sample"
            )
    try:
        height, width, colorspace, subsampling = simplejpeg.decode_jpeg_header(data, strict=False)
    except (ValueError, KeyError):
        raise UnreadableHeader("a JPEG whose header TurboJPEG cannot read") from None
    channels = _CHANNELS[colorspace]
    orientations, profile = _read_metadata(data, metadata)
    return JpegHeader(
        width=width,
        height=height,
        channels=channels,
        colorspace="Grayscale" if channels == 1 else colorspace,
        orientation=_first_valid(orientations),
        orientations=tuple(orientations),
        profile=profile,
        subsampling=subsampling,
        # A scan that contains the whole image has all components, and ends with coefficient 63.
        has_several_scans=(data[start], data[end - 2]) != (channels, 63),
        scan_offset=end,
    )


def _first_valid(orientations: Orientations) -> int:
    """The first orientation that is not 0; 1 if there is none."""
    for value, _ in orientations:
        if value:
            return value
    return 1


def segments(data: bytes | bytearray) -> Iterator[tuple[int, int, int]]:
    """Yield the marker, and the start and end of the payload, of each segment up to the first scan.

    Raises:
        CorruptImage: the file ends before its first scan, or a segment runs past its end.
    """
    end = len(SOI)
    marker = 0
    while marker != _SOS:
        marker, start, end = _segment(data, end)
        yield marker, start, end


def _segment(data: bytes | bytearray, position: int) -> tuple[int, int, int]:
    """The first segment at or after ``position``. Bytes that libjpeg skips are skipped."""
    match = _NEXT_MARKER.search(data, position)
    if match is None:
        raise CorruptImage("truncated JPEG: it ends before its first scan")
    marker = data[match.start() + 1]
    position = match.end()
    if marker == EOI[1]:
        raise CorruptImage("corrupt JPEG: it ends before its first scan")
    length = int.from_bytes(data[position : position + 2], "big")
    if length < 2 or position + length > len(data):
        raise CorruptImage("truncated JPEG: a header segment runs past the end of the file")
    return marker, position + 2, position + length


def _read_metadata(
    data: bytes, metadata: Sequence[tuple[int, int, int]]
) -> tuple[Orientations, bytes | None]:
    """The orientations in the Exif data, and the ICC profile as ``JpegHeader`` describes it."""
    orientations: Orientations = []
    parts = []
    for marker, start, end in metadata:
        if marker == _APP1 and data.startswith(b"Exif\0\0", start):
            orientations += _orientations(data, start + 6, end)
        elif marker == _APP2 and data.startswith(_ICC_NAME, start):
            content_start = start + _ICC_HEADER_BYTES
            if end >= content_start:
                number, total = data[start + 12], data[start + 13]
                parts.append((number, total, data[content_start:end]))
    return orientations, _joined_profile(parts)


def _joined_profile(parts: list[tuple[int, int, bytes]]) -> bytes | None:
    """Join the parts of an ICC profile. A part is its number, the total number, and its content.

    The result is empty if the parts are not complete, and None if there are no parts.
    """
    if not parts:
        return None
    parts = sorted(parts)
    for expected_number, (number, total, _) in enumerate(parts, 1):
        if number != expected_number or total != len(parts):
            return b""
    return b"".join(content for _, _, content in parts)


def _orientations(data: bytes, tiff_start: int, end: int) -> Orientations:
    """The orientation tags in the first directory of the TIFF structure at ``tiff_start``.

    The Exif standard demands one number of type SHORT. Other integer types and counts are accepted
    too, because some decoders obey such tags.
    """
    order = _BYTE_ORDERS.get(data[tiff_start : tiff_start + 4])
    if order is None or end < tiff_start + 8:
        return []
    (directory_offset,) = struct.unpack_from(order + "I", data, tiff_start + 4)
    start = tiff_start + directory_offset + 2
    if start > end:
        return []
    (announced_count,) = struct.unpack_from(order + "H", data, start - 2)
    count = min(announced_count, (end - start) // 12)
    orientations: Orientations = []
    for entry in range(start, start + 12 * count, 12):
        tag, integer_type, _, content = struct.unpack_from(order + "HHI4s", data, entry)
        if tag == _ORIENTATION_TAG and integer_type in _INTEGER_BYTES:
            size = _INTEGER_BYTES[integer_type]
            low_byte = 0 if order == "<" else size - 1
            value = content[low_byte]
            if value <= 8 and sum(content[:size]) == value:  # all other bytes are 0
                orientations.append((value, entry + 8 + low_byte))
    return orientations


def require_few_scans(data: bytes, header: JpegHeader) -> None:
    """Refuse a JPEG with more scans than encoders write.

    libjpeg goes through the whole image for each scan. Therefore a small file with many scans could
    take hours.

    Raises:
        ImageTooLarge: the file has too many scans.
    """
    pixels = header.width * header.height
    max_scans = max(_ALWAYS_ALLOWED_SCANS, _MAX_SCANNED_PIXELS // pixels)
    scans = 1 + data.count(_SCAN_START, header.scan_offset)
    if scans > max_scans:
        raise ImageTooLarge(
            f"more than {max_scans} scans of {header.width} x {header.height} pixels: no encoder "
            "writes as many"
        )


def reset_orientation(data: bytes, header: JpegHeader) -> bytes:
    """Set all orientation tags to 1. If all of them are 1 already, ``data`` itself is returned."""
    if all(value == 1 for value, _ in header.orientations):
        return data
    upright = bytearray(data)
    for _, offset in header.orientations:
        upright[offset] = 1
    return bytes(upright)


def with_profile(data: bytes, profile: bytes) -> bytes:
    """Embed an ICC profile in a JPEG, which must begin with a JFIF segment."""
    starts = range(0, len(profile), _ICC_PART_BYTES)
    profile_segments = []
    for number, start in enumerate(starts, 1):
        part = profile[start : start + _ICC_PART_BYTES]
        payload = _ICC_NAME + bytes([number, len(starts)]) + part
        length = (2 + len(payload)).to_bytes(2, "big")
        profile_segments.append(b"\xff\xe2" + length + payload)
    end_of_jfif = 4 + int.from_bytes(data[4:6], "big")
    return data[:end_of_jfif] + b"".join(profile_segments) + data[end_of_jfif:]


def decode(
    data: bytes,
    header: JpegHeader,
    colorspace: str,
    min_size: tuple[int, int] = (0, 0),
    *,
    keep_truncated: bool = False,
) -> tuple[Pixels, Notes]:
    """Decode a JPEG, and reduce it as far as possible without falling below ``min_size``.

    Args:
        data: the JPEG.
        header: its header.
        colorspace: the colour space of the pixels: ``RGB`` or ``GRAY``, or ``CMYK`` for images that
            are stored as CMYK or YCCK. RGB pixels are a view of memory with four bytes per pixel,
            as ``resize`` describes.
        min_size: the minimum width and height in pixels. With 0 x 0, the image is not reduced.
        keep_truncated: whether a truncated JPEG is accepted. libjpeg fills the missing pixels with
            grey.

    Returns:
        The pixels, and notes about the file.

    Raises:
        CorruptImage: the JPEG is broken, or it is truncated and ``keep_truncated`` is false.
    """
    is_rgb = colorspace == "RGB"
    min_width, min_height = min_size
    decode_jpeg = partial(
        simplejpeg.decode_jpeg,
        colorspace="BGRX" if is_rgb else colorspace,
        min_height=min_height,
        min_width=min_width,
    )
    notes: Notes = ()
    try:
        pixels = decode_jpeg(data, strict=True)
    except ValueError as error:
        pixels, notes = _decode_flawed(
            data, header, str(error), decode_jpeg, keep_truncated=keep_truncated
        )
    if is_rgb:
        pixels = pixels[:, :, 2::-1]
    return pixels, notes


def _decode_flawed(
    data: bytes,
    header: JpegHeader,
    warning: str,
    decode_jpeg: Callable[..., Pixels],
    *,
    keep_truncated: bool,
) -> tuple[Pixels, Notes]:
    """Decode a JPEG after libjpeg has reported a warning.

    libjpeg reports its first warning only. If this warning is harmless, a second warning could mean
    that pixels are lost. Therefore harmless flaws are removed, and the JPEG is decoded again.
    """
    head = data[: header.scan_offset]
    scans = data[header.scan_offset :]
    notes: Notes = ()
    for _ in range(3):  # at most two flaws of the header, and stray bytes before the end
        repaired_head = _repaired_head(head, sequential=_SCAN_PARAMETER_WARNING in warning)
        stray_bytes = _STRAY_BYTES_BEFORE_END.search(warning)
        if head != repaired_head and _HARMLESS_WARNING.search(warning):
            head = repaired_head
        elif stray_bytes:
            end = scans.find(EOI)
            scans = scans[: end - int(stray_bytes[1])] + scans[end:]
        else:
            break
        if _PROFILE_WARNING not in warning:
            notes = ("recovered",)
        try:
            return decode_jpeg(head + scans, strict=True), notes
        except ValueError as error:
            warning = str(error)
    if keep_truncated and _ENDS_EARLY in warning:
        try:
            pixels = decode_jpeg(head + scans, strict=False)
        except ValueError as error:
            raise CorruptImage(f"corrupt JPEG: {error}") from None
        is_decoded = (pixels[:, :, :3] != _FILL_VALUE).any(axis=2)
        if is_decoded.mean() < _MIN_DECODED_SHARE:
            raise CorruptImage("truncated JPEG: less than 1 % of its pixels can be decoded")
        return pixels, (*notes, "truncated_kept")
    damage = "truncated" if "Premature end of JPEG" in warning else "corrupt"
    raise CorruptImage(f"{damage} JPEG: {warning}")


def _repaired_head(head: bytes, *, sequential: bool) -> bytes:
    """Remove the ICC profile, and bytes between segments, from the part before the first scan.

    If ``sequential`` is true, the scan parameters are replaced by the values that libjpeg uses.
    """
    parts = [SOI]
    for marker, start, end in segments(head):
        segment = bytearray(head[start - 4 : end])
        if marker == _APP2 and head.startswith(_ICC_NAME, start):
            segment.clear()
        elif marker == _SOS and sequential:
            segment[-3:] = _SEQUENTIAL_PARAMETERS
        parts.append(bytes(segment))
    return b"".join(parts)
