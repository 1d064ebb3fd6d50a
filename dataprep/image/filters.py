"""Resizing filters by name, each from the full image; whole numbers decide every pixel."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from dataprep.image.pixels import Pixels

_MODES = {1: "L", 3: "RGB", 4: "CMYK"}  # four channels that mean nothing to each other
_ROWS_AT_A_TIME = 256


def lanczos(pixels: Pixels, width: int, height: int) -> Pixels:
    """Pillow's, with 3 lobes, as wide as the reduction.

    The weights are rounded to 22 bits, and the rest is whole numbers.
    """
    scaled = _image(pixels).resize((width, height), Image.Resampling.LANCZOS)
    return np.asarray(scaled).reshape(height, width, pixels.shape[2])


def area_average(pixels: Pixels, width: int, height: int) -> Pixels:
    """The mean of the area that a target pixel covers, edges by their share, halves rounded up.

    Exact: sums of areas are fractions with the denominator (source width x source height).
    """
    source_height, source_width, channels = pixels.shape
    area = source_width * source_height
    mean = np.empty((height, width, channels), np.uint8)
    # Sums take eight times the room of pixels: a few rows of them at a time.
    step = max(1, _ROWS_AT_A_TIME * height // max(height, source_height))
    for top in range(0, height, step):
        rows = range(top, min(top + step, height))
        first, last = rows.start * source_height // height, -(-rows.stop * source_height // height)
        across = _sums(pixels[first:last], range(width), width, source_width)
        sums = _sums(across.swapaxes(0, 1), rows, height, source_height).swapaxes(0, 1)
        mean[rows.start : rows.stop] = (2 * sums + area) // (2 * area)
    return mean


def _sums(values: NDArray[np.integer], parts: range, target: int, size: int) -> NDArray[np.int64]:
    """Integrals over some of ``target`` equal parts of the second axis, times ``target``.

    The axis is ``size`` long; ``values`` has of it what the parts cover.
    """
    ends = np.arange(parts.start, parts.stop + 1, dtype=np.int64) * size
    whole, part = ends // target, ends % target
    whole -= whole[0]
    moved = np.moveaxis(values, 1, 0)
    zero = np.zeros((1, *moved.shape[1:]), np.int64)
    before = np.concatenate([zero, np.cumsum(moved, axis=0, dtype=np.int64)])
    within = np.concatenate([moved, zero.astype(moved.dtype)])[whole].astype(np.int64)
    integral = before[whole] * target + within * part[:, np.newaxis, np.newaxis]
    return np.moveaxis(np.diff(integral, axis=0), 0, 1)


def _image(pixels: Pixels) -> Image.Image:
    height, width, channels = pixels.shape
    return Image.frombytes(
        _MODES[channels], (width, height), np.ascontiguousarray(pixels).tobytes()
    )
