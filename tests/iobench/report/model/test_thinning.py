"""Long curves drawn with fewer points."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from iobench.report.model.thinning import thinned

CURVES = st.lists(st.floats(-1e9, 1e9), max_size=500).map(lambda ys: list(enumerate(ys)))


@given(CURVES, st.integers(2, 60))
def test_outliers_stay(points: list[tuple[float, float]], most: int) -> None:
    """The greatest and the least of all are drawn, in the order of time."""
    kept = thinned(points, most)
    assert kept == sorted(kept)
    assert set(kept) <= set(points)
    assert len(kept) <= most + 2
    if points:
        assert {min(y for _, y in kept), max(y for _, y in kept)} == {
            min(y for _, y in points),
            max(y for _, y in points),
        }


def test_what_fits_is_left_alone() -> None:
    """Every point."""
    assert thinned([(0, 1), (1, 2)], 2) == [(0, 1), (1, 2)]
