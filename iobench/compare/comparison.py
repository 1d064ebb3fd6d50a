"""PURE. Two saved results: each figure that both have, its ratio and verdict."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from dataprep.counted import counted
from dataprep.names import escape
from iobench.compare import differences
from iobench.compare.differences import Difference
from iobench.compare.figures import FIRST_BATCH, Figure, figures_of, first_batch_words
from iobench.compare.points import Apart, Pair, Point, match
from iobench.compare.verdict import Judgement, Verdict, judge
from iobench.errors import NotComparable
from iobench.report.model.numbers import is_number
from iobench.result import Result
from iobench.stats import Estimate, estimate
from iobench.trial import Trial
from iobench.two_samples import Ratio, has_ratio, ratio_apart

FORCE = "--force compares them all the same"


@dataclass(frozen=True, slots=True)
class Saved:
    """A result, and where it was read: what people know it by."""

    where: str
    result: Result

    @property
    def counts(self) -> str:
        """``246 trials done, 6 failed``."""
        found = Counter(trial.status for trial in self.result.trials)
        rest = [f"{found[status]} {status}" for status in ("failed", "skipped") if found[status]]
        return ", ".join([f"{counted(found['done'], 'trial')} done", *rest])


@dataclass(frozen=True, slots=True)
class Change:
    """One figure of one point in both runs."""

    point: Point
    figure: Figure
    base: Estimate
    new: Estimate
    ratio: Ratio
    judgement: Judgement

    @property
    def verdict(self) -> Verdict:
        """Without its reasons."""
        return self.judgement.verdict

    @property
    def worse(self) -> float:
        """How many times worse, in logarithms: 0 where nothing changed."""
        away = math.log(self.ratio.ratio)
        return -away if self.figure.higher_is_better else away


@dataclass(frozen=True, slots=True)
class Comparison:
    """``environment`` and ``config`` are differences; ``changes`` in the order of the base."""

    base: Saved
    new: Saved
    threshold: float
    environment: tuple[Difference, ...]
    config: tuple[Difference, ...]
    changes: tuple[Change, ...]
    apart: tuple[Apart, ...]

    @property
    def unlike(self) -> tuple[Difference, ...]:
        """In what the machines differ."""
        return tuple(each for each in self.environment if each.sort == "machine")

    def of(self, verdict: Verdict) -> list[Change]:
        """Those; what changed by most first, what did not change in the order of the base."""
        found = [change for change in self.changes if change.verdict == verdict]
        if verdict in ("regression", "improvement"):
            found.sort(key=lambda change: -abs(change.worse))
        return found

    @property
    def exit_code(self) -> int:
        """1 on a regression."""
        return int(bool(self.of("regression")))

    @property
    def intervals(self) -> list[Change]:
        """Those with repeats enough for an interval of 95 %."""
        return [change for change in self.changes if change.ratio.told]

    @property
    def leaving(self) -> int:
        """How many of those intervals leave 1 out."""
        return sum(change.ratio.leaves_1_out for change in self.intervals)

    @property
    def by_chance(self) -> float:
        """How many would on average, had nothing changed at all."""
        return sum(1 - change.ratio.coverage for change in self.intervals)


def compare(base: Saved, new: Saved, threshold: float, *, force: bool = False) -> Comparison:
    """Every figure of every point that both runs have.

    Nothing is corrected for their number: that would hide a true regression of one point the more,
    the more points a run has. How many intervals would leave 1 out by chance is told instead.

    Raises:
        NotComparable: no point in common, or unlike machines without ``force``.
    """
    found = side_by_side(base, new, threshold)
    if found.unlike and not force:
        what = "; ".join(map(str, found.unlike[:4]))
        more = f"; and {len(found.unlike) - 4} more" if len(found.unlike) > 4 else ""
        raise NotComparable(
            f"{new.where} is of another machine than {base.where} ({what}{more}): {FORCE}"
        )
    if not found.changes:
        raise NotComparable(
            f"{new.where} and {base.where} have no figure in common: {_hint(base, new, found)}"
        )
    return found


def side_by_side(base: Saved, new: Saved, threshold: float) -> Comparison:
    """The same, whether or not there is anything to compare."""
    before, after = base.result, new.result
    pairs, apart = match(before.trials, after.trials)
    found = [each for pair in pairs for each in _changes(pair, threshold)]
    return Comparison(
        base,
        new,
        threshold,
        differences.environment(before.environment, after.environment),
        differences.config(before.config, after.config),
        tuple(each for each in found if isinstance(each, Change)),
        (*apart, *(each for each in found if isinstance(each, Apart)), *_other_devices(pairs)),
    )


def _changes(pair: Pair, threshold: float) -> Iterator[Change | Apart]:
    every = [trial.metrics for trial in (*pair.base, *pair.new)]
    for figure in figures_of(pair.point.kind, pair.point.params, every):
        base, new = _values(pair.base, figure), _values(pair.new, figure)
        short = [
            f"{len(values)} of {len(trials)} repeats in {where}"
            for where, values, trials in (("base", base, pair.base), ("new", new, pair.new))
            if len(values) < len(trials)
        ]
        if figure.beside and not (base and new):
            continue
        # A figure of some repeats is one of the quicker, or of the slower.
        if not short:
            ratio = ratio_apart(base, new)
            higher = figure.higher_is_better
            said = judge(ratio, base, new, threshold=threshold, higher_is_better=higher)
            if figure == FIRST_BATCH and said.verdict in ("regression", "improvement"):
                sides = [[trial.metrics for trial in side] for side in (pair.base, pair.new)]
                said = replace(said, why=first_batch_words(*sides))
            yield Change(pair.point, figure, estimate(base), estimate(new), ratio, said)
        elif base or new:
            said_short = f"{figure.name} above 0 in only {' and '.join(short)}: not compared"
            yield Apart(pair.point.title, "figure", said_short)


def _values(trials: Sequence[Trial], figure: Figure) -> list[float]:
    found = (trial.metrics.get(figure.metric) for trial in trials)
    return [float(value) for value in found if is_number(value) and has_ratio(value)]


def _other_devices(pairs: Sequence[Pair]) -> Iterator[Apart]:
    """What ``device: auto`` came to be: compared, and told."""
    for pair in pairs:
        for key in ("device", "precision", "emulated"):
            sides = [
                sorted({str(trial.metrics[key]) for trial in side if key in trial.metrics})
                for side in (pair.base, pair.new)
            ]
            if sides[0] != sides[1]:
                base, new = (", ".join(side) or "not told" for side in sides)
                yield Apart(pair.point.title, "device", escape(f"{key}: {base} -> {new}"))


def _hint(base: Saved, new: Saved, found: Comparison) -> str:
    """Why two runs have nothing in common."""
    for side in (base, new):
        if not any(trial.status == "done" for trial in side.result.trials):
            return f"no trial of {side.where} was done"
    if found.apart and all(each.why == "coldness" for each in found.apart):
        return f"what the cache held differs ({found.apart[0].said})"
    params = _params_that_differ(base.result.trials, new.result.trials)
    return f"their points differ ({params})" if params else "they measured other things"


def _params_that_differ(base: Sequence[Trial], new: Sequence[Trial]) -> str:
    """``loader seconds: 1.0 -> 2.0``: params of one kind of which no value is in both runs."""
    said = []
    for kind in dict.fromkeys(trial.kind for trial in base):
        sides = [[t.params for t in trials if t.kind == kind] for trials in (base, new)]
        if not sides[1]:
            continue
        for key in dict.fromkeys(key for params in sides[0] for key in params):
            before, after = ({str(params.get(key)) for params in side} for side in sides)
            if not before & after:
                said.append(f"{kind} {key}: {_few(before)} -> {_few(after)}")
    return "; ".join(said[:4])


def _few(values: set[str]) -> str:
    return ", ".join(sorted(values)[:3])
