"""Tests of dataprep.image.padded."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from dataprep.image.padded import bgrx, rgb
from dataprep.image.pixels import Pixels

MEMORY = np.random.default_rng(0).integers(0, 256, (7, 5, 4), dtype=np.uint8)


def test_colours_of_padded_memory() -> None:
    """Red comes first, and nothing is copied."""
    colours = rgb(MEMORY)
    assert colours.tolist() == MEMORY[:, :, [2, 1, 0]].tolist()
    assert np.shares_memory(colours, MEMORY)


@pytest.mark.parametrize(
    "part",
    [
        lambda pixels: pixels,
        lambda pixels: pixels[2:6, 1:4],
        lambda pixels: pixels[6:, 4:],
        lambda pixels: pixels[::-1],
    ],
)
def test_padded_memory_is_found_again(part: Callable[[Pixels], Pixels]) -> None:
    """Of a crop too, without a copy."""
    found = bgrx(part(rgb(MEMORY)))
    assert np.shares_memory(found, MEMORY)
    assert found.tolist() == part(MEMORY).tolist()


def test_all_of_the_memory_is_found_as_it_is() -> None:
    """The usual case takes no view of a view."""
    assert bgrx(rgb(MEMORY)) is MEMORY


@pytest.mark.parametrize(
    "pixels",
    [
        np.ascontiguousarray(rgb(MEMORY)),
        np.rot90(rgb(MEMORY)),
        rgb(MEMORY)[:, ::-1],
        MEMORY[:, :, :3],
        np.asfortranarray(MEMORY[:, :, :3]),
    ],
    ids=["plain", "turned", "mirrored", "first three", "by columns"],
)
def test_other_memory_is_copied(pixels: Pixels) -> None:
    """Whatever its strides, the colours stay what they are."""
    assert bgrx(pixels)[:, :, :3].tolist() == pixels[:, :, ::-1].tolist()
