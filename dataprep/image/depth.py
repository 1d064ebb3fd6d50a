"""Bits a sample, as the file has them: most decoders hand out 8 and say nothing."""

from __future__ import annotations

from typing import Any

from PIL import Image

from dataprep.image import png

_BITS_PER_SAMPLE = 258  # TIFF 6.0, section 8
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
            tags: Any = getattr(image, "tag_v2", {})
            return any(bits > 8 for bits in tags.get(_BITS_PER_SAMPLE, ()))
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


def _ppm_maximum(data: bytes) -> int:
    """The fourth word of a PGM's or PPM's header, comments left out; 0 for a PBM."""
    words: list[bytes] = []
    for line in data[:1024].split(b"\n"):
        words += line.split(b"#")[0].split()
        if len(words) > 3:
            break
    has_maximum = len(words) > 3 and words[0] in (b"P2", b"P3", b"P5", b"P6")
    return int(words[3]) if has_maximum and words[3].isdigit() else 0
