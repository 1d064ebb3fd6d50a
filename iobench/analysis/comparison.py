"""PURE. Compare saved runs: did a change help?

Loops are paired by their group and compared at the farthest input of each, so that workers, loader,
access and stored images may differ: what differs is listed. Everything else is paired by its
settings. A regression is a ratio whose interval leaves 1 out on the worse side and that passes the
threshold; an improvement is the same on the better side. Where the interval holds both 1 and the
threshold, or repeats are too few for 95 %, the runs are underpowered.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from dataprep.counted import counted
from dataprep.names import escape
from iobench.analysis import differences
from iobench.analysis.analyse import analyse
from iobench.analysis.differences import Difference
from iobench.analysis.loops import Loop, loops
from iobench.analysis.points import Repeats, by_point, cold_label, values
from iobench.analysis.recommend import Recommendation
from iobench.errors import NotComparable
from iobench.result import Result
from iobench.stats import (
    Estimate,
    More,
    Ratio,
    estimate,
    has_ratio,
    more_to_cover,
    more_to_tell,
    ratio_apart,
)
from iobench.words import number_words, params_words

Verdict = Literal["regression", "improvement", "underpowered", "no evidence"]
VERDICTS: tuple[Verdict, ...] = ("regression", "improvement", "underpowered", "no evidence")
"""In the order in which they are shown."""

FORCE = "--force compares them nevertheless"
_SAME = ("model", "image_size", "batch_size")
_IMAGES = ("images", "classes", "seed")


@dataclass(frozen=True, slots=True)
class Figure:
    """A metric with its words; one that is ``beside`` is compared where both runs have it."""

    metric: str
    name: str
    higher_is_better: bool
    unit: Literal["", "s", "bytes"] = ""
    beside: bool = False

    def say(self, value: float) -> str:
        """``24,757``, ``12.3 ms``, ``412 MB``."""
        if self.unit == "bytes":
            return f"{number_words(value / 1e6)} MB"
        if self.unit == "":
            return number_words(value)
        for scale, unit in ((1.0, "s"), (1e-3, "ms")):
            if value >= scale:
                return f"{number_words(value / scale)} {unit}"
        return f"{number_words(value * 1e6)} µs"


_RATE = Figure("samples_per_s", "samples/s", higher_is_better=True)
_MB = Figure("mb_per_s", "MB/s", higher_is_better=True)
_FIRST = Figure("time_to_first_batch_s", "time to first batch", False, "s", beside=True)
_MEMORY = Figure("memory_bytes", "memory", False, "bytes", beside=True)
_FIGURES: Mapping[str, tuple[Figure, ...]] = {
    "disk": (_MB, Figure("latency_s_p99", "latency, p99", False, "s", beside=True)),
    "layout": (_RATE,),
    "object": (_MB, Figure("first_byte_s_p50", "first byte, p50", False, "s", beside=True)),
    "loader": (
        *(_RATE, _FIRST, _MEMORY),
        Figure("cpu_s_per_1000_samples", "CPU s/1,000 samples", False, beside=True),
        Figure("first_epoch_s", "first epoch", False, "s", beside=True),
        Figure("steady_samples_per_s", "later epochs, samples/s", True, beside=True),
    ),
    "train": (_RATE, _FIRST, _MEMORY),
    "watch": (_RATE, _FIRST, Figure("wait_share", "share of waiting", False, beside=True)),
}


@dataclass(frozen=True, slots=True)
class Saved:
    """A result, and where it was read."""

    where: str
    result: Result

    @property
    def started(self) -> datetime | None:
        """When the run started; None where that is unknown."""
        try:
            moment = datetime.fromisoformat(self.result.started)
        except (TypeError, ValueError):
            return None
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Change:
    """One figure of one point in both runs. ``why`` and ``more`` explain the verdict."""

    kind: str
    name: str
    figure: Figure
    base: Estimate
    new: Estimate
    ratio: Ratio
    verdict: Verdict
    why: str = ""
    more: More | None = None

    @property
    def worse(self) -> float:
        """Logarithm of how many times worse the figure is: 0 for no change."""
        away = math.log(self.ratio.ratio)
        return -away if self.figure.higher_is_better else away

    @property
    def words(self) -> str:
        """``+56.0 %, 1.560 (1.510 to 1.610)``."""
        found = self.ratio
        said = f"{(found.ratio - 1) * 100:+.1f} %"
        if found.coverage == 0:
            return f"{said}, {found.ratio:.3f} (no interval)"
        covered = "" if found.told else f", {found.coverage * 100:.0f} %"
        return f"{said}, {found.ratio:.3f} ({found.low:.3f} to {found.high:.3f}{covered})"

    @property
    def verdict_words(self) -> str:
        """``underpowered, 14 more repeats``."""
        if self.more is None:
            return self.verdict
        least = "at least " if self.more.at_least else ""
        return f"{self.verdict}, {least}{counted(self.more.repeats, 'more repeat')}"


@dataclass(frozen=True, slots=True)
class LoopChange:
    """A loop in both runs: what was changed, what the base predicted of it, what was found."""

    group: str
    changed: tuple[str, ...]
    predicted: Estimate | None
    applied: tuple[str, ...]
    found: Change | None
    device: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs. ``environment`` and ``config`` are differences; ``alone`` are points of one run."""

    base: Saved
    new: Saved
    threshold: float
    environment: tuple[Difference, ...]
    config: tuple[Difference, ...]
    loops: tuple[LoopChange, ...]
    changes: tuple[Change, ...]
    alone: tuple[str, ...]

    @property
    def unlike(self) -> tuple[Difference, ...]:
        """Differences between the machines."""
        return tuple(each for each in self.environment if each.sort == "machine")

    def of(self, verdict: Verdict) -> list[Change]:
        """Changes with this verdict, the largest first."""
        found = [change for change in self.changes if change.verdict == verdict]
        return sorted(found, key=lambda change: -abs(change.worse))

    @property
    def exit_code(self) -> int:
        """1 if there is a regression."""
        return int(bool(self.of("regression")))

    @property
    def sentence(self) -> str:
        """The answer in one sentence."""
        size = f"{self.threshold * 100:.3g} %"
        loop = next((one for one in self.loops if one.found is not None), None)
        said = []
        if loop is not None and loop.found is not None:
            times = f"{loop.found.ratio.ratio:.2f} times"
            helped = {"improvement": "faster", "regression": "slower"}.get(loop.found.verdict)
            if helped:
                said.append(f"The loop {loop.group!r} is {helped}: {times} its rate")
            else:
                few = loop.found.verdict == "underpowered"
                sure = ", with too few repeats to be sure" if few else ""
                said.append(f"The loop {loop.group!r} gets {times} its rate{sure}")
        worse, better = len(self.of("regression")), len(self.of("improvement"))
        total = len(self.changes)
        said.append(f"{worse} of {total} figures worse by {size} or more, {better} better")
        if unsure := len(self.of("underpowered")):
            said.append(f"{unsure} underpowered")
        return f"{'; '.join(said)}."


