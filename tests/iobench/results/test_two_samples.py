"""Ratios of two runs: intervals and p-values against a count of all orders, and simulation."""

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
    """Return the share of all orders of two like samples whose interval lacks their shift.

    ``U`` is the number of pairs in which the new value is above the base's. The interval leaves out
    ``cut`` ratios at each end; it holds the shift if more than ``cut`` pairs lie on either side.
    """
    ranks = range(base + new)
    count = outside_count = 0
    for new_ranks in itertools.combinations(ranks, new):
        base_ranks = set(ranks) - set(new_ranks)
        u = sum(below < above for above in new_ranks for below in base_ranks)
        count += 1
        outside_count += not cut < u < base * new - cut
    return outside_count / count


@pytest.mark.parametrize(("base", "new"), [(2, 8), (3, 5), (4, 4), (4, 6), (5, 5), (6, 6), (3, 9)])
def test_the_interval_is_the_narrowest_that_covers(base: int, new: int) -> None:
    """At most 5 % of all orders of two like samples lie outside, and a narrower one has more."""
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
    """Coverages equal tables of the Mann-Whitney test: the critical value of 6 against 6 is 5."""
    ratio = unpaired_ratio([1.0] * base, [2.0] * new)
    assert ratio.coverage == pytest.approx(coverage, abs=1e-12)
    assert (ratio.base_repeats, ratio.new_repeats) == (base, new)
    assert ratio.has_full_coverage == (coverage >= 0.95)


def test_the_normal_law_goes_on_where_counting_ends() -> None:
    """The interval of 51 against 50 repeats is nearly that of 50 against 50, which is counted."""
    values = [1.0 + number / 500 for number in range(51)]
    counted = unpaired_ratio(values[:50], values[:50])
    further = unpaired_ratio(values[:50], values)
    assert further.coverage == pytest.approx(counted.coverage, abs=5e-4)
    assert further.high - further.low == pytest.approx(counted.high - counted.low, rel=0.05)


Pair = tuple[list[float], list[float]]


def held(draw: Callable[[random.Random], Pair], shift: float) -> float:
    """Return the share of 4,000 drawn pairs of runs whose interval holds ``shift``."""
    source = random.Random(20261122)
    ratios = (unpaired_ratio(*draw(source)) for _ in range(4000))
    return sum(entry.low <= shift <= entry.high for entry in ratios) / 4000


def scattered(source: random.Random, middle: float, deviation: float) -> list[float]:
    """Draw six repeats around ``middle`` whose logarithms are normal."""
    return [middle * math.exp(source.gauss(0, deviation)) for _ in range(6)]


def test_coverage_at_six_against_six() -> None:
    """The stated coverage of 95.9 % is that of a simulation of narrow and of skewed rates."""
    stated = unpaired_ratio([1.0] * 6, [1.0] * 6).coverage
    tolerance = 3.3 * math.sqrt(stated * (1 - stated) / 4000)
    for deviation in (0.02, 1.5):

        def draw(source: random.Random, deviation: float = deviation) -> Pair:
            return scattered(source, 3, deviation), scattered(source, 2.7, deviation)

        assert held(draw, 0.9) == pytest.approx(stated, abs=tolerance)


def test_coverage_where_one_run_scatters_ten_times_as_much() -> None:
    """The coverage stays near 95 % if one run scatters more than the other."""
    share = held(lambda source: (scattered(source, 3, 0.01), scattered(source, 2.7, 0.1)), 0.9)
    assert 0.94 < share < 0.97


@given(samples)
def test_a_run_against_itself_has_not_changed(values: list[float]) -> None:
    """The ratio is 1, and its interval holds 1."""
    ratio = unpaired_ratio(values, values)
    assert ratio.ratio == pytest.approx(1, abs=1e-12)
    assert ratio.low <= 1 <= ratio.high
    assert not ratio.excludes_1


@given(samples, samples, st.integers(-20, 20))
def test_scaling_moves_the_ratio_by_as_much(
    base: list[float], new: list[float], power: int
) -> None:
    """The ratio and both ends are scaled by the factor, and the coverage stays."""
    factor = 2.0**power
    ratio = unpaired_ratio(base, new)
    scaled = unpaired_ratio(base, [value * factor for value in new])
    assert scaled.ratio == pytest.approx(ratio.ratio * factor, rel=1e-9)
    assert (scaled.low, scaled.high) == (ratio.low * factor, ratio.high * factor)
    assert scaled.coverage == ratio.coverage


