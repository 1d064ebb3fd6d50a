"""Tests of dataprep.augment.colour."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dataprep.augment.colour import EIGENVALUES, EIGENVECTORS, jitter, lighting, recolour

LUMA = np.array([0.299, 0.587, 0.114])


def picture(seed: int) -> Any:
    """Random pixels around the middle, so that little is clipped."""
    return np.random.default_rng(seed).integers(90, 160, (20, 30, 3)).astype(np.uint8)


def one_after_the_other(pixels: Any, strength: float, rng: np.random.Generator) -> Any:
    """Brightness, contrast and saturation as their definitions have them, in float64."""
    values = pixels.astype(float)
    factors = 1 + strength * (2 * rng.random(3) - 1)
    for kind in rng.permutation(3).tolist():
        grey = {0: 0.0, 1: (values @ LUMA).mean(), 2: (values @ LUMA)[..., None]}[kind]
        values = factors[kind] * values + (1 - factors[kind]) * grey
    return values


@given(st.integers(0, 2**32), st.floats(0.01, 0.4))
def test_jitter_is_three_blends(seed: int, strength: float) -> None:
    """One affine map does what the three blends do, in the same random order."""
    pixels = picture(seed)
    matrix, shift = jitter(pixels.mean((0, 1)), strength, np.random.default_rng(seed))
    expected = one_after_the_other(pixels, strength, np.random.default_rng(seed))
    assert np.allclose(pixels @ matrix.T + shift, expected)


@given(st.integers(0, 2**32))
def test_recolour_is_jitter_rounded(seed: int) -> None:
    """The picture that comes out is the map's, rounded (OpenCV's in fixed point) and clipped."""
    pixels = picture(seed)
    changed = recolour(pixels, 0.4, 0.0, np.random.default_rng(seed))
    expected = one_after_the_other(pixels, 0.4, np.random.default_rng(seed)).clip(0, 255)
    assert changed.dtype == np.uint8
    assert np.abs(changed - expected).max() < 1


def test_lighting_follows_the_components() -> None:
    """Over many draws the noise has the covariance of its principal components."""
    rng = np.random.default_rng(0)
    noise = np.array([lighting(0.1, rng) for _ in range(20_000)]) / 255
    components = EIGENVECTORS * (0.1 * EIGENVALUES)
    assert np.allclose(np.cov(noise.T), components @ components.T, rtol=0.05, atol=1e-6)
    assert np.abs(noise.mean(0)).max() < 1e-3


def test_components_are_orthonormal() -> None:
    """The published vectors are what they are said to be."""
    assert np.allclose(EIGENVECTORS.T @ EIGENVECTORS, np.eye(3), atol=1e-3)


def test_noise_is_one_colour_for_all_pixels() -> None:
    """Lighting noise shifts every pixel by the same amount."""
    pixels = picture(3)
    difference = recolour(pixels, 0.0, 0.1, np.random.default_rng(1)).astype(int) - pixels
    assert len(np.unique(difference.reshape(-1, 3), axis=0)) == 1
    assert difference.any()
