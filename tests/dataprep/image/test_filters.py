"""Tests of dataprep.image.filters."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from dataprep.image.filters import area_average, lanczos
from dataprep.image.pixels import Pixels
from dataprep.sample.drawing import draw_image

PHOTO = draw_image(4, 250, 190, detail=0.3)


def exact_area(row: NDArray[Any], target: int) -> list[int]:
    """One row by fractions: each target pixel's own piece of the axis, halves rounded up."""
    size = len(row)
    result = []
    for i in range(target):
        start, stop = Fraction(i * size, target), Fraction((i + 1) * size, target)
        total = sum(
            int(value) * max(Fraction(0), min(stop, Fraction(x + 1)) - max(start, Fraction(x)))
            for x, value in enumerate(row)
        )
        result.append(int(total / (stop - start) + Fraction(1, 2)))
    return result


@given(row=st.binary(min_size=1, max_size=24), target=st.integers(1, 30), down=st.booleans())
def test_area_is_the_mean_of_the_area(row: bytes, target: int, down: bool) -> None:
    """Across and down, growing and shrinking, each pixel is the exact mean of what it covers."""
    values = np.frombuffer(row, np.uint8)
    image = values.reshape(-1, 1, 1) if down else values.reshape(1, -1, 1)
    size = (1, target) if down else (target, 1)
    assert area_average(image, *size).ravel().tolist() == exact_area(values, target)


@pytest.mark.parametrize("size", [(100, 76), (250, 60), (33, 190), (7, 5), (300, 200)])
def test_area_is_that_of_opencv(size: tuple[int, int]) -> None:
    """Shrinking agrees with OpenCV's INTER_AREA to within 1."""
    if size > (250, 190):
        assert area_average(PHOTO, *size).shape == (size[1], size[0], 3)
        return
    wanted = np.asarray(cv2.resize(PHOTO, size, interpolation=cv2.INTER_AREA))
    assert np.abs(area_average(PHOTO, *size).astype(int) - wanted).max() <= 1


@given(height=st.integers(1, 700), rows=st.integers(1, 700))
def test_area_of_more_rows_than_are_held_at_a_time(height: int, rows: int) -> None:
    """An image is averaged a few hundred rows at a time; nobody can tell."""
    column = np.arange(height).astype(np.uint8)
    sums = np.repeat(column.astype(int), rows).reshape(rows, height).sum(axis=1)
    found = area_average(column.reshape(-1, 1, 1), 1, rows)
    assert found.ravel().tolist() == ((2 * sums + height) // (2 * height)).tolist()


@pytest.mark.parametrize("channels", [1, 3])
def test_lanczos_is_pillows(channels: int) -> None:
    """To the bit."""
    pixels: Pixels = PHOTO[:, :, :channels]
    image = Image.fromarray(pixels[:, :, 0].copy() if channels == 1 else pixels)
    wanted = np.asarray(image.resize((99, 77), Image.Resampling.LANCZOS)).reshape(77, 99, channels)
    assert np.array_equal(lanczos(pixels, 99, 77), wanted)
