"""Statistics: intervals against a count of all outcomes, and quantiles of enough samples."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.results.statistics import (
    QUANTILES,
    estimate,
    has_enough_values,
    median,
    missing_values,
    quantile,
    quantiles,
    ratio,
)

figures = st.floats(1e-9, 1e9)
samples = st.lists(figures, min_size=1, max_size=40)


def coverage_of(count: int, cut: int) -> Fraction:
    """Return the share of all sequences in which the order statistics hold the median.

    Each value lies below the true median as often as above it. The interval from the cut-th value
    to the cut-th last holds the median unless at most ``cut`` values lie on one side of it.
    """
    sides = itertools.product((False, True), repeat=count)
    held = sum(cut < sum(below) < count - cut for below in sides)
    return Fraction(held, 2**count)


@pytest.mark.parametrize("count", range(1, 15))
def test_interval_is_the_narrowest_that_covers(count: int) -> None:
    """The interval cuts off as many values as possible while it covers 95 %."""
    estimated = estimate(range(count))
    cut = int(estimated.low)
    assert (estimated.low, estimated.high) == (cut, count - 1 - cut)
    assert estimated.coverage == pytest.approx(float(coverage_of(count, cut)), abs=1e-12)
    assert cut == 0 or estimated.coverage >= 0.95
    narrower = cut + 1
    assert 2 * narrower >= count or coverage_of(count, narrower) < Fraction(95, 100)


@pytest.mark.parametrize(
    ("count", "low", "high", "coverage"),
    [
        (1, 1, 1, 0.0),
        (2, 1, 2, 0.5),
        (3, 1, 3, 0.75),
        (5, 1, 5, 0.9375),
        (6, 1, 6, 0.96875),
        (8, 1, 8, 0.9921875),
        (9, 2, 8, 0.9609375),
        (10, 2, 9, 0.978515625),
    ],
)
def test_known_intervals(count: int, low: int, high: int, coverage: float) -> None:
    """Intervals equal tables of the sign test: minimum to maximum of 6 covers 96.9 %."""
    estimated = estimate(range(1, count + 1))
    assert (estimated.low, estimated.high) == (low, high)
    assert (estimated.coverage, estimated.repeats) == (coverage, count)


def test_many_repeats_have_an_interval() -> None:
    """The interval of 4,000 values begins about 62 values from the middle."""
    estimated = estimate(range(4000))
    assert estimated.coverage == pytest.approx(0.95, abs=0.003)
    assert estimated.median - estimated.low == pytest.approx(62, abs=1)


@given(samples)
def test_estimate_lies_among_its_values(values: list[float]) -> None:
    """Both ends of the interval are measured values, and the median lies between them."""
    estimated = estimate(values)
    assert {estimated.low, estimated.high} <= set(values)
    assert estimated.low <= estimated.median <= estimated.high
    assert estimated.repeats == len(values)


@given(samples, st.randoms(use_true_random=False))
def test_order_does_not_matter(values: list[float], random: object) -> None:
    """An estimate does not depend on the order of the repeats."""
    shuffled = list(values)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert estimate(shuffled) == estimate(values)


@given(samples, st.integers(-20, 20))
def test_units_do_not_matter(values: list[float], power: int) -> None:
    """Other units scale the figures and leave the coverage as it is."""
    factor = 2.0**power  # Products with powers of two are exact.
    estimated, scaled = estimate(values), estimate([value * factor for value in values])
    low, median, high = estimated.low, estimated.median, estimated.high
    assert scaled == replace(
        estimated, low=low * factor, median=median * factor, high=high * factor
    )


@given(st.lists(st.tuples(figures, figures), min_size=1, max_size=20))
def test_larger_values_never_lower_an_estimate(pairs: list[tuple[float, float]]) -> None:
    """Median and both ends are monotone in every value."""
    small, large = estimate([min(pair) for pair in pairs]), estimate([max(pair) for pair in pairs])
    assert small.low <= large.low
    assert small.median <= large.median
    assert small.high <= large.high


@given(samples)
def test_median_has_as_much_above_as_below(values: list[float]) -> None:
    """At most half of the values lie strictly on either side."""
    middle = median(values)
    assert 2 * sum(value < middle for value in values) <= len(values)
    assert 2 * sum(value > middle for value in values) <= len(values)


def test_median_of_huge_values_is_finite() -> None:
    """The mean of the middle two does not overflow."""
    assert median([1.6e308, 1.6e308]) == 1.6e308


def test_nothing_has_no_figure() -> None:
    """An estimate of no values is an error instead of zero."""
    for figure in (median, estimate, lambda values: quantile(values, 0.5)):
        with pytest.raises(ValueError, match="no values"):
            figure([])
    assert quantiles([]) == {}


@given(st.lists(st.tuples(figures, figures), min_size=1, max_size=12))
def test_ratios_are_taken_within_pairs(pairs: list[tuple[float, float]]) -> None:
    """The ratio is the median of the pairs' ratios, whatever the sides' medians are."""
    above, below = zip(*pairs, strict=True)
    assert ratio(above, below) == estimate([a / b for a, b in pairs])


def test_ratio_cancels_what_both_of_a_pair_share() -> None:
    """A machine that slows down from pair to pair does not widen the interval of their ratio."""
    drift = [1, 2, 4, 8, 16, 32]
    ratio_estimate = ratio([3.0 * slow for slow in drift], [2.0 * slow for slow in drift])
    assert (ratio_estimate.low, ratio_estimate.median, ratio_estimate.high) == (1.5, 1.5, 1.5)


def test_unpaired_sides_have_no_ratio() -> None:
    """Sides of different length are refused."""
    with pytest.raises(ValueError, match="argument 2 is shorter"):
        ratio([1.0, 2.0], [1.0])


@pytest.mark.parametrize(
    ("name", "needed"), [("p50", 20), ("p90", 100), ("p95", 200), ("p99", 1000), ("p999", 10_000)]
)
def test_quantile_needs_ten_samples_beyond_it(name: str, needed: int) -> None:
    """q is given from 10 / (1 - q) samples on, and not one sample earlier."""
    assert name not in quantiles([1.0] * (needed - 1))
    assert quantiles([1.0] * needed)[name] == 1.0


def test_the_missing_samples_make_a_quantile_known() -> None:
    """This holds for every quantile and number of samples."""
    for q in QUANTILES.values():
        for count in (0, 1, 19, 20, 99, 100, 101, 999, 1_000, 9_999, 10_000):
            lacking = missing_values(count, q)
            assert has_enough_values(count + lacking, q)
            assert lacking == 0 or not has_enough_values(count + lacking - 1, q)


@given(st.lists(figures, min_size=1, max_size=60), st.floats(0, 1), st.floats(0, 1))
def test_quantiles_are_monotone(values: list[float], share: float, other: float) -> None:
    """A higher quantile is not lower; 0 and 1 are minimum and maximum."""
    low, high = sorted((share, other))
    assert quantile(values, low) <= quantile(values, high) * (1 + 1e-12)
    assert (quantile(values, 0), quantile(values, 1)) == (min(values), max(values))


@given(st.integers(1, 200), st.integers(0, 100))
def test_quantile_of_evenly_spaced_values_is_linear(count: int, percent: int) -> None:
    """The q quantile of 0 to N - 1 is q (N - 1)."""
    assert quantile(range(count), percent / 100) == pytest.approx(percent / 100 * (count - 1))
