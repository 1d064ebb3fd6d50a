"""Pixels as networks take them: channels first or last, uint8 or normalised float32."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from dataprep.image.geometry import Pixels

IMAGENET_MEAN = (0.485, 0.456, 0.406)
"""Of RGB from 0 to 1 over ImageNet's training images, as torchvision and the field have it."""

IMAGENET_STD = (0.229, 0.224, 0.225)


def write_planes(pixels: Pixels, out: NDArray[Any]) -> None:
    """uint8 (H, W, 3) into contiguous (3, H, W): as they are, or normalised where it is float32."""
    if out.dtype == np.uint8:
        cv2.split(pixels, list(out))  # five times as fast as a transposed copy
        return
    planes = np.empty(out.shape, np.uint8)
    cv2.split(pixels, list(planes))
    scale, shift = affine()
    _write(planes, scale[:, None, None], shift[:, None, None], out)


def write_rows(pixels: Pixels, out: NDArray[Any]) -> None:
    """uint8 (H, W, 3) into contiguous (H, W, 3), as ``write_planes``."""
    if out.dtype == np.uint8:
        np.copyto(out, pixels)
        return
    height, width = pixels.shape[:2]
    scale, shift = affine()
    # A whole row at a time: broadcasting over a last axis of 3 is several times slower.
    rows = out.reshape(height, -1)
    _write(pixels.reshape(height, -1), np.tile(scale, width), np.tile(shift, width), rows)


def _write(
    values: Pixels, scale: NDArray[np.float32], shift: NDArray[np.float32], out: NDArray[np.float32]
) -> None:
    np.copyto(out, values)
    np.multiply(out, scale, out=out)
    np.add(out, shift, out=out)


@lru_cache(maxsize=1)
def affine() -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """What a uint8 value is multiplied by, and what is added then: float32 (3,) each."""
    mean, std = np.array(IMAGENET_MEAN), np.array(IMAGENET_STD)
    return (1 / (255 * std)).astype(np.float32), (-mean / std).astype(np.float32)
