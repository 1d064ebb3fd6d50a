"""Bits a sample, as the file has them: most decoders hand out 8 and say nothing."""

from __future__ import annotations

from typing import Any

from PIL import Image

from dataprep.image import png

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


def is_deep(image: Image.Image, data: bytes) -> bool:
    """Whether a sample of the file has more than 8 bits; ``image`` is what Pillow opened."""
    if image.mode.startswith(("I", "F")):
        return True
    match image.format:
        case "PNG":
            return png.depth(data) > 8
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
