"""Sizes and JPEG settings distributed as in ImageNet.

The figures were measured on 1,000 training images of ILSVRC2012, one from each class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeVar

import cv2
import numpy as np
import simplejpeg

from dataprep.sample.drawing import Pixels

_Value = TypeVar("_Value")
Subsampling = Literal["420", "444", "422"]

GREY_SHARE = 0.023
SUBSAMPLING_SHARES: dict[Subsampling, float] = {"420": 0.73, "444": 0.26, "422": 0.01}
_PORTRAIT_SHARE = 0.255
_QUALITY_SHARES = {96: 0.67, 93: 0.04, 90: 0.06, 85: 0.07, 80: 0.07, 75: 0.09}

# Flickr's medium size has a long side of 500, with the sensor's 4:3 or the film's 3:2.
_FLICKR_SHARE = 0.703
_FLICKR_SHORT_SHARES = {
    375: 0.39,
    333: 0.195,
    500: 0.017,
    334: 0.048,
    332: 0.027,
    335: 0.021,
    0: 0.302,
}
# Quantiles at equal steps from 0 to 1.
_FLICKR_SHORT = (188, 312, 336, 349, 357, 371, 379, 396, 413, 467, 500)
_OTHER_LONG = (
    *(75, 160, 207, 240, 300, 320, 341, 366, 400, 400, 450),
    *(480, 520, 560, 600, 620, 640, 690, 780, 1000, 1632),
)
_OTHER_ASPECT = (0.292, 0.658, 0.667, 0.699, 0.749, 0.75, 0.75, 0.775, 0.875, 1.0, 1.0)


@dataclass(frozen=True, slots=True)
class Shot:
    """One photograph before it is taken: its size in pixels and how it will be stored."""

    width: int
    height: int
    quality: int
    subsampling: Subsampling
    grey: bool


def draw_shot(rng: np.random.Generator | int) -> Shot:
    """Draw a size, a quality, a subsampling and whether the image is greyscale."""
    rng = np.random.default_rng(rng)
    long, short = _sides(rng)
    portrait = rng.random() < _PORTRAIT_SHARE
    return Shot(
        width=short if portrait else long,
        height=long if portrait else short,
        quality=_choose(rng, _QUALITY_SHARES),
        subsampling=_choose(rng, SUBSAMPLING_SHARES),
        grey=bool(rng.random() < GREY_SHARE),
    )


def encode_shot(image: Pixels, shot: Shot) -> bytes:
    """Encode an RGB image as baseline JPEG, in one channel where the shot is greyscale."""
    if shot.grey:
        luma = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)[..., None]
        return bytes(simplejpeg.encode_jpeg(luma, shot.quality, "GRAY", "Gray", fastdct=False))
    return bytes(
        simplejpeg.encode_jpeg(image, shot.quality, "RGB", shot.subsampling, fastdct=False)
    )


def _sides(rng: np.random.Generator) -> tuple[int, int]:
    if rng.random() < _FLICKR_SHARE:
        short = _choose(rng, _FLICKR_SHORT_SHARES)
        return 500, short or round(_quantile(rng, _FLICKR_SHORT))
    long = _quantile(rng, _OTHER_LONG)
    return round(long), max(1, round(long * _quantile(rng, _OTHER_ASPECT)))


def _quantile(rng: np.random.Generator, quantiles: tuple[float, ...]) -> float:
    return float(np.interp(rng.random(), np.linspace(0, 1, len(quantiles)), quantiles))


def _choose(rng: np.random.Generator, shares: dict[_Value, float]) -> _Value:
    ends = np.cumsum(list(shares.values()))
    return list(shares)[int(np.searchsorted(ends / ends[-1], rng.random(), side="right"))]
