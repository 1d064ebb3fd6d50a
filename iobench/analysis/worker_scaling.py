"""PURE. The rate of a loader by its number of workers: measured, interpolated, extrapolated.

Between two measured numbers of workers, the rate is interpolated by a straight line. For more
workers than were measured, it comes from the universal scalability law, which is fitted to at least
three numbers of workers. The rate X(n) of n workers is

    X(n) = X(1) n / (1 + contention (n - 1) + coherency n (n - 1))

``contention`` is the share of the work that workers do one after the other. ``coherency`` is the
time that each pair of workers costs. Without ``coherency`` the formula is Amdahl's law (N. J.
Gunther, "Guerrilla Capacity Planning", Springer 2007, chapters 4 to 6, and "A general theory of
computational scalability based on rational functions", arXiv:0808.1431). ``n / X(n)`` is linear in
three coefficients, so each fit is a problem of linear least squares. No coefficient is negative.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from iobench.results.statistics import Estimate

FEWEST_COUNTS = 3
"""How many different numbers of workers must be measured for an extrapolation."""
REACH = 2
"""Rates are predicted for at most this multiple of the largest measured number of workers."""

_CERTAIN_GROWTH = 0.3
"""Share of the predicted growth that is assumed for the lower end of an interval. Further workers
may run on second hardware threads of cores in use; a second thread adds 0.3 to 1 times the rate of
the first."""
_MAX_MISFIT = 0.10
"""Maximum relative error of a fitted rate. If it is larger, the rates do not follow the law."""

Terms = tuple[int, ...]
"""Indices of the coefficients that may differ from 0: 0 is X(1), 1 contention, 2 coherency."""
_ALL_TERMS: tuple[Terms, ...] = ((0,), (0, 1), (0, 2), (0, 1, 2))
"""The sets of terms of the universal scalability law."""
AMDAHL: tuple[Terms, ...] = ((0,), (0, 1))
"""The sets of terms of Amdahl's law, which can be fitted to two counts."""


@dataclass(frozen=True, slots=True)
class Scalability:
    """The universal scalability law with its three coefficients.

    Attributes:
        one_worker: the rate of one worker.
        contention: the share of the work that workers do one after the other.
        coherency: the time that each pair of workers costs, as a share of the time of one worker.
    """

    one_worker: float
    contention: float
    coherency: float

    def rate(self, workers: float) -> float:
        """Return the rate with a number of workers."""
        waiting = self.contention * (workers - 1) + self.coherency * workers * (workers - 1)
        return self.one_worker * workers / (1 + waiting)


def fitted(rates: Mapping[int, float], terms: Iterable[Terms] = _ALL_TERMS) -> Scalability:
    """Fit the law to measured rates so that the relative errors are as small as possible.

    No coefficient may be negative. Each set of ``terms`` gives a least-squares solution in which
    the other coefficients are 0. The solution with the smallest error is returned, of those without
    a negative coefficient.

    Args:
        rates: the rates above 0 by number of workers from 1 on; at least one.
        terms: the sets of coefficients that are tried.
    """
    counts = np.array(sorted(rates), float)
    # The coefficients are linear in n / X(n), the seconds of one worker for a sample.
    worker_seconds = counts / np.array([rates[int(count)] for count in counts])
    columns = np.stack([np.ones_like(counts), counts - 1, counts * (counts - 1)], axis=1)
    columns /= worker_seconds[:, None]  # Makes the errors relative.
    best = np.array([float(np.mean(worker_seconds)), 0.0, 0.0])
    smallest_error = np.inf
    for indices in terms:
        solution, *_ = np.linalg.lstsq(columns[:, indices], np.ones_like(counts), rcond=None)
        # Rounding may make a coefficient slightly negative that should be 0.
        if solution[0] <= 0 or (solution < -1e-12 * solution[0]).any():
            continue
        error = float(((columns[:, indices] @ solution - 1) ** 2).sum())
        if error < smallest_error - 1e-15:
            smallest_error = error
            best = np.zeros(3)
            best[list(indices)] = solution
    sample_s, contention_s, coherency_s = (max(0.0, float(value)) for value in best)
    return Scalability(1 / sample_s, contention_s / sample_s, coherency_s / sample_s)