def compare(base: Saved, new: Saved, threshold: float, *, force: bool = False) -> Comparison:
    """Every figure that both runs have.

    Raises:
        NotComparable: other images, model, input size or batch size, unlike machines, each without
            ``force``; or nothing in common.
    """
    before, after = base.result, new.result
    pairs = _paired(loops(before.trials), loops(after.trials))
    found = Comparison(
        *(base, new, threshold),
        differences.environment(before.environment, after.environment),
        differences.config(before.config, after.config),
        tuple(_loop_change(base.result, *pair, threshold) for pair in pairs),
        tuple(_changes(before, after, pairs, threshold)),
        tuple(_alone(before, after, pairs)),
    )
    unlike = [*_other_work(before, after, pairs), *map(str, found.unlike)]
    if unlike and not force:
        more = f"; and {len(unlike) - 4} more" if len(unlike) > 4 else ""
        raise NotComparable(
            f"{new.where} is not comparable with {base.where}: {'; '.join(unlike[:4])}{more}; "
            f"{FORCE}"
        )
    if not found.changes:
        raise NotComparable(f"{new.where} and {base.where} have no figure in common")
    return found


def in_order(base: Saved, others: Sequence[Saved]) -> list[Saved]:
    """All runs in order of time; as given where one does not say when it started."""
    every = [base, *others]
    times = [saved.started for saved in every]
    if None in times:
        return every
    return sorted(every, key=lambda saved: saved.started or datetime.min.replace(tzinfo=UTC))


