"""Tests of dataprep.augment.normalise."""

from __future__ import annotations

import numpy as np

from dataprep.augment.normalise import (
    IMAGENET_MEAN,
    IMAGENET_STD,
    channels_first,
    normalise_planes,
    normalise_rows,
)

PIXELS = np.random.default_rng(0).integers(0, 256, (12, 17, 3)).astype(np.uint8)
EXPECTED = (PIXELS / 255 - IMAGENET_MEAN) / IMAGENET_STD


def test_channels_first() -> None:
    """Planes are the transposed pixels, in memory of their own."""
    planes = channels_first(PIXELS)
    assert planes.flags.c_contiguous
    assert np.array_equal(planes, PIXELS.transpose(2, 0, 1))


def test_planes() -> None:
    """Values are (x / 255 - mean) / std, as float32."""
    values = normalise_planes(channels_first(PIXELS))
    assert values.dtype == np.float32
    assert np.allclose(values, EXPECTED.transpose(2, 0, 1), atol=1e-5)


def test_rows() -> None:
    """Channels last is the same."""
    values = normalise_rows(PIXELS)
    assert values.dtype == np.float32
    assert np.allclose(values, EXPECTED, atol=1e-5)
