"""Resizing filters by name, each from the full image; whole numbers decide every pixel."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from dataprep.image.pixels import Pixels

PILLOW = {
    "lanczos": Image.Resampling.LANCZOS,
    "bicubic": Image.Resampling.BICUBIC,
    "bilinear": Image.Resampling.BILINEAR,
}
_MODES = {1: "L", 3: "RGB", 4: "CMYK"}  # four channels that mean nothing to each other
_ROWS_AT_A_TIME = 256


def by_pillow(pixels: Pixels, width: int, height: int, name: str) -> Pixels:
    """``lanczos`` (3 lobes), ``bicubic`` (a = -0.5) or ``bilinear``, as wide as the reduction.

    The weights are rounded to 22 bits, and the rest is whole numbers.
    """
    scaled = _image(pixels).resize((width, height), PILLOW[name])
    return np.asarray(scaled).reshape(height, width, pixels.shape[2])


def block_average(pixels: Pixels, across: int, down: int) -> Pixels:
    """Rounded means of whole blocks."""
    reduced: Pixels = np.asarray(_image(pixels).reduce((across, down)))
    return reduced.reshape(*reduced.shape[:2], pixels.shape[2])


def area_average(pixels: Pixels, width: int, height: int) -> Pixels:
    """The mean of the area that a target pixel covers, edges by their share, halves rounded up.

    Exact: sums of areas are fractions with the denominator (source width x source height).
    """
    source_height, source_width = pixels.shape[:2]
    rows = [
        _sums(pixels[top : top + _ROWS_AT_A_TIME], width, axis=1)
        for top in range(0, source_height, _ROWS_AT_A_TIME)
    ]
    sums = _sums(np.concatenate(rows), height, axis=0)
    area = source_width * source_height
    mean: Pixels = ((2 * sums + area) // (2 * area)).astype(np.uint8)
    return mean


def _sums(values: NDArray[np.integer], target: int, axis: int) -> NDArray[np.int64]:
    """Integrals over ``target`` equal parts of an axis, times ``target``."""
    size = values.shape[axis]
    ends = np.arange(target + 1, dtype=np.int64) * size
    whole, part = ends // target, ends % target
    moved = np.moveaxis(values, axis, 0)
    zero = np.zeros((1, *moved.shape[1:]), np.int64)
    before = np.concatenate([zero, np.cumsum(moved, axis=0, dtype=np.int64)])
    within = np.concatenate([moved, zero.astype(moved.dtype)])[whole].astype(np.int64)
    column = (-1, *[1] * (moved.ndim - 1))
    integral = before[whole] * target + within * part.reshape(column)
    return np.moveaxis(np.diff(integral, axis=0), 0, axis)


def _image(pixels: Pixels) -> Image.Image:
    height, width, channels = pixels.shape
    return Image.frombytes(
        _MODES[channels], (width, height), np.ascontiguousarray(pixels).tobytes()
    )
