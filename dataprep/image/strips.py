"""A few rows at a time: what is computed of all rows at once takes several times their memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from dataprep.errors import UnsupportedImage
from dataprep.image.depth import largest_sample, white_is_zero

_PIXELS = 2**20


def strips(height: int, width: int) -> Iterator[slice]:
    """Rows from top to bottom, about a million pixels each time, and one row at the least."""
    step = max(1, _PIXELS // max(1, width))
    return (slice(top, min(top + step, height)) for top in range(0, height, step))


def as_array(image: Image.Image) -> NDArray[np.uint8]:
    """Pixels of L, RGB or RGBA as an array; at once, Pillow would hold them twice beside it."""
    width, height = image.size
    channels = len(image.getbands())
    shape = (height, width) if channels == 1 else (height, width, channels)
    pixels = np.empty(shape, np.uint8)
    for rows in strips(height, width):
        pixels[rows] = np.asarray(image.crop((0, rows.start, width, rows.stop)))
    return pixels


def flattened(image: Image.Image, background: tuple[int, ...], mode: str) -> Image.Image:
    """RGBA laid on a colour, also RGBA, in another mode."""
    width, height = image.size
    flat = Image.new(mode, image.size)
    for rows in strips(height, width):
        strip = image.crop((0, rows.start, width, rows.stop))
        below = Image.new("RGBA", strip.size, background)
        flat.paste(Image.alpha_composite(below, strip).convert(mode), (0, rows.start))
    return flat


def to_8_bits(image: Image.Image) -> Image.Image:
    """16 bits to 8 by scaling the range, never by clipping it; a transparent level to alpha.

    Raises:
        UnsupportedImage: samples beyond 16 bits.
    """
    samples: NDArray[Any] = np.asarray(image)
    most = largest_sample(image)
    transparent = image.info.get("transparency")
    levels = np.empty(samples.shape, np.uint8)
    alpha = np.empty(samples.shape, np.uint8) if isinstance(transparent, int) else None
    for rows in strips(*samples.shape):
        strip = samples[rows].astype(np.int64)
        if strip.size and (strip.min() < 0 or strip.max() > most):
            raise UnsupportedImage("32-bit samples have no fixed range to scale from")
        scaled = (strip * 255 + most // 2) // most
        levels[rows] = 255 - scaled if white_is_zero(image) else scaled
        if alpha is not None:
            alpha[rows] = np.where(strip == transparent, 0, 255)
    eight = Image.fromarray(levels)
    if alpha is not None:
        eight.putalpha(Image.fromarray(alpha))
    return eight
