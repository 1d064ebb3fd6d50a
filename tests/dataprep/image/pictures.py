"""Images to files and back, and how far apart two are."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from PIL import Image


def saved(image: Image.Image, kind: str, **options: Any) -> bytes:
    """The image in a format of Pillow's."""
    sink = io.BytesIO()
    image.save(sink, kind, **options)
    return sink.getvalue()


def pillow_image(data: bytes) -> Image.Image:
    """Decoded by Pillow."""
    image = Image.open(io.BytesIO(data))
    image.load()
    return image


def turned(orientation: int) -> Image.Exif:
    """Exif with an orientation."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    return exif


def apart(left: object, right: object) -> float:
    """Mean absolute difference."""
    return float(np.abs(np.asarray(left, float) - np.asarray(right, float)).mean())
