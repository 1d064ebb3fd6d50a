"""PURE. Compare saved runs: did a change help?

Loops are paired by their group and compared at the farthest input of each, so that workers, loader,
access and stored images may differ: what differs is listed. Everything else is paired by its
settings.

The rate of each training loop decides the exit code. Without a loop in both runs, the rate of each
loader and probe decides. Where neither run knows the rate of a point, as with data that fit into
the read-ahead of a loader, its next figure decides instead: the time to the first batch. All other
figures are listed. ``verdicts`` says how a figure is judged.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from dataprep.counted import counted
from dataprep.names import escape
from iobench.analysis import differences
from iobench.analysis.analyse import analyse
from iobench.analysis.differences import Difference
from iobench.analysis.loops import Loop, loops
from iobench.analysis.points import Repeats, by_point, cold_label, values
from iobench.analysis.recommend import Recommendation
from iobench.analysis.verdicts import Change, Figure, Sides, Verdict, judged, more_repeats
from iobench.errors import NotComparable
from iobench.ladder import RUNGS
from iobench.numbers import exact_percent
from iobench.result import STEADY_STATE, Result
from iobench.stats import Estimate, has_ratio
from iobench.words import params_words

FORCE = "--force compares them nevertheless"
_SAME = ("model", "image_size", "batch_size")
_IMAGES = ("images", "classes", "seed")


_RATE = Figure("samples_per_s", "samples/s", higher_is_better=True)
_MB = Figure("mb_per_s", "MB/s", higher_is_better=True)
_FIRST = Figure("time_to_first_batch_s", "time to first batch", False, "s")
_START = Figure("epoch_start_s", "start of later epochs", False, "s")
_MEMORY = Figure("memory_bytes", "memory", False, "bytes")
# The first figure of a kind is the main figure of its points. If neither run has it, the next one
# is.
_FIGURES: Mapping[str, tuple[Figure, ...]] = {
    "disk": (_MB, Figure("latency_s_p99", "latency, p99", False, "s")),
    "layout": (_RATE,),
    "object": (_MB, Figure("first_byte_s_p50", "first byte, p50", False, "s")),
    "loader": (
        *(_RATE, _FIRST, _START, _MEMORY),
        Figure("cpu_s_per_1000_samples", "CPU s/1,000 samples", False),
        Figure("first_epoch_s", "first epoch", False, "s"),
        Figure("steady_samples_per_s", "later epochs, samples/s", True),
    ),
    "train": (_RATE, _FIRST, _START, _MEMORY),
    "watch": (
        *(_RATE, _FIRST, Figure("wait_share", "share of waiting", False)),
        Figure("ceiling_samples_per_s", "samples/s without the loader", True),
    ),
}

_LOOPS = ("train", "watch")
_RATES_BY_RULE = (*_LOOPS, "loader")
"""Kinds of trials whose rates depend on the rule of ``Result.rates``."""


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

    @property
    def deciding(self) -> list[Change]:
        """The changes that decide the exit code."""
        return [change for change in self.changes if change.decides]

    @property
    def listed(self) -> list[Change]:
        """The changes that do not decide the exit code."""
        return [change for change in self.changes if not change.decides]

    @property
    def decided_by(self) -> str:
        """The figures that decide the exit code: ``the rate of each training loop``."""
        if any(change.kind in _LOOPS for change in self.deciding):
            return "the rate of each training loop"
        return "the rate of each loader and probe"

    @property
    def more_repeats(self) -> int:
        """How many more repeats each run needs so that any result is possible; 0 if none."""
        return more_repeats(self.deciding)

    @property
    def exit_code(self) -> int:
        """1 if a figure that decides has a regression."""
        return int(bool(with_verdict(self.deciding, "regression")))

    @property
    def rule_note(self) -> str:
        """A warning if the rates of the two runs were measured by different rules."""
        if not _differ_in_rule(self.base.result, self.new.result, self.changes):
            return ""
        return (
            f"The rates of {_by_former_rule(self.base, self.new).where} were measured by another "
            "rule: a ratio of rates may show the rules instead of a change."
        )

    @property
    def sentence(self) -> str:
        """The answer in one sentence."""
        parts = []
        if (loop := self._headline_loop) is not None:
            parts.append(_loop_words(loop))
        threshold = exact_percent(self.threshold)
        worse = len(with_verdict(self.deciding, "regression"))
        better = len(with_verdict(self.deciding, "improvement"))
        number = counted(len(self.deciding), "deciding figure")
        parts.append(f"{worse} of {number} worse by {threshold} or more, {better} better")
        if self.more_repeats:
            more = counted(self.more_repeats, "more repeat")
            parts.append(
                f"underpowered: with {number} no change can be significant, run at least {more}"
            )
        elif unsure := len(with_verdict(self.deciding, "underpowered")):
            parts.append(f"{unsure} underpowered")
        if self.listed:
            worse = len(with_verdict(self.listed, "regression"))
            better = len(with_verdict(self.listed, "improvement"))
            number = counted(len(self.listed), "other figure")
            parts.append(f"{number} listed, {worse} worse, {better} better")
        return f"{'; '.join(parts)}."

    @property
    def _headline_loop(self) -> LoopChange | None:
        """The first loop with a regression, or the first of all."""
        compared = [loop for loop in self.loops if loop.found is not None]
        for loop in compared:
            if loop.found is not None and loop.found.verdict == "regression":
                return loop
        return compared[0] if compared else None


def with_verdict(changes: Sequence[Change], verdict: Verdict) -> list[Change]:
    """Changes with this verdict, the largest first."""
    selected = [change for change in changes if change.verdict == verdict]
    return sorted(selected, key=lambda change: -abs(change.worse))


def compare(base: Saved, new: Saved, threshold: float, *, force: bool = False) -> Comparison:
    """Every figure that both runs have.

    Raises:
        NotComparable: other images, model, input size or batch size, unlike machines, rates that
            were measured by different rules, or a loop without a rate, each without ``force``; or
            no figure in common that can decide.
    """
    before, after = base.result, new.result
    pairs = _paired(loops(before.trials), loops(after.trials))
    every = list(_sides(before, after, pairs))
    complete = [sides for sides in every if _is_complete(sides)]
    incomplete = [sides for sides in every if sides.is_main and not _is_complete(sides)]
    changes = judged(complete, _decides(complete), threshold)
    rates = {change.sides.group: change for change in changes if _is_loop_rate(change)}
    comparison = Comparison(
        base=base,
        new=new,
        threshold=threshold,
        environment=differences.environment(before.environment, after.environment),
        config=differences.config(_settings(before), _settings(after)),
        loops=tuple(_loop_change(before, *pair, rates.get(pair[0].group)) for pair in pairs),
        changes=tuple(changes),
        alone=(*_alone(before, after, pairs), *map(_incomplete_words, incomplete)),
    )
    unlike = [*_other_work(before, after, pairs), *map(str, comparison.unlike)]
    if _differ_in_rule(before, after, changes):
        older = _by_former_rule(base, new).where
        unlike.insert(
            0,
            f"the rates of {older} were measured by another rule, which this version has "
            f"replaced: measure {older} again with this version",
        )
    if not any(change.decides and change.kind in _LOOPS for change in changes):
        # The figures of loaders and probes must not answer for a loop that both runs have.
        unlike += [_incomplete_words(sides) for sides in incomplete if sides.kind in _LOOPS]
    if unlike and not force:
        more = f"; and {len(unlike) - 4} more" if len(unlike) > 4 else ""
        raise NotComparable(
            f"{new.where} is not comparable with {base.where}: {'; '.join(unlike[:4])}{more}; "
            f"{FORCE}"
        )
    if not comparison.deciding:
        raise NotComparable(
            f"{new.where} and {base.where} have no figure in common that can decide"
        )
    return comparison


def in_order(base: Saved, others: Sequence[Saved]) -> list[Saved]:
    """All runs in order of time; as given where one does not say when it started."""
    every = [base, *others]
    times = [saved.started for saved in every]
    if None in times:
        return every
    return sorted(every, key=lambda saved: saved.started or datetime.min.replace(tzinfo=UTC))


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


def _differ_in_rule(base: Result, new: Result, changes: Sequence[Change]) -> bool:
    """Whether rates are compared that were measured by different rules."""
    return base.rates != new.rates and any(change.kind in _RATES_BY_RULE for change in changes)


def _by_former_rule(base: Saved, new: Saved) -> Saved:
    """The run whose rates were not measured by the rule of this version."""
    return base if new.result.rates == STEADY_STATE else new


def _loop_words(loop: LoopChange) -> str:
    """``The loop 'g' is faster: 1.58 times the base rate``."""
    if loop.found is None:
        return ""
    times = f"{loop.found.ratio.ratio:.2f} times the base rate"
    if loop.found.verdict == "improvement":
        return f"The loop {loop.group!r} is faster: {times}"
    if loop.found.verdict == "regression":
        return f"The loop {loop.group!r} is slower: {times}"
    unsure = ", with too few repeats to be sure" if loop.found.verdict == "underpowered" else ""
    return f"The loop {loop.group!r} runs at {times}{unsure}"


def _settings(result: Result) -> dict[str, Any]:
    """The config, and the number of hosts if several measured at the same time."""
    return {**result.config, **({"hosts": len(result.hosts)} if result.hosts else {})}


def _loop_change(base: Result, one: Loop, other: Loop, rate: Change | None) -> LoopChange:
    keys = one.params.keys() | other.params.keys()
    keys -= {"group", "input", "over", *_SAME}
    changed = tuple(
        escape(f"{key}: {one.params.get(key)} -> {other.params.get(key)}")
        for key in sorted(keys)
        if one.params.get(key) != other.params.get(key)
    )
    if one.farthest != other.farthest:
        changed = (*changed, f"input: {one.farthest} -> {other.farthest}")
    applied: list[Recommendation] = []
    if changed:
        recommended = analyse(base, one.group).advice.changes
        applied = [change for change in recommended if _was_made(change, one, other)]
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
    device = " -> ".join(
        dict.fromkeys(str(loop.told.get("device") or "?") for loop in (one, other))
    )
    actions = tuple(change.action for change in applied)
    return LoopChange(one.group, changed, predicted, actions, rate, escape(device))


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


def _sides(base: Result, new: Result, pairs: Sequence[tuple[Loop, Loop]]) -> Iterator[Sides]:
    """All figures of all points of both runs, also those that not every repeat has."""
    for one, other in pairs:
        shared = [source for source in one.inputs if source in other.inputs]
        inputs = [(source, one.inputs[source], other.inputs[source]) for source in shared]
        main = next((rung for rung in reversed(RUNGS) if rung in shared), "")
        if one.farthest and other.farthest:
            main = _inputs(one, other)
        if main and main not in shared:
            inputs.append((main, one.trials, other.trials))
        for source, before, after in inputs:
            figures = _FIGURES["train"] if source in ("warm", "cold", "store") else (_RATE,)
            name = f"{one.group}, {source}"
            for sides in _sides_of_point("train", name, figures, before, after, one.group):
                yield sides if source == main else replace(sides, is_main=False)
    for kind, name, before, after in _points(base, new):
        yield from _sides_of_point(kind, name, _FIGURES.get(kind, (_RATE,)), before, after)


def _sides_of_point(
    kind: str,
    name: str,
    figures: Sequence[Figure],
    base: Repeats,
    new: Repeats,
    group: str = "",
) -> Iterator[Sides]:
    has_main = False
    for figure in figures:
        before, after = (
            [value for value in values(repeats, figure.metric) if has_ratio(value)]
            for repeats in (base, new)
        )
        if not before and not after:
            continue
        # A figure that a repeat lacks has no values: a median of the others would be of other runs.
        if len(before) != len(base):
            before = []
        if len(after) != len(new):
            after = []
        yield Sides(kind, escape(name), figure, before, after, not has_main, group)
        has_main = True


def _is_complete(sides: Sides) -> bool:
    """Whether every repeat of both runs has the figure."""
    return bool(sides.base and sides.new)


def _incomplete_words(sides: Sides) -> str:
    lacking = "base" if not sides.base else "new"
    if not sides.base and not sides.new:
        lacking = "both runs"
    return f"{sides.name}: {sides.figure.name} is missing in repeats of {lacking}"


def _decides(every: Sequence[Sides]) -> list[bool]:
    """Which figures decide: those of loops, or without a loop those of loaders and probes."""
    main_kinds = {sides.kind for sides in every if sides.is_main}
    kinds = main_kinds & set(_LOOPS) or main_kinds
    return [sides.is_main and sides.kind in kinds for sides in every]


def _is_loop_rate(change: Change) -> bool:
    sides = change.sides
    return sides.kind == "train" and sides.is_main and sides.figure is _RATE


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
