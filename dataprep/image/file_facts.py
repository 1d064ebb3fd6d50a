"""What a file's bytes say that Pillow does not: bits a sample, checksums, damaged directories.

Most decoders give 8 bits a sample and do not report more. PNG chunks after ISO/IEC 15948, 5.3 and
11.2.2; TIFF directories after TIFF 6.0, section 2.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any, Literal

from PIL import Image

TIFF_SIGNATURES = (b"II*\0", b"MM\0*")
# TIFF 6.0, section 8
_BITS_PER_SAMPLE = 258
_PHOTOMETRIC = 262
_WHITE_IS_ZERO = 0
_SAMPLE_FORMAT = 339  # section 19
_SIGNED = 2
_SIZ = b"\xff\x4f\xff\x51"  # JPEG 2000 begins with it: ITU-T T.800, A.5.1
_SIZ_DEPTH = 2 + 2 + 2 + 2 + 32 + 2  # where the first component's depth stands in it
_AV1C = b"av1C"  # AV1 in ISOBMFF, 2.3.3
_HIGH_BITDEPTH = 0x40
_FIRST_CHUNK = 8
_AROUND = 12  # length, type and checksum
_GREY_ALPHA = 4
_TEXTS = (b"tEXt", b"zTXt", b"iTXt")
_TIFF_SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8}
_TIFF_INLINE = 4


def is_deep(image: Image.Image, data: bytes) -> bool:
    """Whether a sample of the file has more than 8 bits; ``image`` is what Pillow opened."""
    if image.mode.startswith(("I", "F")):
        return True
    match image.format:
        case "PNG":
            return png_depth(data) > 8
        case "TIFF":
            return any(bits > 8 for bits in _tag(image, _BITS_PER_SAMPLE, ()))
        case "PPM":
            return _ppm_maximum(data) > 255
        case "JPEG2000":
            at = data.find(_SIZ)
            return at >= 0 and (data[at + _SIZ_DEPTH : at + _SIZ_DEPTH + 1] or b"\0")[0] & 0x7F > 7
        case "AVIF":
            at = data.find(_AV1C)
            return at >= 0 and bool((data[at + 6 : at + 7] or b"\0")[0] & _HIGH_BITDEPTH)
        case _:
            return False


def is_signed(image: Image.Image) -> bool:
    """Whether samples of a TIFF may be below 0."""
    return _SIGNED in _tag(image, _SAMPLE_FORMAT, ())


def largest_sample(image: Image.Image) -> int:
    """What is white, or black where white is 0, in pixels of 16 bits: Pillow scales none but these.

    12 bits of a TIFF stay as they are.
    """
    return 4_095 if 12 in _tag(image, _BITS_PER_SAMPLE, ()) else 65_535


def white_is_zero(image: Image.Image) -> bool:
    """Whether it is a TIFF that counts from white; where it has 16 bits, Pillow leaves it so."""
    return bool(_tag(image, _PHOTOMETRIC, 1) == _WHITE_IS_ZERO)


def _tag(image: Image.Image, tag: int, default: Any) -> Any:
    return getattr(image, "tag_v2", {}).get(tag, default)


def _ppm_maximum(data: bytes) -> int:
    """The fourth word of a PGM's or PPM's header, comments left out; 0 for a PBM."""
    words: list[bytes] = []
    for line in data[:1024].split(b"\n"):
        words += line.split(b"#")[0].split()
        if len(words) > 3:
            break
    has_maximum = len(words) > 3 and words[0] in (b"P2", b"P3", b"P5", b"P6")
    return int(words[3]) if has_maximum and words[3].isdigit() else 0


def png_depth(data: bytes) -> int:
    """Bits a sample; 0 where the header is cut."""
    return data[24] if len(data) > 24 else 0


def is_png_grey_alpha(data: bytes) -> bool:
    """Whether it is grey with an alpha channel, which Pillow opens as RGBA at 16 bits."""
    return data[25:26] == bytes([_GREY_ALPHA])


def is_png_sound(data: bytes) -> bool:
    """Whether each chunk has its checksum, down to the last; Pillow reads over those of pixels."""
    view = memoryview(data)
    for at, end in _png_chunks(data):
        if zlib.crc32(view[at + 4 : end - 4]).to_bytes(4, "big") != data[end - 4 : end]:
            return False
        if data[at + 4 : at + 8] == b"IEND":
            return True
    return False


def png_without_texts(data: bytes) -> bytes:
    """The same PNG without its texts, of which Pillow inflates no more than 1 MB each."""
    parts, kept = [], 0
    for at, end in _png_chunks(data):
        if data[at + 4 : at + 8] in _TEXTS:
            parts.append(data[kept:at])
            kept = end
    return b"".join([*parts, data[kept:]])


def _png_chunks(data: bytes) -> Iterator[tuple[int, int]]:
    """Where each whole chunk begins and ends."""
    at = _FIRST_CHUNK
    while at + _AROUND <= len(data):
        end = at + _AROUND + int.from_bytes(data[at : at + 4], "big")
        if end > len(data):
            return
        yield at, end
        at = end


def tiff_has_whole_directory(data: bytes) -> bool:
    """Whether the first directory and all its values lie within the file."""
    return all(0 < end <= len(data) for end in _tiff_ends(data))


def _tiff_ends(data: bytes) -> Iterator[int]:
    order: Literal["big", "little"] = "big" if data.startswith(b"MM") else "little"

    def number(offset: int, size: int) -> int:
        return int.from_bytes(data[offset : offset + size], order)

    start = number(4, 4) + 2
    stop = start + 12 * number(start - 2, 2)
    yield stop
    for entry in range(start, min(stop, len(data) - 11), 12):
        size = _TIFF_SIZES.get(number(entry + 2, 2), 1) * number(entry + 4, 4)
        yield entry + 12 if size <= _TIFF_INLINE else number(entry + 8, 4) + size
