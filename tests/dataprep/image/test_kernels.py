"""Tests of dataprep.image.kernels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from dataprep.image.kernels import convolve, weights
from dataprep.sample.drawing import draw_image

PHOTO = draw_image(4, 250, 190, detail=0.3)
SOFT = (64 + PHOTO // 2).astype(np.uint8)  # so that nothing overshoots between the passes
FILTERS = ["bilinear", "bicubic"]
SIDES = st.integers(1, 300)


@pytest.mark.parametrize("filter", FILTERS)
@given(source=SIDES, target=SIDES)
def test_weights_sum_to_one(filter: str, source: int, target: int) -> None:
    """As nearly as whole numbers can, and each target pixel looks within the source."""
    along = weights(source, target, filter)
    sums = along.values.sum(axis=1)
    taps = (along.values != 0).sum(axis=1)
    assert (abs(sums - (1 << along.bits)) <= taps / 2).all()
    assert along.first.min() >= 0
    assert (along.first + taps).max() <= source
    assert along.values.max() < 1 << 15


@pytest.mark.parametrize("filter", FILTERS)
@given(source=SIDES, target=SIDES)
def test_weights_are_symmetric(filter: str, source: int, target: int) -> None:
    """A mirrored image gives a mirrored result, within the rounding of a double."""
    along = weights(source, target, filter)
    dense = np.zeros((target, source), int)
    for pixel, (first, row) in enumerate(zip(along.first, along.values, strict=True)):
        kept = row[: source - first]
        dense[pixel, first : first + len(kept)] = kept
    assert abs(dense - dense[::-1, ::-1]).max() <= 1


@pytest.mark.parametrize("filter", FILTERS)
@given(value=st.integers(0, 255), sides=st.tuples(SIDES, SIDES))
def test_a_plain_image_stays_plain(filter: str, value: int, sides: tuple[int, int]) -> None:
    """No weight is lost to rounding, whatever the reduction."""
    plain = np.full((61, 40, 1), value, np.uint8)
    assert (convolve(plain, *sides, filter) == value).all()


@pytest.mark.parametrize(("filter", "native"), [("bilinear", "BILINEAR"), ("bicubic", "BICUBIC")])
@pytest.mark.parametrize("size", [(125, 95), (171, 130), (33, 190), (7, 5), (250, 40), (400, 300)])
def test_kernels_are_pillows(filter: str, native: str, size: tuple[int, int]) -> None:
    """Pillow's weights have 7 bits more, and it goes across first: 2 of 255 lie between."""
    wanted = np.asarray(Image.fromarray(SOFT).resize(size, Image.Resampling[native]))
    assert abs(convolve(SOFT, *size, filter).astype(int) - wanted).max() <= 2


@pytest.mark.parametrize("filter", FILTERS)
def test_the_same_size_changes_nothing(filter: str) -> None:
    """Neither side is touched."""
    assert np.array_equal(convolve(PHOTO, 250, 190, filter), PHOTO)