@given(samples, samples)
def test_swapping_turns_everything_round(base: list[float], new: list[float]) -> None:
    """The ratio of base to new is the inverse of the ratio of new to base."""
    ratio, turned = unpaired_ratio(base, new), unpaired_ratio(new, base)
    assert turned.ratio == pytest.approx(1 / ratio.ratio, rel=1e-9)
    assert turned.low == pytest.approx(1 / ratio.high, rel=1e-9)
    assert turned.high == pytest.approx(1 / ratio.low, rel=1e-9)
    assert turned.coverage == ratio.coverage


@given(samples, samples)
def test_the_ratio_lies_within_its_interval(base: list[float], new: list[float]) -> None:
    """The ratio is that of the medians, and its interval lies within the measured ratios."""
    ratio = unpaired_ratio(base, new)
    assert ratio.ratio == median(new) / median(base)
    assert min(new) / max(base) <= ratio.low <= ratio.ratio <= ratio.high <= max(new) / min(base)


def test_an_interval_is_widened_to_hold_the_ratio() -> None:
    """The medians of runs with two modes can jump if one repeat in fifty moves."""
    ratio = unpaired_ratio([1.0] * 25 + [9.0] * 24, [1.0] * 24 + [9.0] * 25)
    assert (ratio.low, ratio.ratio, ratio.high) == (1.0, 9.0, 9.0)
    assert not ratio.excludes_1


@pytest.mark.parametrize("values", [[], [0.0], [-1.0], [math.inf], [math.nan], [1e200]])
def test_figures_without_a_ratio_are_refused(values: Sequence[float]) -> None:
    """Missing, negative and infinite figures are refused, and so are those that overflow."""
    assert not all(map(has_ratio, values)) or not values
    for pair in ((values, [1.0]), ([1.0], values)):
        with pytest.raises(ValueError, match=r"no values|above 0"):
            unpaired_ratio(*pair)


@pytest.mark.parametrize(
    ("base", "new", "more"), [(1, 1, 3), (3, 3, 1), (4, 4, 0), (2, 3, 2), (1, 6, 2), (2, 8, 0)]
)
def test_more_repeats_until_an_interval_covers(base: int, new: int, more: int) -> None:
    """The number is the smallest that reaches 95 %."""
    assert more_repeats_to_be_significant(base, new) == more
    assert unpaired_ratio([1.0] * (base + more), [1.0] * (new + more)).has_full_coverage
    if more:
        fewer = more - 1
        ratio = unpaired_ratio([1.0] * (base + fewer), [1.0] * (new + fewer))
        assert not ratio.has_full_coverage


@given(samples, samples, st.floats(0.001, 0.99))
def test_more_repeats_are_asked_for_within_bounds(
    base: list[float], new: list[float], threshold: float
) -> None:
    """At least one repeat is advised, and at most as many as a config takes."""
    repeats = more_repeats_to_detect(base, new, threshold)
    assert 1 <= repeats.repeats <= MOST_REPEATS
    assert repeats.repeats >= more_repeats_to_be_significant(len(base), len(new))


@given(samples, samples, st.floats(0.001, 0.3), st.floats(1.1, 3))
def test_a_finer_threshold_takes_more_repeats(
    base: list[float], new: list[float], threshold: float, times: float
) -> None:
    """A finer threshold takes at least as many repeats."""
    coarse = more_repeats_to_detect(base, new, threshold * times)
    assert more_repeats_to_detect(base, new, threshold).repeats >= coarse.repeats


@given(samples, samples, st.integers(-10, 10))
def test_the_change_itself_has_no_say_in_more_repeats(
    base: list[float], new: list[float], power: int
) -> None:
    """The number depends on how much each run scatters, and not on the change."""
    other = [value * 2.0**power for value in new]
    repeats = more_repeats_to_detect(base, new, 0.05)
    moved = more_repeats_to_detect(base, other, 0.05)
    assume(repeats.repeats < MOST_REPEATS)
    assert moved.repeats == pytest.approx(repeats.repeats, abs=1)


