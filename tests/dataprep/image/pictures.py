"""Encodes and decodes images, and measures how different two images are."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from PIL import Image


def saved(image: Image.Image, kind: str, **options: Any) -> bytes:
    """The image in a format of Pillow."""
    sink = io.BytesIO()
    image.save(sink, kind, **options)
    return sink.getvalue()


def pillow_image(data: bytes) -> Image.Image:
    """The pixels as Pillow decodes them."""
    image = Image.open(io.BytesIO(data))
    image.load()
    return image


def turned(orientation: int) -> Image.Exif:
    """Exif data with an orientation."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    return exif


def apart(left: object, right: object) -> float:
    """The mean absolute difference of two images."""
    return float(np.abs(np.asarray(left, float) - np.asarray(right, float)).mean())
