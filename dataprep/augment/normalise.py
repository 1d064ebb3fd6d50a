"""Pixels as networks take them: channels first or last, uint8 or normalised float32."""

from __future__ import annotations

from functools import lru_cache

import cv2
import numpy as np
from numpy.typing import NDArray

from dataprep.image.pixels import Pixels

IMAGENET_MEAN = (0.485, 0.456, 0.406)
"""Of RGB from 0 to 1 over ImageNet's training images, as torchvision and the field have it."""

IMAGENET_STD = (0.229, 0.224, 0.225)


def channels_first(pixels: Pixels) -> Pixels:
    """uint8 (H, W, 3) as contiguous (3, H, W)."""
    height, width = pixels.shape[:2]
    planes = np.empty((3, height, width), np.uint8)
    cv2.split(pixels, list(planes))  # five times as fast as a transposed copy
    return planes


def normalise_planes(planes: Pixels) -> NDArray[np.float32]:
    """uint8 (3, H, W) as float32 of mean 0 and deviation 1 over ImageNet."""
    scale, shift = affine()
    values = planes.astype(np.float32)
    values *= scale[:, None, None]
    values += shift[:, None, None]
    return values


def normalise_rows(pixels: Pixels) -> NDArray[np.float32]:
    """uint8 (H, W, 3) as ``normalise_planes``, channels staying last."""
    height, width = pixels.shape[:2]
    scale, shift = affine()
    # A whole row at a time: broadcasting over a last axis of 3 is several times slower.
    values = pixels.reshape(height, -1).astype(np.float32)
    values *= np.tile(scale, width)
    values += np.tile(shift, width)
    return values.reshape(height, width, 3)


@lru_cache(maxsize=1)
def affine() -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """What a uint8 value is multiplied by, and what is added then: float32 (3,) each."""
    mean, std = np.array(IMAGENET_MEAN), np.array(IMAGENET_STD)
    return (1 / (255 * std)).astype(np.float32), (-mean / std).astype(np.float32)
