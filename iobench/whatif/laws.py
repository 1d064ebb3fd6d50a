"""PURE. How a loader's rate grows with its workers.

Five laws, of which the evidence chooses: ``w r``; ``min(w, processors) r``; ``min(w r, cap)``;
Amdahl's; and Gunther's Universal Scalability Law ``λ w / (1 + σ (w - 1) + κ w (w - 1))``
("Guerrilla Capacity Planning", 2007), of which Amdahl's is the case κ = 0. Each is fitted to
relative errors in closed form; that with the smallest error at points which were left out of its
fit is taken, the simpler of equals. The second alone can tell a saturation from points before it:
what decodes needs processors, and how many there are is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from iobench.whatif.squares import nonnegative

_FEWEST = 3  # points from which on laws are compared; below, the rate is proportional
_FEWEST_USL = 4
_ALIKE = 1e-6

Points = Mapping[int, float]
"""Samples/s by workers, of which there is at least one."""


@dataclass(frozen=True, slots=True)
class WorkerLaw:
    """Samples/s by workers, 1 or more.

    Attributes:
        form: ``proportional``, ``processors``, ``capped``, ``amdahl`` or ``usl``.
        one: samples/s of one worker.
        cap: samples/s that no number of workers exceeds; None without such a bound.
        contention, coherency: σ and κ of Gunther's law; 0 in the other forms.
        error: the largest relative error at a point that was left out; None where none was.
    """

    form: str
    one: float
    cap: float | None = None
    contention: float = 0.0
    coherency: float = 0.0
    error: float | None = None

    def rate(self, workers: int) -> float:
        """Samples/s with so many workers.

        Raises:
            ValueError: fewer than one.
        """
        if workers < 1:
            raise ValueError("a law is of one worker or more")
        delayed = 1 + (self.contention + self.coherency * workers) * (workers - 1)
        rate = self.one * workers / delayed
        return rate if self.cap is None else min(rate, self.cap)


def fit_law(points: Points, processors: int | None) -> WorkerLaw:
    """The law of some points.

    Of fewer than three the rate is proportional to the workers, up to ``processors``: more tell
    nothing of how it ends.

    Raises:
        ValueError: no points, or a rate or a number of workers that is not positive.
    """
    if not points or min(points) < 1 or min(points.values()) <= 0:
        raise ValueError("a law needs positive rates of one worker or more")
    if len(points) < _FEWEST:
        law = _proportional(points)
        most = max(processors or max(points), max(points))
        return WorkerLaw(law.form, law.one, cap=law.one * most)
    forms = _forms(points, processors)
    best = min(enumerate(forms), key=lambda form: (_rounded(_spread(form[1], points)), form[0]))[1]
    law, worst = best(points), max(abs(e) for e in _errors(best, points).values())
    return WorkerLaw(law.form, law.one, law.cap, law.contention, law.coherency, error=worst)


def _forms(points: Points, processors: int | None) -> list[Callable[[Points], WorkerLaw]]:
    """Those that so many points can tell apart, the simplest first."""
    forms: list[Callable[[Points], WorkerLaw]] = [_proportional]
    if processors is not None and processors < max(points):
        forms.append(partial(_to_processors, processors=processors))
    forms += [_capped, _amdahl]
    return [*forms, _usl] if len(points) >= _FEWEST_USL else forms


def left_out(law: WorkerLaw, points: Points) -> dict[int, float]:
    """What a law of this form, fitted to all other points, says of each; of three or more."""
    form = _FORMS.get(law.form) or partial(
        _to_processors, processors=round((law.cap or law.one) / law.one)
    )
    return {
        workers: form({w: r for w, r in points.items() if w != workers}).rate(workers)
        for workers in points
        if len(points) >= _FEWEST
    }


def _errors(form: Callable[[Points], WorkerLaw], points: Points) -> dict[int, float]:
    """The relative error of each point's prediction by a fit to all others."""
    return {
        workers: form({w: r for w, r in points.items() if w != workers}).rate(workers) / rate - 1
        for workers, rate in points.items()
    }


def _spread(form: Callable[[Points], WorkerLaw], points: Points) -> float:
    errors = _errors(form, points).values()
    return math.sqrt(sum(math.log1p(error) ** 2 for error in errors) / len(points))


def _rounded(spread: float) -> float:
    """So that what differs by rounding alone is alike, and the simpler law is taken."""
    return round(spread / _ALIKE)


def _proportional(points: Points) -> WorkerLaw:
    """Through the origin: the geometric mean of samples/s a worker."""
    return WorkerLaw("proportional", _geometric([rate / w for w, rate in points.items()]))


def _to_processors(points: Points, processors: int) -> WorkerLaw:
    """As ``_proportional`` of workers that each have a processor; more bring nothing."""
    one = _geometric([rate / min(w, processors) for w, rate in points.items()])
    return WorkerLaw("processors", one, cap=one * processors)


def _capped(points: Points) -> WorkerLaw:
    """Proportional up to some point and constant from there on: every cut is tried."""
    ordered = sorted(points)
    best, least = _proportional(points), math.inf
    for cut in range(1, len(ordered) + 1):
        rising, flat = ordered[:cut], ordered[cut:]
        one = _geometric([points[w] / w for w in rising])
        cap = _geometric([points[w] for w in flat]) if flat else None
        law = WorkerLaw("capped", one, cap)
        errors = sum(math.log(law.rate(w) / points[w]) ** 2 for w in ordered)
        if errors < least - 1e-15:
            best, least = law, errors
    return best


def _amdahl(points: Points) -> WorkerLaw:
    return _gunther("amdahl", points, 2)


def _usl(points: Points) -> WorkerLaw:
    return _gunther("usl", points, 3)


def _gunther(form: str, points: Points, terms: int) -> WorkerLaw:
    """``w / X = a + b (w - 1) + c w (w - 1)``: linear in coefficients that are not negative."""
    rows = [
        [term * rate / w for term in (1.0, w - 1.0, w * (w - 1.0))[:terms]]
        for w, rate in points.items()
    ]
    a, b, c = [*nonnegative(rows), 0.0][:3]
    if a <= 0:  # no rate of one worker: all of it were delay
        return WorkerLaw(form, _proportional(points).one)
    return WorkerLaw(form, 1 / a, contention=b / a, coherency=c / a)


def _geometric(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


_FORMS = {"proportional": _proportional, "capped": _capped, "amdahl": _amdahl, "usl": _usl}
