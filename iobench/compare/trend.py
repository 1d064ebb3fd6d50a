"""PURE. Several runs in order of time, against the base and the one before.

The exit code is that of the newest run against the base: what is true now. Earlier regressions
are shown, and do not fail a pipeline after they were mended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from iobench.compare.comparison import Change, Comparison, Saved, compare, side_by_side
from iobench.compare.figures import Figure
from iobench.compare.points import Point
from iobench.stats import Estimate


@dataclass(frozen=True, slots=True)
class Step:
    """One run's figure; ``previous`` is against the last run before it that has the figure."""

    run: int
    found: Estimate
    from_base: Change | None
    from_previous: Change | None


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of one point through the runs that have it."""

    point: Point
    figure: Figure
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Trend:
    """``runs`` in order of time, ``base`` the place of the base among them.

    ``comparisons`` are against the base, in the order of ``runs`` without it. ``in_order`` is
    false where a run does not say when it started: then the order is that in which they were given.
    """

    runs: tuple[Saved, ...]
    base: int
    comparisons: tuple[Comparison, ...]
    rows: tuple[Row, ...]
    in_order: bool

    @property
    def newest(self) -> Comparison:
        """The last run against the base."""
        return self.comparisons[-1]

    @property
    def exit_code(self) -> int:
        """1 where the newest run has a regression."""
        return self.newest.exit_code


def trend(base: Saved, others: Sequence[Saved], threshold: float, *, force: bool = False) -> Trend:
    """``others`` beside ``base``.

    Raises:
        NotComparable: a run has nothing in common with the base, or is of an unlike machine and
            ``force`` is not set.
    """
    times = [started(run) for run in (base, *others)]
    in_order = None not in times
    places = list(range(len(times)))
    if in_order:
        places.sort(key=lambda place: times[place] or datetime.min.replace(tzinfo=UTC))
    every = (base, *others)
    runs = tuple(every[place] for place in places)
    comparisons = {
        index: compare(base, every[place], threshold, force=force)
        for index, place in enumerate(places)
        if place
    }
    rows = _rows(runs, places.index(0), comparisons, threshold)
    return Trend(runs, places.index(0), tuple(comparisons.values()), rows, in_order)


def started(run: Saved) -> datetime | None:
    """When; None where it does not say."""
    try:
        moment = datetime.fromisoformat(run.result.started)
    except (TypeError, ValueError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _rows(
    runs: Sequence[Saved], base: int, comparisons: dict[int, Comparison], threshold: float
) -> tuple[Row, ...]:
    steps: dict[tuple[str, str, str], tuple[Point, Figure, list[Step]]] = {}
    pairwise: dict[tuple[int, int], dict[tuple[str, str, str], Change]] = {}

    def changes(one: int, other: int) -> dict[tuple[str, str, str], Change]:
        if (one, other) not in pairwise:
            found = side_by_side(runs[one], runs[other], threshold)
            pairwise[one, other] = {_key(change): change for change in found.changes}
        return pairwise[one, other]

    for index in range(len(runs)):
        # Against itself a run has every figure that it could have against another.
        for key, own in changes(index, index).items():
            point, figure, row = steps.setdefault(key, (own.point, own.figure, []))
            known = comparisons.get(index)
            from_base = changes(base, index).get(key) if known else None
            from_previous = changes(row[-1].run, index).get(key) if row else None
            row.append(Step(index, own.new, from_base, from_previous))
            steps[key] = (point, figure, row)
    return tuple(Row(point, figure, tuple(row)) for point, figure, row in steps.values())


def _key(change: Change) -> tuple[str, str, str]:
    return (change.point.key, change.point.cache, change.figure.metric)
