"""PURE. Medians with intervals, quantiles, ratios of pairs, ratios of two runs.

The unit of repetition is a trial in a process of its own, not a step. Intervals of a median are
order-statistic intervals: exact for any continuous distribution (e.g. Conover, "Practical
Nonparametric Statistics", 3rd ed., section 3.2).

Of runs that were not interleaved there are no pairs. The ratio is that of the medians. Its
interval is that of the Mann-Whitney test turned round, between two of the ratios of every repeat
of one run to every repeat of the other (Hollander, Wolfe and Chicken, "Nonparametric Statistical
Methods", 3rd ed., sections 4.2 and 4.3, there as differences). Its coverage is exact for any
continuous distribution that the second run has too but for a factor; where repeats are equal to
each other, or the ratio of the medians lies outside and the interval is widened to hold it, it is
at least that. Of 6 repeats against 6 with normal logarithms, 95.9 % stay above 94.5 % where one
run scatters ten times as much as the other; ``tests/iobench/test_two_samples.py`` simulates both.
Where the shapes differ too, what is held is the median of all those ratios, which then need not be
the ratio of the medians.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist

import numpy as np

COVERAGE = 0.95
MOST_REPEATS = 1000
"""More are not asked for: a config takes no more, and a quieter machine is the better answer."""

_LARGEST = 1e100
_EXACT = 2_500  # ratios up to which ways are counted; of more the normal law is as good
_NORMAL = NormalDist()
_EFFICIENCY = 3 / math.pi  # of ranks against means, for normal data
QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}
"""Those that are told, by name."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A median over ``repeats`` values and what it may lie between.

    ``coverage`` is the probability with which ``low`` to ``high`` holds the true median; where
    there are too few repeats for 0.95 it is what minimum to maximum covers (0 for one value).
    """

    median: float
    low: float
    high: float
    coverage: float
    repeats: int


def median(values: Sequence[float]) -> float:
    """The middle value, or the mean of the middle two.

    Raises:
        ValueError: no values.
    """
    if not values:
        raise ValueError("no values")
    ordered = sorted(values)
    half = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[half]
    # Halved first: the sum of two large values would overflow.
    return ordered[half - 1] / 2 + ordered[half] / 2


def estimate(values: Sequence[float]) -> Estimate:
    """Median and the narrowest symmetric order-statistic interval that covers 0.95 or more."""
    ordered = sorted(values)
    count = len(ordered)
    cut, outside = 0, 1  # how many values to leave out at each end; what then is not covered
    while 2 * (cut + 1) < count:
        more = outside + math.comb(count, cut + 1)
        if _coverage(count, more) < COVERAGE:
            break
        cut, outside = cut + 1, more
    covered = _coverage(count, outside)
    return Estimate(median(ordered), ordered[cut], ordered[count - 1 - cut], covered, count)


def ratio(numerators: Sequence[float], denominators: Sequence[float]) -> Estimate:
    """The ratio of two figures that were measured in pairs, one after the other.

    Raises:
        ValueError: no pairs, or sides of different length.
        ZeroDivisionError: a denominator is 0.
    """
    return estimate([a / b for a, b in zip(numerators, denominators, strict=True)])


def quantile(values: Sequence[float], q: float) -> float:
    """The ``q`` quantile, interpolated linearly between order statistics (Hyndman and Fan's 7)."""
    ordered = sorted(values)
    if not ordered:
        raise ValueError("no values")
    place = q * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    share = place - below
    return ordered[below] * (1 - share) + ordered[above] * share


def quantiles(values: Sequence[float]) -> Mapping[str, float]:
    """The quantiles of ``p50, p90, p95, p99, p999`` that enough samples stand behind.

    A quantile q has enough from 10 / (1 - q) samples on.
    """
    return {name: quantile(values, q) for name, q in QUANTILES.items() if enough(len(values), q)}


def enough(count: int, q: float) -> bool:
    """Whether so many samples stand behind the quantile ``q``: from 10 / (1 - q) on."""
    return count * (1 - q) >= 10 - 1e-9


@dataclass(frozen=True, slots=True)
class Ratio:
    """``new / base``, and what it may lie between with the probability ``coverage``.

    Where there are too few repeats for 0.95 the interval is that of all ratios, least to greatest,
    and ``coverage`` what that covers (0 for one repeat against one).
    """

    ratio: float
    low: float
    high: float
    coverage: float
    base_repeats: int
    new_repeats: int

    @property
    def told(self) -> bool:
        """Whether there were repeats enough for 95 %."""
        return self.coverage >= COVERAGE

    @property
    def leaves_1_out(self) -> bool:
        """Whether the interval does not hold 1."""
        return not self.low <= 1 <= self.high


@dataclass(frozen=True, slots=True)
class More:
    """How many more repeats each of two runs needs.

    ``at_least``: their spread is not known, or so great that more than ``MOST_REPEATS`` would be
    needed.
    """

    repeats: int
    at_least: bool = False


def has_ratio(value: float) -> bool:
    """Whether a figure can stand in a ratio: above 0, and no number that arithmetic would lose."""
    return 1 / _LARGEST < value < _LARGEST


def ratio_apart(base: Sequence[float], new: Sequence[float]) -> Ratio:
    """The ratio of ``new`` to ``base`` with the narrowest interval that covers 0.95 or more.

    Raises:
        ValueError: a side is empty, or a value is one that ``has_ratio`` refuses.
    """
    if not base or not new:
        raise ValueError("no values")
    if not all(map(has_ratio, (*base, *new))):
        raise ValueError("a ratio takes figures above 0")
    ratios = sorted(after / before for before in base for after in new)
    cut, covered = _cut(len(base), len(new))
    middle = median(new) / median(base)
    low, high = min(ratios[cut], middle), max(ratios[len(ratios) - 1 - cut], middle)
    return Ratio(middle, low, high, covered, len(base), len(new))


def more_to_cover(base: int, new: int) -> int:
    """The fewest repeats that each run needs beside its own for an interval of 95 %."""
    more = 0
    while _cut(base + more, new + more)[1] < COVERAGE:
        more += 1
    return more


def more_to_tell(base: Sequence[float], new: Sequence[float], threshold: float) -> More:
    """How many more repeats each run needs to tell a change of ``threshold`` from no change.

    That is where the whole interval is narrower than the way from 1 to ``1 + threshold``, so that
    it cannot hold both. Its width is foreseen from the standard deviation of the logarithms
    within the runs, pooled: ``2 z s sqrt(pi / 3) sqrt(1 / m + 1 / n)``, the large-sample width
    of the interval for normal data (Lehmann, "Nonparametrics", revised ed., section 2.5). So few
    values know their spread badly: the number is a guide.

    Raises:
        ValueError: ``threshold`` is not positive.
    """
    if threshold <= 0:
        raise ValueError("a threshold is above 0")
    fewest = max(1, more_to_cover(len(base), len(new)))
    spread = _pooled_deviation(base, new)
    if spread is None:
        return More(fewest, at_least=True)
    unit = 2 * _NORMAL.inv_cdf((1 + COVERAGE) / 2) * spread / math.sqrt(_EFFICIENCY)
    wanted = math.log1p(threshold)
    for more in range(fewest, MOST_REPEATS + 1):
        if unit * math.sqrt(1 / (len(base) + more) + 1 / (len(new) + more)) <= wanted:
            return More(more)
    return More(MOST_REPEATS, at_least=True)


def _coverage(count: int, outside: int) -> float:
    """Of the 2**count ways in which values lie about the median, all but ``outside`` a side."""
    return max(0.0, 1 - 2 * outside / (1 << count))


def _pooled_deviation(base: Sequence[float], new: Sequence[float]) -> float | None:
    """Of logarithms within the runs; None where no run has two repeats."""
    freedom = len(base) + len(new) - 2
    if freedom < 1:
        return None
    squares = sum(len(side) * float(np.var(np.log(side))) for side in (base, new))
    return math.sqrt(squares / freedom)


@cache
def _cut(base: int, new: int) -> tuple[int, float]:
    """How many ratios to leave out at each end, and what the rest covers."""
    if base * new > _EXACT:
        return _cut_normal(base, new)
    ways = _ways(*sorted((base, new)))
    total = math.comb(base + new, base)
    cut, outside = 0, ways[0]
    while 2 * (cut + 1) < base * new and 1 - 2 * (outside + ways[cut + 1]) / total >= COVERAGE:
        cut += 1
        outside += ways[cut]
    return cut, max(0.0, 1 - 2 * outside / total)


def _cut_normal(base: int, new: int) -> tuple[int, float]:
    """The same by the normal law, with its correction for steps."""
    mean, deviation = base * new / 2, math.sqrt(base * new * (base + new + 1) / 12)
    reach = _NORMAL.inv_cdf((1 + COVERAGE) / 2) * deviation
    cut = max(0, math.floor(mean - reach - 0.5))
    outside = _NORMAL.cdf((cut + 0.5 - mean) / deviation)
    return cut, max(0.0, 1 - 2 * outside)


def _ways(fewer: int, others: int) -> list[int]:
    """In how many of the orders of two samples that are alike ``U`` is 0, 1, ... of their product.

    The coefficients of the Gaussian binomial: each factor ``(1 - q^(others + i)) / (1 - q^i)`` in
    place (Mann and Whitney, 1947, count the same by recursion).
    """
    size = fewer * others + 1
    ways = [1] + [0] * (size - 1)
    for i in range(1, fewer + 1):
        for place in range(size - 1, others + i - 1, -1):
            ways[place] -= ways[place - others - i]
        for place in range(i, size):
            ways[place] += ways[place - i]
    return ways
