"""PURE. Medians with their intervals, quantiles, and ratios and tests of two runs.

The unit of repetition is a trial in a process of its own, not a step.

``estimate`` gives a median with an order-statistic interval. This interval is exact for any
continuous distribution (e.g. Conover, "Practical Nonparametric Statistics", 3rd ed., section 3.2).

``ratio`` is for two settings whose repeats ran in turns: the repeats of one round are a pair.

``unpaired_ratio`` is for two runs that did not run in turns, so that there are no pairs. It is the
ratio of the two medians. Its interval inverts the Mann-Whitney test: divide every repeat of the new
run by every repeat of the base run; the ends of the interval are two of these ratios (Hollander,
Wolfe and Chicken, "Nonparametric Statistical Methods", 3rd ed., sections 4.2 and 4.3, which use
differences). The coverage of the interval is

- exact if the two runs have the same continuous distribution, except for a factor;
- larger if some repeats have equal values, or if the interval had to be extended to include the
  ratio of the medians;
- 95.9 % for 6 repeats against 6 with normally distributed logarithms, and still above 94.5 % if one
  run varies ten times as much as the other (``tests/iobench/results/test_two_samples.py`` simulates
  both).

If the distributions also have different shapes, the interval covers the median of all these ratios,
which may differ from the ratio of the medians.

``p_value`` is the test that belongs to this interval. ``holm`` corrects p-values for their number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

COVERAGE = 0.95
"""The probability with which an interval should contain the true value."""

SIGNIFICANCE = 0.05
"""A change whose p-value is at most this is significant: the complement of ``COVERAGE``."""

MOST_REPEATS = 1000
"""Maximum number of repeats in a config. If more seem necessary, a quieter machine helps more."""

_LARGEST = 1e100
"""Figures from here on are left out of ratios, because products of them could overflow."""
_MAX_COUNTED = 2_500
"""Maximum number of pairs of repeats for which orders of repeats are counted. For more pairs, the
normal approximation is accurate enough."""
_NORMAL = NormalDist()
_RANK_EFFICIENCY = 3 / math.pi
"""Efficiency of a test by ranks compared with a test by means, for normally distributed data."""
QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}
"""The quantiles that are computed and stored, by name. ``iobench.report.latencies`` chooses those
that the report shows."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A median with its interval.

    Attributes:
        median: the median of the values.
        low: the lower end of the interval.
        high: the upper end of the interval.
        coverage: the probability that the interval contains the true median. If there are too few
            values for 0.95, the interval is from the minimum to the maximum, and the coverage is
            smaller; it is 0 for one value.
        repeats: the number of values.
    """

    median: float
    low: float
    high: float
    coverage: float
    repeats: int


def median(values: Sequence[float]) -> float:
    """Return the middle value, or the mean of the two in the middle.

    Raises:
        ValueError: there are no values.
    """
    return quantile(values, 0.5)


def estimate(values: Sequence[float]) -> Estimate:
    """Return the median with its interval of 95 %.

    The ends of the interval are two of the values, equally far from the middle of their order. It
    is the narrowest such interval with a coverage of at least 0.95. If there are too few values for
    0.95, the ends are the minimum and the maximum.

    Raises:
        ValueError: there are no values.
    """
    ordered = sorted(values)
    count = len(ordered)
    # Each value is above or below the true median, which gives 2**count equally likely cases.
    # ``ways_below[cut]`` counts the cases in which the median is below an interval that leaves
    # ``cut`` values out at each end.
    ways_below = accumulate(math.comb(count, left_out) for left_out in range((count + 1) // 2))
    coverages = [1 - 2 * ways / (1 << count) for ways in ways_below]
    enough_coverages = [coverage for coverage in coverages if coverage >= COVERAGE]
    cut = max(0, len(enough_coverages) - 1)
    return Estimate(
        median=median(ordered),
        low=ordered[cut],
        high=ordered[-1 - cut],
        coverage=coverages[cut],
        repeats=count,
    )


def ratio(numerators: Sequence[float], denominators: Sequence[float]) -> Estimate:
    """Return the median of the ratios of pairs, with its interval.

    Args:
        numerators: the values of one figure.
        denominators: the values of the other figure. Values at the same index are a pair.

    Raises:
        ValueError: there are no pairs, or the sides have different lengths.
        ZeroDivisionError: a denominator is 0.
    """
    return estimate([a / b for a, b in zip(numerators, denominators, strict=True)])


def quantile(values: Sequence[float] | NDArray[np.float64], q: float) -> float:
    """Return a quantile, interpolated linearly between order statistics (Hyndman and Fan's 7).

    Args:
        values: the values, in any order.
        q: the share of values below the quantile, such as 0.99.

    Raises:
        ValueError: there are no values.
    """
    if len(values) == 0:
        raise ValueError("no values")
    return float(np.quantile(values, q))


def quantiles(values: Sequence[float] | NDArray[np.float64]) -> Mapping[str, float]:
    """Return the quantiles of ``QUANTILES`` by name. Quantiles with too few values are left out.

    All percentiles of latencies and of step times are computed by this function.
    """
    count = len(values)
    return {
        name: quantile(values, q) for name, q in QUANTILES.items() if has_enough_values(count, q)
    }


def has_enough_values(count: int, q: float) -> bool:
    """Return whether ``count`` values are enough for the quantile ``q``.

    The quantile needs at least 10 / (1 - q) values, so that about ten of them lie above it.
    """
    return count * (1 - q) >= 10 - 1e-9


def missing_values(count: int, q: float) -> int:
    """Return how many more values the quantile ``q`` needs; 0 if there are enough."""
    return max(0, math.ceil((10 - 1e-9) / (1 - q)) - count)


@dataclass(frozen=True, slots=True)
class Ratio:
    """The ratio of a figure in the new run to the same figure in the base run.

    Attributes:
        ratio: the ratio of the medians.
        low: the lower end of the interval.
        high: the upper end of the interval.
        coverage: the probability that the interval contains the true ratio. If there are too few
            repeats for 0.95, the interval is from the minimum to the maximum of all ratios, and the
            coverage is smaller; it is 0 for one repeat against one.
        base_repeats: the number of repeats of the base run.
        new_repeats: the number of repeats of the new run.
    """

    ratio: float
    low: float
    high: float
    coverage: float
    base_repeats: int
    new_repeats: int

    @property
    def has_full_coverage(self) -> bool:
        """Whether there were enough repeats for an interval of 95 %."""
        return self.coverage >= COVERAGE

    @property
    def excludes_1(self) -> bool:
        """Whether 1, which is no change, is outside the interval."""
        return not self.low <= 1 <= self.high


@dataclass(frozen=True, slots=True)
class MoreRepeats:
    """How many more repeats each of two runs needs.

    Attributes:
        repeats: the number of further repeats.
        at_least: whether even more may be needed. This is so if the spread of the repeats is
            unknown, or if it is so large that ``MOST_REPEATS`` are not enough.
    """

    repeats: int
    at_least: bool = False


def has_ratio(value: float) -> bool:
    """Return whether a figure can be part of a ratio: it is positive and does not overflow."""
    return 1 / _LARGEST < value < _LARGEST


def unpaired_ratio(base: Sequence[float], new: Sequence[float]) -> Ratio:
    """Return the ratio of the medians of two runs, with its interval of 95 %.

    Raises:
        ValueError: a side is empty, or ``has_ratio`` refuses a value.
    """
    if not base or not new:
        raise ValueError("no values")
    if not all(has_ratio(value) for value in (*base, *new)):
        raise ValueError("a ratio takes figures above 0")
    ratios = sorted(after / before for before in base for after in new)
    cut, coverage = _cut(len(base), len(new))
    ratio_of_medians = median(new) / median(base)
    low = min(ratios[cut], ratio_of_medians)
    high = max(ratios[len(ratios) - 1 - cut], ratio_of_medians)
    return Ratio(ratio_of_medians, low, high, coverage, len(base), len(new))


def p_value(base: Sequence[float], new: Sequence[float]) -> float:
    """Return the p-value of the two-sided Mann-Whitney test.

    The hypothesis is that both runs have the same distribution. Compare every repeat of one run
    with every repeat of the other. ``U`` is the number of pairs that contradict the change, because
    their values are equal or differ in the other direction. The p-value is twice the probability
    that ``U`` is as small as it is, or smaller, if the hypothesis is true. This probability is
    counted over all orders of the repeats (Mann and Whitney, "On a test of whether one of two
    random variables is stochastically larger than the other", Annals of Mathematical Statistics 18,
    1947). Equal values count against the change, so that the p-value is never too small.

    If there are enough repeats for an interval of 95 %, the p-value is at most 0.05 exactly if the
    interval of ``unpaired_ratio`` excludes 1. This refers to the interval before it is extended to
    the ratio of the medians. With fewer repeats, the interval may exclude 1 although the p-value is
    larger.

    Raises:
        ValueError: a side is empty.
    """
    if not base or not new:
        raise ValueError("no values")
    not_above = sum(after <= before for before in base for after in new)
    not_below = sum(after >= before for before in base for after in new)
    return min(1.0, 2 * _share_up_to(min(not_above, not_below), len(base), len(new)))


def smallest_p_value(base: int, new: int) -> float:
    """Return the smallest possible ``p_value``: 2/924 for 6 repeats against 6.

    Args:
        base: the number of repeats of the base run.
        new: the number of repeats of the new run.
    """
    return min(1.0, 2 / math.comb(base + new, base))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values that are adjusted for their number, in the same order.

    A change is significant if its adjusted p-value is at most ``SIGNIFICANCE``. Suppose that no
    figure changed. The probability that at least one of them is called significant is then at most
    ``SIGNIFICANCE``, however the figures depend on each other.

    The smallest of n p-values is multiplied by n, the next by n - 1, and so on. The adjusted
    p-values keep the order of the p-values (Holm, "A simple sequentially rejective multiple test
    procedure", Scandinavian Journal of Statistics 6, 1979).
    """
    adjusted = [1.0] * len(p_values)
    largest = 0.0
    ascending = sorted(range(len(p_values)), key=lambda index: p_values[index])
    for rank, index in enumerate(ascending):
        remaining = len(p_values) - rank
        largest = max(largest, min(1.0, remaining * p_values[index]))
        adjusted[index] = largest
    return adjusted


def more_repeats_to_be_significant(base: int, new: int, significance: float = SIGNIFICANCE) -> int:
    """Return how many more repeats each run needs so that a change can be significant at all.

    With the default significance, this is also what an interval of 95 % needs.

    Args:
        base: the number of repeats of the base run.
        new: the number of repeats of the new run.
        significance: the largest p-value of a significant change.
    """
    more = 0
    while smallest_p_value(base + more, new + more) > significance:
        more += 1
    return more


def more_repeats_to_detect(
    base: Sequence[float],
    new: Sequence[float],
    threshold: float,
    significance: float = SIGNIFICANCE,
) -> MoreRepeats:
    """Return how many more repeats each run needs to detect a change of ``threshold``.

    With this number of repeats, the interval with the coverage ``1 - significance`` is narrower
    than the distance from 1 to ``1 + threshold``, so that it cannot contain both. The width of the
    interval is predicted as ``2 z s sqrt(pi / 3) sqrt(1 / m + 1 / n)``. Here ``s`` is the pooled
    standard deviation of the logarithms within the runs. This is the width for many values with a
    normal distribution (Lehmann, "Nonparametrics", revised ed., section 2.5); ``m`` and ``n`` are
    the numbers of repeats of the runs, and ``z`` is the quantile of the normal distribution. The
    spread of a few values is not known well, so that the number is only a guide.

    Args:
        base: the values of the base run.
        new: the values of the new run.
        threshold: the change to detect, as a share of the base value.
        significance: the largest p-value of a significant change.
    """
    fewest = max(1, more_repeats_to_be_significant(len(base), len(new), significance))
    freedom = len(base) + len(new) - 2
    if freedom < 1:
        return MoreRepeats(fewest, at_least=True)
    squares = sum(len(side) * float(np.var(np.log(side))) for side in (base, new))
    reach = _NORMAL.inv_cdf(1 - significance / 2)
    unit_width = 2 * reach * math.sqrt(squares / freedom / _RANK_EFFICIENCY)
    max_width = math.log1p(threshold)
    for more in range(fewest, MOST_REPEATS + 1):
        width = unit_width * math.sqrt(1 / (len(base) + more) + 1 / (len(new) + more))
        if width <= max_width:
            return MoreRepeats(more)
    return MoreRepeats(MOST_REPEATS, at_least=True)


@cache
def _cut(base: int, new: int) -> tuple[int, float]:
    """Return how many ratios the interval leaves out at each end, and the interval's coverage.

    Args:
        base: the number of repeats of the base run.
        new: the number of repeats of the new run.
    """
    if base * new > _MAX_COUNTED:  # Normal approximation with continuity correction.
        mean, deviation = _mean_and_deviation_of_u(base, new)
        reach = _NORMAL.inv_cdf((1 + COVERAGE) / 2) * deviation
        cut = max(0, math.floor(mean - reach - 0.5))
        return cut, max(0.0, 1 - 2 * _NORMAL.cdf((cut + 0.5 - mean) / deviation))
    ways_outside = _ways_up_to(*sorted((base, new)))
    all_ways = math.comb(base + new, base)
    coverages = [1 - 2 * ways / all_ways for ways in ways_outside]
    cut = 0
    while 2 * (cut + 1) < base * new and coverages[cut + 1] >= COVERAGE:
        cut += 1
    return cut, max(0.0, coverages[cut])


def _share_up_to(u: int, base: int, new: int) -> float:
    """Return the probability that Mann and Whitney's U of two equal samples is at most ``u``."""
    if base * new > _MAX_COUNTED:  # Normal approximation with continuity correction.
        mean, deviation = _mean_and_deviation_of_u(base, new)
        return _NORMAL.cdf((u + 0.5 - mean) / deviation)
    return _ways_up_to(*sorted((base, new)))[u] / math.comb(base + new, base)


def _mean_and_deviation_of_u(base: int, new: int) -> tuple[float, float]:
    """Return the mean and the standard deviation of Mann and Whitney's U of two equal samples."""
    return base * new / 2, math.sqrt(base * new * (base + new + 1) / 12)


@cache
def _ways_up_to(fewer: int, others: int) -> tuple[int, ...]:
    """Return in how many orders of two equal samples U is at most 0, 1, ..., fewer * others.

    Args:
        fewer: the number of values of the smaller sample.
        others: the number of values of the larger sample.
    """
    return tuple(accumulate(_ways(fewer, others)))


def _ways(fewer: int, others: int) -> list[int]:
    """Return in how many orders of two equal samples U is exactly 0, 1, ..., fewer * others.

    Two samples are equal if they have the same distribution.

    These numbers are the coefficients of the Gaussian binomial, which is the product of the factors
    ``(1 - q^(others + i)) / (1 - q^i)``. Each turn of the loop multiplies by one factor, in place.
    Mann and Whitney (1947) count the same numbers by recursion.
    """
    size = fewer * others + 1
    ways = [1] + [0] * (size - 1)
    for i in range(1, fewer + 1):
        for power in range(size - 1, others + i - 1, -1):
            ways[power] -= ways[power - others - i]
        for power in range(i, size):
            ways[power] += ways[power - i]
    return ways
