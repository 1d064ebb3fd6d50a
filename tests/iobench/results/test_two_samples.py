"""Two runs: intervals and p-values against a count of all orders, and against simulation."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Sequence

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from iobench.results.statistics import (
    MOST_REPEATS,
    MoreRepeats,
    Ratio,
    has_ratio,
    holm,
    median,
    more_repeats_to_be_significant,
    more_repeats_to_detect,
    p_value,
    smallest_p_value,
    unpaired_ratio,
)

figures = st.floats(1e-6, 1e6)
samples = st.lists(figures, min_size=1, max_size=9)


def outside(base: int, new: int, cut: int) -> float:
    """The share of orders of two like samples in which their shift is not held, all counted.

    ``U`` is how many of the pairs have the new value above the base's. The shift lies between the
    ratios that ``cut`` leaves out at each end where more than ``cut`` pairs lie on either side.
    """
    locations = range(base + new)
    orders = list(itertools.combinations(locations, new))
    us = [
        sum(1 for mine in chosen for other in locations if other not in chosen and other < mine)
        for chosen in orders
    ]
    return sum(not cut < u < base * new - cut for u in us) / len(orders)


@pytest.mark.parametrize(("base", "new"), [(2, 8), (3, 5), (4, 4), (4, 6), (5, 5), (6, 6), (3, 9)])
def test_the_interval_is_the_narrowest_that_covers(base: int, new: int) -> None:
    """Of all orders in which two like samples can lie at most 5 % leave their shift out."""
    before, after = [2.0**i for i in range(base)], [2.0 ** (20 * i) for i in range(new)]
    ratio = unpaired_ratio(before, after)
    ratios = sorted(b / a for a in before for b in after)
    cut = ratios.index(ratio.low)
    assert ratio.high == ratios[-1 - cut]
    assert ratio.coverage == pytest.approx(1 - outside(base, new, cut), abs=1e-12)
    assert ratio.coverage >= 0.95
    assert 1 - outside(base, new, cut + 1) < 0.95


@pytest.mark.parametrize(
    ("base", "new", "coverage"),
    [
        (1, 1, 0.0),
        (2, 2, 1 - 2 / 6),
        (3, 3, 0.9),
        (3, 4, 1 - 2 / 35),
        (4, 4, 1 - 2 / 70),
        (6, 6, 1 - 2 * 19 / 924),
        (1, 39, 0.95),
    ],
)
def test_known_coverages(base: int, new: int, coverage: float) -> None:
    """As tables of the Mann-Whitney test give them: at 6 against 6 its critical value is 5."""
    ratio = unpaired_ratio([1.0] * base, [2.0] * new)
    assert ratio.coverage == pytest.approx(coverage, abs=1e-12)
    assert (ratio.base_repeats, ratio.new_repeats) == (base, new)
    assert ratio.has_full_coverage == (coverage >= 0.95)


def test_the_normal_law_goes_on_where_counting_ends() -> None:
    """51 against 50 are no different from 50 against 50 but for one repeat."""
    counted = unpaired_ratio([1.0 + i / 500 for i in range(50)], [1.0 + i / 500 for i in range(50)])
    further = unpaired_ratio([1.0 + i / 500 for i in range(50)], [1.0 + i / 500 for i in range(51)])
    assert further.coverage == pytest.approx(counted.coverage, abs=5e-4)
    assert further.high - further.low == pytest.approx(counted.high - counted.low, rel=0.05)


def held(draw: Callable[[random.Random], tuple[list[float], list[float]]], shift: float) -> float:
    """Of 4,000 pairs of runs, the share whose interval holds ``shift``."""
    source = random.Random(20261122)
    ratios = (unpaired_ratio(*draw(source)) for _ in range(4000))
    return sum(entry.low <= shift <= entry.high for entry in ratios) / 4000


def scattered(source: random.Random, middle: float, deviation: float) -> list[float]:
    """Six repeats whose logarithms are normal."""
    return [middle * math.exp(source.gauss(0, deviation)) for _ in range(6)]


def test_coverage_at_six_against_six() -> None:
    """What is stated, 95.9 %, is what a simulation finds, for a narrow law and a skewed one."""
    stated = unpaired_ratio([1.0] * 6, [1.0] * 6).coverage
    tolerance = 3.3 * math.sqrt(stated * (1 - stated) / 4000)
    for draw in (
        lambda source: (scattered(source, 3, 0.02), scattered(source, 2.7, 0.02)),
        lambda source: (scattered(source, 3, 1.5), scattered(source, 2.7, 1.5)),
    ):
        assert held(draw, 0.9) == pytest.approx(stated, abs=tolerance)


def test_coverage_where_one_run_scatters_ten_times_as_much() -> None:
    """It stays near 95 %, as the module says."""
    share = held(lambda source: (scattered(source, 3, 0.01), scattered(source, 2.7, 0.1)), 0.9)
    assert 0.94 < share < 0.97


@given(samples)
def test_a_run_against_itself_has_not_changed(values: list[float]) -> None:
    """The ratio is 1, and 1 lies within."""
    ratio = unpaired_ratio(values, values)
    assert ratio.ratio == pytest.approx(1, abs=1e-12)
    assert ratio.low <= 1 <= ratio.high
    assert not ratio.excludes_1


@given(samples, samples, st.integers(-20, 20))
def test_scaling_moves_the_ratio_by_as_much(
    base: list[float], new: list[float], power: int
) -> None:
    """By the factor itself, at both ends too; the coverage stays."""
    factor = 2.0**power
    ratio, scaled = (
        unpaired_ratio(base, new),
        unpaired_ratio(base, [value * factor for value in new]),
    )
    assert scaled.ratio == pytest.approx(ratio.ratio * factor, rel=1e-9)
    assert (scaled.low, scaled.high) == (ratio.low * factor, ratio.high * factor)
    assert scaled.coverage == ratio.coverage


@given(samples, samples)
def test_swapping_turns_everything_round(base: list[float], new: list[float]) -> None:
    """Base against new is one over new against base."""
    ratio, turned = unpaired_ratio(base, new), unpaired_ratio(new, base)
    assert turned.ratio == pytest.approx(1 / ratio.ratio, rel=1e-9)
    assert turned.low == pytest.approx(1 / ratio.high, rel=1e-9)
    assert turned.high == pytest.approx(1 / ratio.low, rel=1e-9)
    assert turned.coverage == ratio.coverage


@given(samples, samples)
def test_the_ratio_lies_within_its_interval(base: list[float], new: list[float]) -> None:
    """It is that of the medians, and the interval lies within what was measured."""
    ratio = unpaired_ratio(base, new)
    assert ratio.ratio == median(new) / median(base)
    assert min(new) / max(base) <= ratio.low <= ratio.ratio <= ratio.high <= max(new) / min(base)


def test_an_interval_is_widened_to_hold_the_ratio() -> None:
    """Of runs with two modes the medians can jump where one repeat in fifty moved."""
    ratio = unpaired_ratio([1.0] * 25 + [9.0] * 24, [1.0] * 24 + [9.0] * 25)
    assert (ratio.low, ratio.ratio, ratio.high) == (1.0, 9.0, 9.0)
    assert not ratio.excludes_1


@pytest.mark.parametrize("values", [[], [0.0], [-1.0], [math.inf], [math.nan], [1e200]])
def test_what_has_no_ratio_is_refused(values: Sequence[float]) -> None:
    """No values, and figures that are no sizes; before arithmetic loses them."""
    assert not all(map(has_ratio, values)) or not values
    for pair in ((values, [1.0]), ([1.0], values)):
        with pytest.raises(ValueError, match=r"no values|above 0"):
            unpaired_ratio(*pair)


@pytest.mark.parametrize(
    ("base", "new", "more"), [(1, 1, 3), (3, 3, 1), (4, 4, 0), (2, 3, 2), (1, 6, 2), (2, 8, 0)]
)
def test_more_repeats_until_an_interval_covers(base: int, new: int, more: int) -> None:
    """The fewest: one less in each does not reach 95 %."""
    assert more_repeats_to_be_significant(base, new) == more
    assert unpaired_ratio([1.0] * (base + more), [1.0] * (new + more)).has_full_coverage
    if more:
        assert not unpaired_ratio(
            [1.0] * (base + more - 1), [1.0] * (new + more - 1)
        ).has_full_coverage


@given(samples, samples, st.floats(0.001, 0.99))
def test_more_repeats_are_asked_for_within_bounds(
    base: list[float], new: list[float], threshold: float
) -> None:
    """One at least, and never more than a config takes."""
    repeats = more_repeats_to_detect(base, new, threshold)
    assert 1 <= repeats.repeats <= MOST_REPEATS
    assert repeats.repeats >= more_repeats_to_be_significant(len(base), len(new))


@given(samples, samples, st.floats(0.001, 0.3), st.floats(1.1, 3))
def test_a_finer_threshold_takes_more_repeats(
    base: list[float], new: list[float], threshold: float, times: float
) -> None:
    """Or as many."""
    coarse = more_repeats_to_detect(base, new, threshold * times)
    assert more_repeats_to_detect(base, new, threshold).repeats >= coarse.repeats


@given(samples, samples, st.integers(-10, 10))
def test_the_change_itself_has_no_say_in_more_repeats(
    base: list[float], new: list[float], power: int
) -> None:
    """Only how much each run scatters has."""
    other = [value * 2.0**power for value in new]
    repeats, moved = (
        more_repeats_to_detect(base, new, 0.05),
        more_repeats_to_detect(base, other, 0.05),
    )
    assume(repeats.repeats < MOST_REPEATS)
    assert moved.repeats == pytest.approx(repeats.repeats, abs=1)


def test_one_repeat_each_knows_no_spread() -> None:
    """So that the number is a least one."""
    assert more_repeats_to_detect([1.0], [1.1], 0.05) == MoreRepeats(3, at_least=True)


def test_a_wild_spread_is_not_healed_by_repeats() -> None:
    """The number is bounded, and says so."""
    assert more_repeats_to_detect([1.0, 100.0], [1.0, 50.0], 0.05) == MoreRepeats(
        MOST_REPEATS, at_least=True
    )


def test_as_many_repeats_as_were_foreseen_tell_the_threshold() -> None:
    """Of runs that scatter by 4 %, six repeats cannot, and with those asked for nine in ten can."""
    source = random.Random(7)
    six = [math.exp(0.04 * z) for z in (-1.43, -0.72, -0.23, 0.23, 0.72, 1.43)]
    requested = more_repeats_to_detect(six, six, 0.05)
    assert 10 <= requested.repeats <= 30

    def blurred(count: int) -> float:
        pairs = (
            unpaired_ratio(*([math.exp(source.gauss(0, 0.04)) for _ in range(count)] for _ in "ab"))
            for _ in range(400)
        )
        return sum(_holds_both(pair) for pair in pairs) / 400

    assert blurred(6) > 0.7
    assert blurred(6 + requested.repeats) < 0.1


def _holds_both(ratio: Ratio) -> bool:
    return not ratio.excludes_1 and (ratio.low <= 0.95 or ratio.high >= 1.05)


@pytest.mark.parametrize(("base", "new"), [(1, 1), (2, 3), (3, 3), (2, 6), (4, 5), (5, 5)])
def test_a_p_value_is_a_share_of_all_orders(base: int, new: int) -> None:
    """As often as it says, two equal samples lie at least so far apart: all orders counted."""
    every = set(range(base + new))
    orders = [sorted(order) for order in itertools.combinations(every, new)]
    actual = [p_value(sorted(every - set(order)), order) for order in orders]
    for level in set(actual) - {1.0}:
        assert sum(entry <= level for entry in actual) / len(orders) == pytest.approx(level)
    assert min(actual) == pytest.approx(smallest_p_value(base, new))


@pytest.mark.parametrize(
    ("base", "new", "p"),
    [
        (range(1, 7), range(7, 13), 2 / 924),
        (range(7, 13), range(1, 7), 2 / 924),
        ([1, 2, 3, 4, 5, 7], [6, 8, 9, 10, 11, 12], 4 / 924),
        ([1.0] * 6, [1.0] * 6, 1.0),
        ([1.0], [2.0], 1.0),
    ],
)
def test_known_p_values(base: Sequence[float], new: Sequence[float], p: float) -> None:
    """As tables of the Mann-Whitney test give them: 2/924 where 6 lie above 6."""
    assert p_value(base, new) == pytest.approx(p)


whole = st.lists(st.integers(1, 30).map(float), min_size=1, max_size=9)


@given(whole, whole)
def test_a_change_is_significant_where_the_interval_excludes_1(
    base: list[float], new: list[float]
) -> None:
    """Test and interval agree, also with equal values, unless the interval had to be extended."""
    ratio = unpaired_ratio(base, new)
    assume(ratio.has_full_coverage)
    significant = p_value(base, new) <= 0.05
    assert significant or not ratio.excludes_1
    if ratio.low < ratio.ratio < ratio.high:
        assert significant == ratio.excludes_1


def test_p_values_of_many_repeats_follow_the_normal_law() -> None:
    """51 against 50 are no different from 50 against 50 but for one repeat."""
    base = [1.0 + i / 500 for i in range(50)]
    new = [value + 0.0131 for value in base]
    counted, further = p_value(base, new), p_value(base, [*new, median(new)])
    assert further == pytest.approx(counted, rel=0.05)
    assert p_value(base, [9.0] * 51) < 1e-15
    with pytest.raises(ValueError, match="no values"):
        p_value([], base)


def test_a_known_correction() -> None:
    """The smallest of four p-values counts four times, the next three times, in any order."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.4]) == [0.4]
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_a_correction_keeps_the_order(p_values: list[float]) -> None:
    """No p-value becomes smaller, none overtakes another, none exceeds 1."""
    adjusted = holm(p_values)
    count = len(p_values)
    for before, after in zip(p_values, adjusted, strict=True):
        assert before <= after <= min(1, count * before)
    ascending = sorted(zip(p_values, adjusted, strict=True))
    assert [after for _, after in ascending] == sorted(adjusted)


@pytest.mark.parametrize(("repeats", "most"), [(4, 1), (5, 6), (6, 23), (7, 85)])
def test_so_many_figures_can_be_corrected(repeats: int, most: int) -> None:
    """At 6 against 6 a change of one of 23 figures can be significant, of 24 none."""
    assert more_repeats_to_be_significant(repeats, repeats, 0.05 / most) == 0
    assert more_repeats_to_be_significant(repeats, repeats, 0.05 / (most + 1)) == 1
    assert holm([smallest_p_value(repeats, repeats), *[1.0] * (most - 1)])[0] <= 0.05
    assert holm([smallest_p_value(repeats, repeats), *[1.0] * most])[0] > 0.05


@given(samples, samples, st.floats(0.001, 0.99), st.integers(2, 50))
def test_more_figures_take_more_repeats(
    base: list[float], new: list[float], threshold: float, figures: int
) -> None:
    """Or as many."""
    among_many = more_repeats_to_detect(base, new, threshold, 0.05 / figures)
    assert among_many.repeats >= more_repeats_to_detect(base, new, threshold).repeats
