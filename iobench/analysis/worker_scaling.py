"""PURE. The rate of a loader by its number of workers: measured, interpolated, extrapolated.

Between two measured counts the rate is interpolated by a straight line. Above the largest measured
count it comes from the universal scalability law, fitted to at least three counts:

    X(n) = X(1) n / (1 + contention (n - 1) + coherency n (n - 1))

``contention`` is the share of the work that workers do one after the other; without ``coherency``
the formula is Amdahl's law. ``coherency`` is the time that each pair of workers costs (N. J.
Gunther, "Guerrilla Capacity Planning", Springer 2007, chapters 4 to 6, and "A general theory of
computational scalability based on rational functions", arXiv:0808.1431). ``n / X(n)`` is linear in
three unknowns that cannot be negative, so that the fit has a closed form.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from iobench.stats import Estimate

FEWEST_COUNTS = 3
"""Measured numbers of workers from which on the curve is extrapolated."""
REACH = 2
"""Largest predicted number of workers, in multiples of the largest measured one."""

_LEAST_GROWTH = 0.3
"""Share of the predicted growth that is certain: a second hardware thread on a core adds 0.3 to 1
times what the first thread gives."""
_MISFIT = 0.10
"""Relative error of a fitted rate from which on the curve does not follow the law."""
_TERMS = ((0,), (0, 1), (0, 2), (0, 1, 2))
AMDAHL = ((0,), (0, 1))
"""The terms of Amdahl's law, which needs two counts."""


@dataclass(frozen=True, slots=True)
class Scalability:
    """The universal scalability law with its three coefficients."""

    one_worker: float
    contention: float
    coherency: float

    def rate(self, workers: float) -> float:
        """The rate with ``workers``."""
        waiting = self.contention * (workers - 1) + self.coherency * workers * (workers - 1)
        return self.one_worker * workers / (1 + waiting)


def fitted(rates: Mapping[int, float], terms: Iterable[tuple[int, ...]] = _TERMS) -> Scalability:
    """Fit the law to rates by number of workers, with the least relative errors.

    The coefficients are not negative: of the least-squares solutions with some coefficients set
    to 0, the best one without a negative coefficient is the optimum.
    """
    counts = np.array(sorted(rates), float)
    seconds = counts / np.array([rates[int(count)] for count in counts])
    columns = np.stack([np.ones_like(counts), counts - 1, counts * (counts - 1)], axis=1)
    columns /= seconds[:, None]
    best, least = np.array([float(np.mean(seconds)), 0.0, 0.0]), np.inf
    for chosen in terms:
        solution, *_ = np.linalg.lstsq(columns[:, chosen], np.ones_like(counts), rcond=None)
        if solution[0] <= 0 or (solution < -1e-12 * solution[0]).any():
            continue
        error = float(((columns[:, chosen] @ solution - 1) ** 2).sum())
        if error < least - 1e-15:
            least = error
            best = np.zeros(3)
            best[list(chosen)] = solution
    whole, contention, coherency = (max(0.0, float(value)) for value in best)
    return Scalability(1 / whole, contention / whole, coherency / whole)


def at_workers(points: Mapping[int, Estimate], workers: int, most: float | None) -> Estimate | None:
    """The rate with ``workers``; None if the measured counts do not support a prediction.

    Args:
        points: rates by number of workers; 0 is the rate of the training process itself.
        workers: the number of workers.
        most: the number of CPUs, above which more workers bring nothing; None if workers wait
            more than they compute.
    """
    if workers in points:
        return points[workers]
    counts = sorted(count for count in points if count > 0)
    if not counts or workers < 1:
        return None
    if most is not None:
        workers = min(workers, max(int(most), counts[-1]))
    if workers in points:
        return points[workers]
    if workers < counts[0]:
        # Rates grow at most in proportion, and fewer workers are not faster.
        first = points[counts[0]]
        rate = first.median * workers / counts[0]
        return Estimate(rate, rate, first.high, 0.0, first.repeats)
    if workers > counts[-1]:
        return extrapolated({count: points[count] for count in counts}, workers)
    upper = next(count for count in counts if count > workers)
    lower = counts[counts.index(upper) - 1]
    return _between(points[lower], points[upper], (workers - lower) / (upper - lower))


def extrapolated(points: Mapping[int, Estimate], workers: int) -> Estimate | None:
    """The rate with more workers than were measured.

    The interval contains the law and Amdahl's law, each fitted to the medians and to both ends of
    the measured intervals. Its lower end also assumes that only 0.3 of the growth beyond the
    largest measured count is real. None if fewer than three counts were measured, if ``workers``
    exceeds twice the largest one, or if the measured rates do not follow the law.
    """
    largest = max(points)
    if len(points) < FEWEST_COUNTS or workers > REACH * largest:
        return None
    medians = {count: point.median for count, point in points.items()}
    law = fitted(medians)
    if any(abs(law.rate(count) / rate - 1) > _MISFIT for count, rate in medians.items()):
        return None
    lows = {count: point.low for count, point in points.items()}
    highs = {count: point.high for count, point in points.items()}
    rates = [law.rate(workers)]
    for ends in (medians, lows, highs):
        rates += [fitted(ends).rate(workers), fitted(ends, AMDAHL).rate(workers)]
    last = points[largest]
    growth = min(rates) - last.low
    low = last.low + (_LEAST_GROWTH * growth if growth > 0 else growth)
    repeats = min(point.repeats for point in points.values())
    return Estimate(rates[0], min(low, rates[0]), max(rates), 0.0, repeats)


def _between(lower: Estimate, upper: Estimate, share: float) -> Estimate:
    """Interpolate linearly between two rates."""
    return Estimate(
        lower.median + (upper.median - lower.median) * share,
        lower.low + (upper.low - lower.low) * share,
        lower.high + (upper.high - lower.high) * share,
        coverage=0.0,
        repeats=min(lower.repeats, upper.repeats),
    )
