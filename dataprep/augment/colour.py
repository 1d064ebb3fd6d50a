"""Colour jitter and lighting noise, both as one affine map of each pixel's RGB.

Brightness, contrast and saturation blend a pixel with black, with the image's mean grey and
with its own grey. Each blend is affine, so that any number of them in any order is one 3 x 4
matrix, applied in a single pass and clipped once (torchvision clips after each).
"""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from dataprep.image.geometry import Pixels

# ITU-R BT.601, as Pillow's and OpenCV's greyscale.
_LUMA = np.array([0.299, 0.587, 0.114])

# Principal components of RGB over ImageNet, for values from 0 to 1: the method is AlexNet's
# (Krizhevsky et al., "ImageNet classification with deep convolutional neural networks", NIPS
# 2012, section 4.1), the numbers are those of fb.resnet.torch, which MXNet has times 255.
EIGENVALUES = np.array([0.2175, 0.0188, 0.0045])
EIGENVECTORS = np.array(
    [
        [-0.5675, 0.7192, 0.4009],
        [-0.5808, -0.0045, -0.8140],
        [-0.5836, -0.6948, 0.4203],
    ]
)

Affine = tuple[NDArray[np.float64], NDArray[np.float64]]
"""A matrix (3, 3) and a shift (3,): ``rgb -> matrix @ rgb + shift``, values 0 to 255."""


def jitter(mean: NDArray[np.float64], strength: float, rng: np.random.Generator) -> Affine:
    """Brightness, contrast and saturation times factors of ``1 +- strength``, in random order.

    ``mean`` is the image's mean RGB, which contrast is relative to.
    """
    matrix, shift = np.eye(3), np.zeros(3)
    factors = 1 + strength * (2 * rng.random(3) - 1)
    for kind in rng.permutation(3).tolist():
        factor = factors[kind]
        if kind == 2:
            blend = factor * np.eye(3) + (1 - factor) * _LUMA
            matrix, shift = blend @ matrix, blend @ shift
        else:
            grey = _LUMA @ (matrix @ mean + shift) if kind == 1 else 0.0
            matrix, shift = factor * matrix, factor * shift + (1 - factor) * grey
    return matrix, shift


def lighting(strength: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """What AlexNet's lighting noise adds to each pixel; ``strength`` is its sigma (0.1)."""
    alpha = rng.standard_normal(3) * strength
    return np.asarray(255 * EIGENVECTORS @ (alpha * EIGENVALUES))


def recolour(
    pixels: Pixels,
    strength: float,
    noise: float,
    rng: np.random.Generator,
    out: Pixels | None = None,
) -> Pixels:
    """uint8 (H, W, 3) with jitter of ``strength`` and lighting noise of sigma ``noise``.

    Written into ``out`` if it is given, which may be ``pixels``.
    """
    matrix, shift = np.eye(3), np.zeros(3)
    if strength:
        matrix, shift = jitter(np.array(cv2.mean(pixels)[:3]), strength, rng)
    if noise:
        shift = shift + lighting(noise, rng)
    changed = cv2.transform(pixels, np.column_stack([matrix, shift]), out)
    return np.asarray(changed, np.uint8)