def rate_at_workers(
    rates: Mapping[int, Estimate], workers: int, max_workers: float | None
) -> Estimate | None:
    """Return the rate with a number of workers.

    Args:
        rates: rates by number of workers; 0 is the rate of the training process itself.
        workers: the number of workers.
        max_workers: the number of CPUs, above which more workers gain nothing; None if workers wait
            more than they compute, or if the number of CPUs is unknown.

    Returns:
        The rate; None if the measured numbers of workers do not support a prediction.
    """
    if workers in rates:
        return rates[workers]
    counts = sorted(count for count in rates if count > 0)
    if not counts or workers < 1:
        return None
    if max_workers is not None:
        # Measured rates are used even above the number of CPUs.
        workers = min(workers, max(int(max_workers), counts[-1]))
    if workers in rates:
        return rates[workers]
    if workers < counts[0]:
        # Fewer workers are not faster. At worst, their rate falls in proportion to their number.
        fewest = rates[counts[0]]
        rate = fewest.median * workers / counts[0]
        return Estimate(rate, rate, fewest.high, 0.0, fewest.repeats)
    if workers > counts[-1]:
        return extrapolated({count: rates[count] for count in counts}, workers)
    lower = max(count for count in counts if count < workers)
    upper = min(count for count in counts if count > workers)
    return _interpolated(rates[lower], rates[upper], (workers - lower) / (upper - lower))


def extrapolated(rates: Mapping[int, Estimate], workers: int) -> Estimate | None:
    """Return the rate with more workers than were measured.

    The law, fitted to the medians, gives the rate. For its interval, the law and Amdahl's law are
    also fitted to the medians, to the lower ends and to the upper ends of the measured intervals.
    The interval contains the rates of all these fits. Its lower end also assumes that only 0.3 of
    the smallest predicted growth happens (``_CERTAIN_GROWTH``).

    Args:
        rates: rates by number of workers, from 1 on.
        workers: a number of workers that is larger than all of these.

    Returns:
        The rate; None if fewer than three numbers of workers were measured, if ``workers`` exceeds
        twice the largest of them, or if the measured rates do not follow the law.
    """
    largest = max(rates)
    if len(rates) < FEWEST_COUNTS or workers > REACH * largest:
        return None
    medians = {count: rate.median for count, rate in rates.items()}
    law = fitted(medians)
    for count, median in medians.items():
        if abs(law.rate(count) / median - 1) > _MAX_MISFIT:
            return None
    lows = {count: rate.low for count, rate in rates.items()}
    highs = {count: rate.high for count, rate in rates.items()}
    predicted = law.rate(workers)
    predictions = [predicted]
    for ends in (medians, lows, highs):
        predictions.append(fitted(ends).rate(workers))
        predictions.append(fitted(ends, AMDAHL).rate(workers))
    growth = min(predictions) - rates[largest].low
    if growth > 0:
        growth *= _CERTAIN_GROWTH
    low = rates[largest].low + growth
    repeats = min(rate.repeats for rate in rates.values())
    return Estimate(predicted, min(low, predicted), max(predictions), 0.0, repeats)


def _interpolated(lower: Estimate, upper: Estimate, share: float) -> Estimate:
    """Interpolate linearly between two rates.

    Args:
        lower: the rate of fewer workers.
        upper: the rate of more workers.
        share: the position between them, from 0 (``lower``) to 1 (``upper``).
    """
    return Estimate(
        lower.median + (upper.median - lower.median) * share,
        lower.low + (upper.low - lower.low) * share,
        lower.high + (upper.high - lower.high) * share,
        coverage=0.0,
        repeats=min(lower.repeats, upper.repeats),
    )
