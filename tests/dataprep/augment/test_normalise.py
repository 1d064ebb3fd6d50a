"""Tests of dataprep.augment.normalise."""

from __future__ import annotations

import numpy as np

from dataprep.augment.normalise import IMAGENET_MEAN, IMAGENET_STD, write_planes, write_rows

PIXELS = np.random.default_rng(0).integers(0, 256, (12, 17, 3)).astype(np.uint8)
EXPECTED = (PIXELS / 255 - IMAGENET_MEAN) / IMAGENET_STD


def test_planes_of_pixels() -> None:
    """Planes are the transposed pixels."""
    planes = np.empty((3, 12, 17), np.uint8)
    write_planes(PIXELS, planes)
    assert np.array_equal(planes, PIXELS.transpose(2, 0, 1))


def test_rows_of_pixels() -> None:
    """Channels last are the pixels themselves."""
    rows = np.empty((12, 17, 3), np.uint8)
    write_rows(PIXELS, rows)
    assert np.array_equal(rows, PIXELS)


def test_planes() -> None:
    """Values are (x / 255 - mean) / std."""
    values = np.empty((3, 12, 17), np.float32)
    write_planes(PIXELS, values)
    assert np.allclose(values, EXPECTED.transpose(2, 0, 1), atol=1e-5)


def test_rows() -> None:
    """Channels last is the same."""
    values = np.empty((12, 17, 3), np.float32)
    write_rows(PIXELS, values)
    assert np.allclose(values, EXPECTED, atol=1e-5)


def test_a_slot_of_a_batch() -> None:
    """What lies beside a slot stays as it was."""
    batch = np.full((3, 3, 12, 17), 7, np.float32)
    write_planes(PIXELS, batch[1])
    assert np.allclose(batch[1], EXPECTED.transpose(2, 0, 1), atol=1e-5)
    assert (batch[::2] == 7).all()