def judge(
    ratio: Ratio, base: Sequence[float], new: Sequence[float], threshold: float, *, higher: bool
) -> tuple[Verdict, str, More | None]:
    """The verdict on a figure, why, and how many more repeats would tell."""
    reaches = ratio.low <= 1 - threshold or ratio.high >= 1 + threshold
    blurred = reaches and not ratio.leaves_1_out
    if not ratio.told:
        why = f"{len(base)} against {len(new)} repeats cover {ratio.coverage * 100:.0f} %"
        one_each = len(base) == len(new) == 1  # nothing is known of how they scatter
        more = More(more_to_cover(len(base), len(new)))
        if blurred or one_each:
            more = more_to_tell(base, new, threshold)
        return "underpowered", why, more
    if blurred:
        why = "the interval holds both 1 and the threshold"
        return "underpowered", why, more_to_tell(base, new, threshold)
    if not ratio.leaves_1_out or abs(ratio.ratio - 1) < threshold:
        return "no evidence", "smaller than the threshold", None
    return ("improvement" if (ratio.ratio > 1) == higher else "regression"), "", None


def _paired(base: Sequence[Loop], new: Sequence[Loop]) -> list[tuple[Loop, Loop]]:
    """Pairs of loops with the same group; if each run has one loop, these two."""
    named = {loop.group: loop for loop in new}
    pairs = [(loop, named[loop.group]) for loop in base if loop.group in named]
    if not pairs and len(base) == len(new) == 1:
        return [(base[0], new[0])]
    return pairs


def _other_work(base: Result, new: Result, pairs: Sequence[tuple[Loop, Loop]]) -> Iterator[str]:
    """Images, model, input size or batch size that are not the same."""
    before, after = (run.config.get("data") or {} for run in (base, new))
    sources = before.get("source"), after.get("source")
    if all(sources) and sources[0] != sources[1]:
        yield f"data.source: {escape(str(sources[0]))} -> {escape(str(sources[1]))}"
    drawn = [not side.get("source") and not side.get("shards") for side in (before, after)]
    if all(drawn):
        for key in _IMAGES:
            if before.get(key) != after.get(key):
                yield f"data.{key}: {before.get(key)} -> {after.get(key)}"
    for one, other in pairs:
        for key in _SAME:
            if one.params.get(key) != other.params.get(key):
                yield f"{one.group}: {key} {one.params.get(key)} -> {other.params.get(key)}"


def _loop_change(base: Result, one: Loop, other: Loop, threshold: float) -> LoopChange:
    keys = one.params.keys() | other.params.keys()
    keys -= {"group", "input", "over", *_SAME}
    changed = tuple(
        escape(f"{key}: {one.params.get(key)} -> {other.params.get(key)}")
        for key in sorted(keys)
        if one.params.get(key) != other.params.get(key)
    )
    if one.farthest != other.farthest:
        changed = (*changed, f"input: {one.farthest} -> {other.farthest}")
    applied = [c for c in analyse(base, one.group).advice.changes if _was_made(c, one, other)]
    gains = [c.gain for c in applied if c.gain is not None]
    predicted = None
    if gains:
        predicted = Estimate(
            math.prod(gain.median for gain in gains),
            math.prod(gain.low for gain in gains),
            math.prod(gain.high for gain in gains),
            coverage=0.0,
            repeats=min(gain.repeats for gain in gains),
        )
    name = f"{one.group}, {_inputs(one, other)}"
    found = _change("train", name, _RATE, one.trials, other.trials, threshold)
    device = " -> ".join(
        dict.fromkeys(str(loop.told.get("device") or "?") for loop in (one, other))
    )
    actions = tuple(change.action for change in applied)
    return LoopChange(one.group, changed, predicted, actions, found, escape(device))


