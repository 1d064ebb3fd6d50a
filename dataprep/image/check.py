"""A stored image, decoded in full."""

from __future__ import annotations

from dataprep.errors import CorruptImage
from dataprep.image import jpeg, libjpeg, shortage
from dataprep.image.pixels import open_image
from dataprep.image.policy import PILLOW_HARD_LIMIT, ImagePolicy

_STORED = ("PNG", "WEBP")
_AS_IT_IS = ImagePolicy(encoding="png", alpha="keep", max_pixels=PILLOW_HARD_LIMIT)


def check(data: bytes) -> tuple[int, int, int]:
    """Decode a stored JPEG, PNG or WebP in full; its width, height and channels.

    Raises:
        ImageError: it is none of them, or not all of its pixels can be decoded.
        MemoryError: there was too little of it.
    """
    with shortage.told_apart(data, _AS_IT_IS.max_pixels):
        return _check_jpeg(data) if data.startswith(jpeg.SOI) else _check_other(data)


def _check_jpeg(data: bytes) -> tuple[int, int, int]:
    header = jpeg.read_header(data)
    pixels = libjpeg.decode(data, "GRAY" if header.channels == 1 else "RGB").pixels
    height, width, channels = pixels.shape
    return width, height, channels


def _check_other(data: bytes) -> tuple[int, int, int]:
    if not data.startswith((b"\x89PNG\r\n\x1a\n", b"RIFF")):
        raise CorruptImage(f"not a JPEG, PNG or WebP: begins with {data[:4]!r}")
    opened = open_image(data, _AS_IT_IS)
    if opened.container not in _STORED or not opened.as_stored:
        raise CorruptImage(f"{opened.container} with {opened.mode}: nothing that was stored here")
    height, width, channels = opened.pixels.shape
    return width, height, channels
