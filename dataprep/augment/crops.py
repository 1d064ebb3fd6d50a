"""Which part of an image a training sample shows."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

AREA = (0.08, 1.0)
ASPECT = (3 / 4, 4 / 3)
TRIES = 10
EVALUATION_SHARE = 224 / 256
"""Of the short side: scale to 256, cut out 224, whatever the size asked for."""


class Box(NamedTuple):
    """A rectangle within an image, in pixels."""

    left: int
    top: int
    width: int
    height: int


def random_crop(
    width: int,
    height: int,
    rng: np.random.Generator,
    area: tuple[float, float] = AREA,
    aspect: tuple[float, float] = ASPECT,
) -> Box:
    """A random part of ``area`` shares of the image, its aspect log-uniform in ``aspect``.

    Ten tries; then the largest part at the centre whose aspect is allowed. Source: Szegedy et
    al., "Going deeper with convolutions", CVPR 2015, section 6, in the form that fb.resnet.torch
    and torchvision gave it.
    """
    low, high = math.log(aspect[0]), math.log(aspect[1])
    for _ in range(TRIES):
        share, shape, across, down = rng.random(4).tolist()
        pixels = width * height * (area[0] + share * (area[1] - area[0]))
        ratio = math.exp(low + shape * (high - low))
        crop_width, crop_height = round(math.sqrt(pixels * ratio)), round(math.sqrt(pixels / ratio))
        if 0 < crop_width <= width and 0 < crop_height <= height:
            left = int(across * (width - crop_width + 1))
            top = int(down * (height - crop_height + 1))
            return Box(left, top, crop_width, crop_height)
    ratio = min(max(width / height, aspect[0]), aspect[1])
    return _centred(width, height, min(width, round(height * ratio)), min(height, width / ratio))


def centre_crop(width: int, height: int, share: float = EVALUATION_SHARE) -> Box:
    """The square at the centre whose side is ``share`` of the short side."""
    side = share * min(width, height)
    return _centred(width, height, side, side)


def _centred(width: int, height: int, crop_width: float, crop_height: float) -> Box:
    across, down = max(1, round(crop_width)), max(1, round(crop_height))
    return Box((width - across) // 2, (height - down) // 2, across, down)
