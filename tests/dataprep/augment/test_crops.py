"""Tests of dataprep.augment.crops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.augment.crops import AREA, ASPECT, Box, centre_crop, random_crop

sides = st.integers(1, 2000)
seeds = st.integers(0, 2**32)


class TestRandomCrop:
    @given(sides, sides, seeds)
    def test_lies_within(self, width: int, height: int, seed: int) -> None:
        """Whatever the image, the part is not empty and lies within it."""
        box = random_crop(width, height, np.random.default_rng(seed))
        assert 0 <= box.left < box.left + box.width <= width
        assert 0 <= box.top < box.top + box.height <= height

    @given(st.integers(200, 2000), seeds)
    def test_area_and_aspect(self, side: int, seed: int) -> None:
        """Area and aspect are those asked for, but for rounding."""
        box = random_crop(side, side, np.random.default_rng(seed))
        share = box.width * box.height / side**2
        assert AREA[0] * 0.96 <= share <= AREA[1]
        assert ASPECT[0] * 0.96 <= box.width / box.height <= ASPECT[1] * 1.04

    def test_fills_its_ranges(self) -> None:
        """Areas, aspects and places reach from one end of their ranges to the other."""
        rng = np.random.default_rng(0)
        boxes = [random_crop(500, 500, rng) for _ in range(3000)]
        shares = [box.width * box.height / 500**2 for box in boxes]
        assert min(shares) < 0.09
        assert max(shares) > 0.95
        logs = np.log([box.width / box.height for box in boxes])
        assert abs(logs.mean()) < 0.02  # tall as often as wide, since it is log-uniform
        small = [box for box in boxes if box.width < 200 and box.height < 200]
        places = [box.left / (500 - box.width) for box in small]
        assert min(places) < 0.02
        assert max(places) > 0.98

    @pytest.mark.parametrize(
        ("size", "box"),
        [((1000, 10), Box(493, 0, 13, 10)), ((10, 1000), Box(0, 493, 10, 13))],
        ids=["wide", "tall"],
    )
    def test_fallback(self, size: tuple[int, int], box: Box) -> None:
        """Where no try fits it is the largest allowed part of the centre."""
        rng = np.random.default_rng(0)
        assert random_crop(*size, rng, area=(0.9, 1.0)) == box

    def test_repeats(self) -> None:
        """The same generator gives the same part."""
        assert random_crop(400, 300, np.random.default_rng(7)) == random_crop(
            400, 300, np.random.default_rng(7)
        )


class TestCentreCrop:
    @given(sides, sides)
    def test_is_a_centred_square(self, width: int, height: int) -> None:
        """224 of 256 parts of the short side, as far from one edge as from the other."""
        box = centre_crop(width, height)
        assert box.width == box.height == max(1, round(min(width, height) * 7 / 8))
        assert 0 <= width - box.width - 2 * box.left <= 1
        assert 0 <= height - box.height - 2 * box.top <= 1
