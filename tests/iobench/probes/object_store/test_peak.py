"""Which object size and how many streams are enough."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.probes.object_store.figures import Point, find_peak

pytestmark = pytest.mark.slow

MB = 10**6
SIZES = [Point(MB, 8, 400.0), Point(8 * MB, 8, 900.0), Point(64 * MB, 8, 930.0)]
STREAMS = [
    *(Point(8 * MB, 1, 120.0), Point(8 * MB, 16, 1790.0)),
    *(Point(8 * MB, 32, 1800.0), Point(8 * MB, 64, 1760.0)),
]
POINTS = st.lists(
    st.builds(
        Point,
        st.sampled_from([5_000, MB, 8 * MB, 64 * MB]),
        st.sampled_from([1, 2, 8, 64]),
        st.floats(0, 1e5),
    ),
    min_size=1,
    max_size=20,
)


def test_each_question_is_answered_within_its_own_sweep() -> None:
    """A size is enough by the rates at its connections, however many more connections reach."""
    peak = find_peak(SIZES + STREAMS)
    assert (peak.peak_mb_per_s, peak.object_bytes, peak.connections) == (1800.0, 8 * MB, 32)
    assert (peak.object_bytes_95, peak.connections_95) == (8 * MB, 16)
    assert peak.said == (
        "over 8 connections: objects of 8 MB reach 95 % of the peak; "
        "objects of 8 MB: 16 connections reach 95 % of the peak"
    )


def test_a_sweep_that_still_rises_has_no_answer() -> None:
    """Where only the last point is within 95 %, nothing says that the rate ends there."""
    rising = [Point(MB, 1, 100.0), Point(MB, 2, 200.0), Point(MB, 4, 400.0)]
    peak = find_peak([*rising, Point(100_000, 4, 40.0)])
    assert (peak.object_bytes_95, peak.connections_95) == (None, None)
    assert peak.said == (
        "over 4 connections: 95 % of the peak not reached within the sweep, still rising at 1 MB; "
        "objects of 1 MB: 95 % of the peak not reached within the sweep, still rising with "
        "4 connections"
    )


def test_one_point_answers_nothing() -> None:
    """A single point has a rate, and no sweep."""
    peak = find_peak([Point(5_000, 1, 3.0)])
    assert (peak.peak_mb_per_s, peak.object_bytes_95, peak.connections_95) == (3.0, None, None)
    assert peak.said == (
        "over 1 connection: no sizes were swept; objects of 5 kB: no connections were swept"
    )


@given(POINTS, st.randoms(use_true_random=False))
def test_the_order_of_points_does_not_matter(points: list[Point], random: object) -> None:
    """Interleaved trials are the same measurement."""
    points = list({point[:2]: point for point in points}.values())
    shuffled = list(points)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert find_peak(shuffled) == find_peak(points)


@given(POINTS)
def test_what_is_enough_is_the_least_that_is(points: list[Point]) -> None:
    """The answer reaches 95 % of its sweep's best, and nothing smaller in that sweep does."""
    distinct = list({point[:2]: point for point in points}.values())
    peak = find_peak(distinct)
    assert peak.peak_mb_per_s == max(point.mb_per_s for point in distinct)
    by_size = {p.object_bytes: p.mb_per_s for p in distinct if p.connections == peak.at_connections}
    by_streams = {
        p.connections: p.mb_per_s for p in distinct if p.object_bytes == peak.at_object_bytes
    }
    for sweep, answer in ((by_size, peak.object_bytes_95), (by_streams, peak.connections_95)):
        enough = 0.95 * max(sweep.values())
        reaching = [place for place, rate in sweep.items() if rate >= enough]
        assert (answer or max(sweep)) == min(reaching)
        assert answer != max(sweep)
