"""Pixels turned, scaled and cropped, in whole numbers only.

The filters, all of them antialiased:

``gaussian``, the default: scaling down by 1 to 2 is a small Gaussian, then bilinear interpolation
at the target's points; by more, the same at a multiple of the target, whose whole blocks are then
averaged. All three are fixed-point: OpenCV's Gaussian and ``INTER_LINEAR_EXACT``, Pillow's
``reduce``. The Gaussian's width is sigma = 0.4 * sqrt(r^2 - 0.4) for a reduction r: the narrowest
(in steps of 0.1 of the constants) with which a zone plate aliases no more than with OpenCV's area
average at any reduction.
``fast``: the same without the Gaussian; up to twice as much aliases as with an area average.
``area``: the mean of the area that a pixel covers.
``lanczos``, ``bicubic``, ``bilinear``: Pillow's, whose support grows with the reduction.

Where a JPEG shrinks, ``gaussian`` and ``fast`` get what libjpeg's inverse DCT has scaled by 1/2,
1/4 or 1/8 already; the others get the full image.
"""

from __future__ import annotations

import math

import cv2
import numpy as np
from PIL import Image

from dataprep.image.filters import area_average, block_average, by_pillow
from dataprep.image.geometry import Geometry
from dataprep.image.pixels import Pixels
from dataprep.image.policy import Filter

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


def takes_reduced(filter: Filter) -> bool:
    """Whether the filter may be given an image that a decoder has scaled down already."""
    return filter in ("gaussian", "fast")


def fit(pixels: Pixels, geometry: Geometry, filter: Filter = "gaussian") -> Pixels:
    """Scale to the geometry's size, then cut out its crop."""
    height, width, channels = pixels.shape
    size = geometry.width, geometry.height
    if (width, height) == size:
        return _crop(pixels, geometry)
    if channels == 4:
        # A transparent pixel has no colour to give to its neighbours.
        alpha = "RGBA", "RGBa"
        premultiplied = _as_mode(pixels, *alpha)
        return _crop(_as_mode(_scale(premultiplied, *size, filter), *alpha[::-1]), geometry)
    return _crop(_scale(pixels, *size, filter), geometry)


def _as_mode(pixels: Pixels, mode: str, wanted: str) -> Pixels:
    height, width, channels = pixels.shape
    image = Image.frombytes(mode, (width, height), np.ascontiguousarray(pixels).tobytes())
    data = image.convert(wanted).tobytes()
    return np.frombuffer(data, np.uint8).reshape(height, width, channels)


def _scale(pixels: Pixels, width: int, height: int, filter: Filter) -> Pixels:
    match filter:
        case "area":
            return area_average(pixels, width, height)
        case "gaussian" | "fast":
            return _interpolated(pixels, width, height, smooth=filter == "gaussian")
        case _:
            return by_pillow(pixels, width, height, filter)


def _interpolated(pixels: Pixels, width: int, height: int, *, smooth: bool) -> Pixels:
    source_height, source_width, channels = pixels.shape
    across, down = max(1, source_width // width), max(1, source_height // height)
    wide, high = width * across, height * down
    source = np.ascontiguousarray(pixels)
    if smooth:
        source = _smoothed(source, sigma(source_width, wide), sigma(source_height, high))
    points = cv2.resize(source, (wide, high), interpolation=cv2.INTER_LINEAR_EXACT)
    fine = np.asarray(points, np.uint8).reshape(high, wide, channels)
    return fine if across == down == 1 else block_average(fine, across, down)


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


def _crop(pixels: Pixels, geometry: Geometry) -> Pixels:
    left = (geometry.width - geometry.crop_width) // 2
    top = (geometry.height - geometry.crop_height) // 2
    return pixels[top : top + geometry.crop_height, left : left + geometry.crop_width]