def _was_made(change: Recommendation, one: Loop, other: Loop) -> bool:
    """Whether the new loop has what was recommended to the base."""
    before, after = one.params, other.params
    if change.setting == "stage":
        return one.farthest == "store" and other.farthest in ("cold", "warm")
    if change.setting in ("sharding", "resize", "shard_size"):
        form = [str(side.get("data", "")).partition("@")[0] for side in (before, after)]
        return form[0] != form[1]
    if change.setting in ("workers", "prefetch", "pin_memory", "loader", "normalise"):
        return bool(after.get(change.setting) == change.value != before.get(change.setting))
    return False


def _inputs(one: Loop, other: Loop) -> str:
    return " -> ".join(dict.fromkeys(str(loop.farthest) for loop in (one, other)))


def _changes(
    base: Result, new: Result, pairs: Sequence[tuple[Loop, Loop]], threshold: float
) -> Iterator[Change]:
    for one, other in pairs:
        shared = [source for source in one.inputs if source in other.inputs]
        sides = [(source, one.inputs[source], other.inputs[source]) for source in shared]
        if one.farthest != other.farthest and one.farthest and other.farthest:
            sides.append((_inputs(one, other), one.trials, other.trials))
        for source, before, after in sides:
            figures = _FIGURES["train"] if source in ("warm", "cold", "store") else (_RATE,)
            for figure in figures:
                name = f"{one.group}, {source}"
                if (made := _change("train", name, figure, before, after, threshold)) is not None:
                    yield made
    for kind, name, before, after in _points(base, new):
        for figure in _FIGURES.get(kind, (_RATE,)):
            if (made := _change(kind, name, figure, before, after, threshold)) is not None:
                yield made


def _points(base: Result, new: Result) -> Iterator[tuple[str, str, Repeats, Repeats]]:
    """Points other than loops with the same settings and the same proof of coldness."""
    for kind in dict.fromkeys(trial.kind for trial in base.trials if trial.kind != "train"):
        after = {_key(params, r): r for params, r in by_point(new.trials, kind)}
        for params, repeats in by_point(base.trials, kind):
            if (beside := after.get(_key(params, repeats))) is not None:
                yield kind, _named(kind, params), repeats, beside


def _alone(base: Result, new: Result, pairs: Sequence[tuple[Loop, Loop]]) -> Iterator[str]:
    """Points and loops that one run has alone, and trials that did not end well."""
    groups = {loop.group for pair in pairs for loop in pair}
    sides = (("base", base, new), ("new", new, base))
    for where, run, other in sides:
        for loop in loops(run.trials):
            if loop.group not in groups:
                yield f"only in {where}: loop {escape(loop.group)}"
        for kind in dict.fromkeys(trial.kind for trial in run.trials if trial.kind != "train"):
            there = {_key(params, r) for params, r in by_point(other.trials, kind)}
            for params, repeats in by_point(run.trials, kind):
                if _key(params, repeats) not in there:
                    state = cold_label(repeats)
                    yield f"only in {where}: {_named(kind, params)} {escape(state)}".rstrip()
        for reason in dict.fromkeys(t.reason for t in run.trials if t.status != "done"):
            yield f"failed or skipped in {where}: {escape(reason)}"


def _key(params: Mapping[str, Any], repeats: Repeats) -> str:
    return json.dumps([dict(params), cold_label(repeats)], sort_keys=True, default=str)


def _named(kind: str, params: Mapping[str, Any]) -> str:
    try:
        return params_words(kind, params)
    except (LookupError, TypeError, ValueError):  # params of another version
        return escape(f"{kind} {json.dumps(dict(params), default=str)}")


def _change(
    kind: str, name: str, figure: Figure, base: Repeats, new: Repeats, threshold: float
) -> Change | None:
    """The change of one figure; None where a repeat of either run lacks it."""
    sides = [[v for v in values(side, figure.metric) if has_ratio(v)] for side in (base, new)]
    if not all(sides) or [len(side) for side in sides] != [len(base), len(new)]:
        return None
    before, after = sides
    ratio = ratio_apart(before, after)
    verdict, why, more = judge(ratio, before, after, threshold, higher=figure.higher_is_better)
    one, other = estimate(before), estimate(after)
    return Change(kind, escape(name), figure, one, other, ratio, verdict, why, more)
