"""Rates by number of workers: between the measured counts, and a little beyond them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.analysis.worker_scaling import Scalability, fitted, rate_at_workers
from iobench.results.statistics import Estimate

laws = st.builds(Scalability, st.floats(1, 1e4), st.floats(0, 0.5), st.floats(0, 0.02))


def measured(rates: dict[int, float], width: float = 0.0) -> dict[int, Estimate]:
    """Return estimates of these rates, whose intervals extend by ``width`` times the rate."""
    return {
        count: Estimate(rate, rate * (1 - width), rate * (1 + width), 0.97, 6)
        for count, rate in rates.items()
    }


@given(laws, st.lists(st.integers(1, 64), min_size=3, max_size=6, unique=True))
def test_the_law_is_found_again(law: Scalability, counts: list[int]) -> None:
    """Rates that follow the universal scalability law give its coefficients back."""
    fitted_law = fitted({count: law.rate(count) for count in counts})
    for count in range(1, 65):
        if count <= 2 * max(counts):
            assert fitted_law.rate(count) == pytest.approx(law.rate(count), rel=0.01)


@given(laws, st.floats(0, 0.03))
def test_the_interval_of_an_extrapolation_holds_the_truth(law: Scalability, width: float) -> None:
    """The interval of the extrapolation is wider than those of the measured rates."""
    points = measured({count: law.rate(count) for count in (1, 2, 4)}, width)
    predicted_rate = rate_at_workers(points, 8, None)
    assert predicted_rate is not None
    assert predicted_rate.low <= law.rate(8) * 1.0001
    assert predicted_rate.high >= law.rate(8) * 0.9999
    assert predicted_rate.median == pytest.approx(law.rate(8), rel=0.01)
    if law.rate(8) > 1.3 * law.rate(4):
        assert predicted_rate.low < 0.95 * predicted_rate.median


@pytest.mark.parametrize("rates", [{1: 100.0}, {0: 100.0}, {1: 100.0, 2: 200.0}])
def test_one_or_two_counts_predict_nothing_beyond_them(rates: dict[int, float]) -> None:
    """One or two counts do not show how the rate grows."""
    assert rate_at_workers(measured(rates), 4, None) is None
    assert rate_at_workers(measured(rates), 4, 8) is None


def test_no_prediction_goes_beyond_twice_the_largest_count() -> None:
    """If four workers were measured, eight are predicted and nine are not."""
    points = measured({1: 100.0, 2: 195.0, 4: 370.0})
    assert rate_at_workers(points, 8, None) is not None
    assert rate_at_workers(points, 9, None) is None


def test_more_workers_than_processors_bring_nothing() -> None:
    """The predicted rate ends at the number of CPUs."""
    points = measured({1: 100.0, 2: 195.0, 4: 370.0})
    assert rate_at_workers(points, 8, 4) == points[4]
    six = rate_at_workers(points, 6, 6)
    assert six == rate_at_workers(points, 8, 6)


def test_a_curve_that_does_not_follow_the_law_is_not_extended() -> None:
    """Nothing is predicted from a curve that grows faster than its workers."""
    assert rate_at_workers(measured({1: 100.0, 2: 400.0, 4: 500.0}), 8, None) is None


def test_between_two_counts_the_rate_is_interpolated() -> None:
    """Two measured counts are enough."""
    predicted_rate = rate_at_workers(measured({2: 100.0, 4: 200.0}), 3, None)
    assert predicted_rate is not None
    assert predicted_rate.median == pytest.approx(150)
