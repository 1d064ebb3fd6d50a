"""Pixels turned, scaled and cropped, in whole numbers only.

Scaling down by 1 to 2 is a small Gaussian, then bilinear interpolation at the target's points;
by more, the same at a multiple of the target, whose whole blocks are then averaged. All three
are fixed-point: OpenCV's Gaussian and ``INTER_LINEAR_EXACT``, Pillow's ``reduce``.

The Gaussian's width is sigma = 0.4 * sqrt(r^2 - 0.4) for a reduction r: the narrowest (in steps
of 0.1 of the constants) with which a zone plate aliases no more than with OpenCV's area average
at any reduction.
"""

from __future__ import annotations

import math

import cv2
import numpy as np
from PIL import Image

from dataprep.image.geometry import Geometry
from dataprep.image.pixels import Pixels

# One image, one thread: the parallelism is over images, and OpenCV's pool would fight it.
cv2.setNumThreads(1)

_WIDEST_FOR_3_TAPS = 0.5


def turn(pixels: Pixels, orientation: int) -> Pixels:
    """Pixels as displayed, by the Exif orientation (Exif 2.32, table of 4.6.4 A)."""
    match orientation:
        case 2:
            return pixels[:, ::-1]
        case 3:
            return pixels[::-1, ::-1]
        case 4:
            return pixels[::-1]
        case 5:
            return pixels.transpose(1, 0, 2)
        case 6:
            return np.rot90(pixels, -1)
        case 7:
            return pixels[::-1, ::-1].transpose(1, 0, 2)
        case 8:
            return np.rot90(pixels)
        case _:
            return pixels


def fit(pixels: Pixels, geometry: Geometry) -> Pixels:
    """Scale to the geometry's size, then cut out its crop."""
    return _crop(_scale(pixels, geometry.width, geometry.height), geometry)


def _scale(pixels: Pixels, width: int, height: int) -> Pixels:
    source_height, source_width, channels = pixels.shape
    if (source_width, source_height) == (width, height):
        return pixels
    across, down = max(1, source_width // width), max(1, source_height // height)
    wide, high = width * across, height * down
    smooth = _smoothed(
        np.ascontiguousarray(pixels), sigma(source_width, wide), sigma(source_height, high)
    )
    points = cv2.resize(smooth, (wide, high), interpolation=cv2.INTER_LINEAR_EXACT)
    fine = np.asarray(points, np.uint8).reshape(high, wide, channels)
    return fine if across == down == 1 else _block_average(fine, across, down)


def sigma(source: int, target: int) -> float:
    """The Gaussian's standard deviation, in source pixels, for one side; 0 where it grows."""
    if source <= target:
        return 0.0
    return 0.4 * math.sqrt((source / target) ** 2 - 0.4)


def _smoothed(pixels: Pixels, across: float, down: float) -> Pixels:
    taps = tuple(1 if s == 0 else 3 if s <= _WIDEST_FOR_3_TAPS else 5 for s in (across, down))
    if taps == (1, 1):
        return pixels
    # A sigma of 0 would be taken from the number of taps; of one tap it changes nothing.
    smooth = cv2.GaussianBlur(
        pixels,
        taps,
        sigmaX=across or 1.0,
        sigmaY=down or 1.0,
        hint=cv2.ALGO_HINT_ACCURATE,  # bit-exact by OpenCV's documentation
    )
    return np.asarray(smooth, np.uint8)


def _block_average(pixels: Pixels, across: int, down: int) -> Pixels:
    """Rounded means of whole blocks."""
    channels = pixels.shape[2]
    image = Image.fromarray(pixels[:, :, 0] if channels == 1 else pixels)
    reduced = np.asarray(image.reduce((across, down)))
    return reduced.reshape(*reduced.shape[:2], channels)


def _crop(pixels: Pixels, geometry: Geometry) -> Pixels:
    left = (geometry.width - geometry.crop_width) // 2
    top = (geometry.height - geometry.crop_height) // 2
    return pixels[top : top + geometry.crop_height, left : left + geometry.crop_width]