def test_one_repeat_each_knows_no_spread() -> None:
    """The spread of single repeats is unknown, so the number is a lower bound."""
    assert more_repeats_to_detect([1.0], [1.1], 0.05) == MoreRepeats(3, at_least=True)


def test_a_wild_spread_is_not_healed_by_repeats() -> None:
    """The number is the largest allowed one, and marked as a lower bound."""
    advised = more_repeats_to_detect([1.0, 100.0], [1.0, 50.0], 0.05)
    assert advised == MoreRepeats(MOST_REPEATS, at_least=True)


def test_as_many_repeats_as_were_foreseen_tell_the_threshold() -> None:
    """Six repeats that scatter by 4 % are too few; with those advised, nine in ten runs suffice."""
    source = random.Random(7)
    six = [math.exp(0.04 * z) for z in (-1.43, -0.72, -0.23, 0.23, 0.72, 1.43)]
    requested = more_repeats_to_detect(six, six, 0.05)
    assert 10 <= requested.repeats <= 30

    def undecided_share(count: int) -> float:
        undecided = 0
        for _ in range(400):
            base = [math.exp(source.gauss(0, 0.04)) for _ in range(count)]
            new = [math.exp(source.gauss(0, 0.04)) for _ in range(count)]
            undecided += _holds_both(unpaired_ratio(base, new))
        return undecided / 400

    assert undecided_share(6) > 0.7
    assert undecided_share(6 + requested.repeats) < 0.1


def _holds_both(ratio: Ratio) -> bool:
    """Return whether an interval holds no change as well as a change by the threshold."""
    return not ratio.excludes_1 and (ratio.low <= 0.95 or ratio.high >= 1.05)


@pytest.mark.parametrize(("base", "new"), [(1, 1), (2, 3), (3, 3), (2, 6), (4, 5), (5, 5)])
def test_a_p_value_is_a_share_of_all_orders(base: int, new: int) -> None:
    """The p-value is the share of all orders in which equal samples lie so far apart."""
    ranks = set(range(base + new))
    p_values = []
    for new_ranks in itertools.combinations(sorted(ranks), new):
        p_values.append(p_value(sorted(ranks - set(new_ranks)), new_ranks))
    for level in set(p_values) - {1.0}:
        share = sum(value <= level for value in p_values) / len(p_values)
        assert share == pytest.approx(level)
    assert min(p_values) == pytest.approx(smallest_p_value(base, new))


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
    """Values equal tables of the Mann-Whitney test: 2/924 if 6 lie above 6."""
    assert p_value(base, new) == pytest.approx(p)


whole_numbers = st.lists(st.integers(1, 30).map(float), min_size=1, max_size=9)


@given(whole_numbers, whole_numbers)
def test_a_change_is_significant_where_the_interval_excludes_1(
    base: list[float], new: list[float]
) -> None:
    """Test and interval agree unless the interval was widened to hold the ratio."""
    ratio = unpaired_ratio(base, new)
    assume(ratio.has_full_coverage)
    significant = p_value(base, new) <= 0.05
    assert significant or not ratio.excludes_1
    if ratio.low < ratio.ratio < ratio.high:
        assert significant == ratio.excludes_1


def test_p_values_of_many_repeats_follow_the_normal_law() -> None:
    """The p-value of 51 against 50 repeats is nearly that of 50 against 50, which is counted."""
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
    """At 6 against 6, one change among 23 figures can be significant, and among 24 none."""
    assert more_repeats_to_be_significant(repeats, repeats, 0.05 / most) == 0
    assert more_repeats_to_be_significant(repeats, repeats, 0.05 / (most + 1)) == 1
    assert holm([smallest_p_value(repeats, repeats), *[1.0] * (most - 1)])[0] <= 0.05
    assert holm([smallest_p_value(repeats, repeats), *[1.0] * most])[0] > 0.05


@given(samples, samples, st.floats(0.001, 0.99), st.integers(2, 50))
def test_more_figures_take_more_repeats(
    base: list[float], new: list[float], threshold: float, figures: int
) -> None:
    """More figures take at least as many repeats."""
    among_many = more_repeats_to_detect(base, new, threshold, 0.05 / figures)
    assert among_many.repeats >= more_repeats_to_detect(base, new, threshold).repeats
