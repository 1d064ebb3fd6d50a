"""PURE. Medians with intervals, quantiles, ratios of pairs.

The unit of repetition is a trial in a process of its own, not a step. Intervals of a median are
order-statistic intervals: exact for any continuous distribution (e.g. Conover, "Practical
Nonparametric Statistics", 3rd ed., section 3.2).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_COVERAGE = 0.95
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
        if _coverage(count, more) < _COVERAGE:
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


def _coverage(count: int, outside: int) -> float:
    """Of the 2**count ways in which values lie about the median, all but ``outside`` a side."""
    return max(0.0, 1 - 2 * outside / (1 << count))
