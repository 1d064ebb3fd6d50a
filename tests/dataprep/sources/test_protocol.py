"""Tests of dataprep.sources.protocol."""

from __future__ import annotations

import numpy as np

from dataprep.sources import Listing, Located, Problem


def test_rows_are_sorted_and_their_own_order_kept() -> None:
    """Every column goes with its name; ``order`` leads back to how rows came."""
    listing = Listing.sorted(
        ["b", "a", "\udcff", "a"],
        [2, 1, 4, 3],
        ["B", "A", "C", "D"],
        {3: Problem("skipped", "again")},
        containers=["s", "t", "u", "v"],
        offsets=np.array([20, 10, 40, 30]),
        values=np.array([[2.0], [1.0], [4.0], [3.0]], np.float32),
    )
    assert listing.names == ["a", "a", "b", "\udcff"]
    assert listing.sizes.tolist() == [1, 3, 2, 4]
    assert listing.classes == ["A", "", "B", "C"]
    assert listing.problems == {1: Problem("skipped", "again")}
    assert listing.located(2) == Located("b", 2, "s", 20)
    assert listing.values is not None
    assert listing.values.ravel().tolist() == [1, 3, 2, 4]
    assert listing.order is not None
    assert listing.order.tolist() == [2, 0, 3, 1]


def test_nothing_is_sorted_into_nothing() -> None:
    """A source may be empty."""
    assert len(Listing.sorted([], [], [], {})) == 0
