"""Pixels turned, scaled and cropped, in whole numbers only.

The filters, all of them antialiased:

``bicubic``, the default, and ``bilinear``: convolution with a kernel as wide as the reduction, by
vector instructions (``resampling``).
``area``: the mean of the area that a pixel covers.
``lanczos``: Pillow's, with 3 lobes.

Where a JPEG shrinks, the first two get what libjpeg's inverse DCT has scaled by 1/2, 1/4 or 1/8
already; the others get the full image.
"""

from __future__ import annotations

import numpy as np
from PIL import Image

from dataprep.image.filters import area_average, lanczos
from dataprep.image.geometry import Geometry
from dataprep.image.pixels import Pixels
from dataprep.image.policy import Filter
from dataprep.image.resampling import resample


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
    return filter in ("bicubic", "bilinear")


def fit(pixels: Pixels, geometry: Geometry, filter: Filter = "bicubic") -> Pixels:
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
        case "lanczos":
            return lanczos(pixels, width, height)
        case _:
            return resample(pixels, width, height, filter)


def _crop(pixels: Pixels, geometry: Geometry) -> Pixels:
    left = (geometry.width - geometry.crop_width) // 2
    top = (geometry.height - geometry.crop_height) // 2
    return pixels[top : top + geometry.crop_height, left : left + geometry.crop_width]
