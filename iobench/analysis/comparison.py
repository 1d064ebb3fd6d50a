"""PURE. Compare saved runs: did a change help?

Loops are paired by their group, and the farthest input of each loop is compared. Therefore workers,
loader, access and stored images may differ between the runs; these differences are listed. All
other trials are paired by their settings.

The rate of each training loop decides the exit code. If no loop is in both runs, the rate of each
loader and probe decides. A setting may have no rate in either run, for example if the data fit into
the loader's read-ahead. Then its next figure decides: the time to the first batch. All other
figures are only listed. ``iobench.analysis.regressions`` judges the figures.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from dataprep.message_text import counted
from dataprep.name_encoding import escape
from iobench.analysis.analyse import analyse
from iobench.analysis.environment_differences import (
    Difference,
    config_differences,
    environment_differences,
)
from iobench.analysis.loops import Loop, training_loops
from iobench.analysis.recommendations import Recommendation
from iobench.analysis.regressions import (
    Change,
    Figure,
    FigureValues,
    Verdict,
    judge_all,
    repeats_until_significant,
)
from iobench.analysis.repeats import Repeats, by_settings, cold_label, data_name, metric_values
from iobench.errors import NotComparable
from iobench.results.numbers import exact_percent
from iobench.results.result import STEADY_STATE, Result
from iobench.results.statistics import Estimate, has_ratio
from iobench.results.wording import params_words
from iobench.trials.ladder import RUNGS

FORCE = "--force compares them nevertheless"
_WORK_PARAMS = ("model", "image_size", "batch_size")
"""Parameters of a loop that must be equal in both runs."""
_IMAGE_KEYS = ("images", "classes", "seed")
"""Keys of generated images that must be equal in both runs."""
_MAX_REASONS = 4
"""Maximum number of reasons in an error message."""

_RATE = Figure("samples_per_s", "samples/s", higher_is_better=True)
_MB_RATE = Figure("mb_per_s", "MB/s", higher_is_better=True)
_FIRST_BATCH = Figure("time_to_first_batch_s", "time to first batch", False, "s")
_EPOCH_START = Figure("epoch_start_s", "start of later epochs", False, "s")
_MEMORY = Figure("memory_bytes", "memory", False, "bytes")
_FIGURES: Mapping[str, tuple[Figure, ...]] = {
    "disk": (_MB_RATE, Figure("latency_s_p99", "latency, p99", False, "s")),
    "layout": (_RATE,),
    "object": (_MB_RATE, Figure("first_byte_s_p50", "first byte, p50", False, "s")),
    "loader": (
        _RATE,
        _FIRST_BATCH,
        _EPOCH_START,
        _MEMORY,
        Figure("cpu_s_per_1000_samples", "CPU s/1,000 samples", False),
        Figure("first_epoch_s", "first epoch", False, "s"),
        Figure("steady_samples_per_s", "later epochs, samples/s", True),
    ),
    "train": (_RATE, _FIRST_BATCH, _EPOCH_START, _MEMORY),
    "watch": (
        _RATE,
        _FIRST_BATCH,
        Figure("wait_share", "share of waiting", False),
        Figure("ceiling_samples_per_s", "samples/s without the loader", True),
    ),
}
"""The figures by kind of trial. The main figure of a setting is the first one that a run has."""

_LOOPS = ("train", "watch")
_RATES_BY_RULE = (*_LOOPS, "loader")
"""Kinds of trials whose rates depend on the rule of ``Result.rates``."""


@dataclass(frozen=True, slots=True)
class LabelledRun:
    """A saved run, and the name of its folder as its label."""

    label: str
    result: Result

    @property
    def started(self) -> datetime | None:
        """When the run started; None if that is unknown."""
        try:
            started = datetime.fromisoformat(self.result.started)
        except (TypeError, ValueError):
            return None
        return started if started.tzinfo else started.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class LoopChange:
    """A loop that both runs have.

    Attributes:
        group: the name of the loop in the base run.
        changed: the settings that differ, in words.
        predicted: the gain that the base run predicted for the changes; None without a prediction.
        applied: the recommendations of the base run that were followed.
        rate_change: the change of the rate; None if a run has no rate.
        device: the device, or both devices if they differ.
    """

    group: str
    changed: tuple[str, ...]
    predicted: Estimate | None
    applied: tuple[str, ...]
    rate_change: Change | None
    device: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """The comparison of two runs.

    Attributes:
        base: the run that is compared with.
        new: the run that is judged.
        threshold: the smallest change that matters, as a share of 1.
        environment: differences of the machines and of their software.
        config: differences of the configs.
        loops: the loops that both runs have.
        changes: the changes of all figures.
        unpaired: sentences about settings that only one run has, about trials that were not
            completed, and about main figures that some repeats lack.
    """

    base: LabelledRun
    new: LabelledRun
    threshold: float
    environment: tuple[Difference, ...]
    config: tuple[Difference, ...]
    loops: tuple[LoopChange, ...]
    changes: tuple[Change, ...]
    unpaired: tuple[str, ...]

    @property
    def machine_differences(self) -> tuple[Difference, ...]:
        """Differences between the machines."""
        return tuple(difference for difference in self.environment if difference.sort == "machine")

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
        """How many more repeats each run needs so that any change can be significant."""
        return repeats_until_significant(self.deciding)

    @property
    def exit_code(self) -> int:
        """1 if a figure that decides has a regression, otherwise 0."""
        return 1 if with_verdict(self.deciding, "regression") else 0

    @property
    def rule_note(self) -> str:
        """A warning if the rates of the two runs were measured by different rules."""
        if not _differ_in_rule(self.base.result, self.new.result, self.changes):
            return ""
        return (
            f"The rates of {_by_former_rule(self.base, self.new).label} were measured by another "
            "rule: a ratio of rates may show the rules instead of a change."
        )

    @property
    def sentence(self) -> str:
        """The answer in one sentence."""
        parts = []
        loop = self._headline_loop
        if loop is not None:
            parts.append(_loop_words(loop))
        threshold = exact_percent(self.threshold)
        worse = len(with_verdict(self.deciding, "regression"))
        better = len(with_verdict(self.deciding, "improvement"))
        underpowered = len(with_verdict(self.deciding, "underpowered"))
        number = counted(len(self.deciding), "deciding figure")
        parts.append(f"{worse} of {number} worse by {threshold} or more, {better} better")
        if self.more_repeats:
            more = counted(self.more_repeats, "more repeat")
            parts.append(
                f"underpowered: with {number} no change can be significant, run at least {more}"
            )
        elif underpowered:
            parts.append(f"{underpowered} underpowered")
        if self.listed:
            worse = len(with_verdict(self.listed, "regression"))
            better = len(with_verdict(self.listed, "improvement"))
            number = counted(len(self.listed), "other figure")
            parts.append(f"{number} listed, {worse} worse, {better} better")
        return f"{'; '.join(parts)}."

    @property
    def _headline_loop(self) -> LoopChange | None:
        """The first loop with a regression, or else the first of all."""
        compared = [loop for loop in self.loops if loop.rate_change is not None]
        for loop in compared:
            if loop.rate_change is not None and loop.rate_change.verdict == "regression":
                return loop
        return compared[0] if compared else None


def with_verdict(changes: Sequence[Change], verdict: Verdict) -> list[Change]:
    """Return the changes with a verdict, the largest first."""
    selected = [change for change in changes if change.verdict == verdict]
    return sorted(selected, key=lambda change: -abs(change.log_worse))


def compare(
    base: LabelledRun, new: LabelledRun, threshold: float, *, force: bool = False
) -> Comparison:
    """Compare every figure that both runs have.

    Args:
        base: the run to compare with.
        new: the run to judge.
        threshold: the smallest change that matters, as a share of 1.
        force: whether to compare runs that are not comparable.

    Raises:
        NotComparable: no figure is in both runs that can decide. Without ``force`` also if the runs
            differ in images, model, input size, batch size, machine, or the rule by which rates
            were measured, or if a loop has no rate.
    """
    base_result, new_result = base.result, new.result
    pairs = _paired(training_loops(base_result.trials), training_loops(new_result.trials))
    complete, incomplete = [], []
    for values in _all_values(base_result, new_result, pairs):
        if _is_complete(values):
            complete.append(values)
        elif values.is_main:
            incomplete.append(values)
    changes = judge_all(complete, _decides(complete), threshold)
    rate_changes = {change.values.group: change for change in changes if _is_loop_rate(change)}
    loop_changes = [
        _loop_change(base_result, base_loop, new_loop, rate_changes.get(base_loop.group))
        for base_loop, new_loop in pairs
    ]
    unpaired = list(_unpaired(base_result, new_result, pairs))
    unpaired += [_incomplete_words(values) for values in incomplete]
    comparison = Comparison(
        base=base,
        new=new,
        threshold=threshold,
        environment=environment_differences(base_result.environment, new_result.environment),
        config=config_differences(_settings(base_result), _settings(new_result)),
        loops=tuple(loop_changes),
        changes=tuple(changes),
        unpaired=tuple(unpaired),
    )
    reasons = _reasons_against(comparison, pairs, incomplete)
    if reasons and not force:
        reasons_text = "; ".join(reasons[:_MAX_REASONS])
        if len(reasons) > _MAX_REASONS:
            reasons_text += f"; and {len(reasons) - _MAX_REASONS} more"
        raise NotComparable(
            f"{new.label} is not comparable with {base.label}: {reasons_text}; {FORCE}"
        )
    if not comparison.deciding:
        raise NotComparable(
            f"{new.label} and {base.label} have no figure in common that can decide"
        )
    return comparison


def in_order(base: LabelledRun, others: Sequence[LabelledRun]) -> list[LabelledRun]:
    """Return all runs in the order of their starts.

    If the start of any run is unknown, the runs keep the order of the arguments.
    """
    runs = [base, *others]
    started = []
    for run in runs:
        if run.started is None:
            return runs
        started.append((run.started, run))
    started.sort(key=lambda start_and_run: start_and_run[0])
    return [run for _, run in started]


def _reasons_against(
    comparison: Comparison, pairs: Sequence[tuple[Loop, Loop]], incomplete: Sequence[FigureValues]
) -> list[str]:
    """Return why two runs are not comparable; empty if they are."""
    base, new = comparison.base, comparison.new
    reasons = []
    if _differ_in_rule(base.result, new.result, comparison.changes):
        older = _by_former_rule(base, new).label
        reasons.append(
            f"the rates of {older} were measured by another rule, which this version has "
            f"replaced: measure {older} again with this version"
        )
    reasons += _differences_in_work(base.result, new.result, pairs)
    reasons += [str(difference) for difference in comparison.machine_differences]
    if not any(change.decides and change.kind in _LOOPS for change in comparison.changes):
        # The figures of loaders and probes must not replace those of a loop that both runs have.
        reasons += [_incomplete_words(values) for values in incomplete if values.kind in _LOOPS]
    return reasons


def _paired(base: Sequence[Loop], new: Sequence[Loop]) -> list[tuple[Loop, Loop]]:
    """Return pairs of loops with the same group; if each run has only one loop, these two."""
    new_by_group = {loop.group: loop for loop in new}
    pairs = [(loop, new_by_group[loop.group]) for loop in base if loop.group in new_by_group]
    if not pairs and len(base) == len(new) == 1:
        return [(base[0], new[0])]
    return pairs


def _differences_in_work(
    base: Result, new: Result, pairs: Sequence[tuple[Loop, Loop]]
) -> Iterator[str]:
    """Yield a text for each difference in images, model, input size and batch size."""
    base_data: Mapping[str, Any] = base.config.get("data") or {}
    new_data: Mapping[str, Any] = new.config.get("data") or {}
    base_source, new_source = base_data.get("source"), new_data.get("source")
    if base_source and new_source and base_source != new_source:
        yield f"data.source: {escape(str(base_source))} -> {escape(str(new_source))}"
    if _has_generated_images(base_data) and _has_generated_images(new_data):
        for key in _IMAGE_KEYS:
            if base_data.get(key) != new_data.get(key):
                yield f"data.{key}: {base_data.get(key)} -> {new_data.get(key)}"
    for base_loop, new_loop in pairs:
        for key in _WORK_PARAMS:
            base_value, new_value = base_loop.params.get(key), new_loop.params.get(key)
            if base_value != new_value:
                yield f"{base_loop.group}: {key} {base_value} -> {new_value}"


def _has_generated_images(data: Mapping[str, Any]) -> bool:
    return not data.get("source") and not data.get("shards")


def _differ_in_rule(base: Result, new: Result, changes: Sequence[Change]) -> bool:
    """Return whether rates are compared that were measured by different rules."""
    return base.rates != new.rates and any(change.kind in _RATES_BY_RULE for change in changes)


def _by_former_rule(base: LabelledRun, new: LabelledRun) -> LabelledRun:
    """Return the run whose rates were not measured by the rule of this version."""
    return base if new.result.rates == STEADY_STATE else new


def _loop_words(loop: LoopChange) -> str:
    """Return ``The loop 'g' is faster: 1.58 times the base rate``."""
    change = loop.rate_change
    if change is None:
        return ""
    rate = f"{change.ratio.ratio:.2f} times the base rate"
    if change.verdict == "improvement":
        return f"The loop {loop.group!r} is faster: {rate}"
    if change.verdict == "regression":
        return f"The loop {loop.group!r} is slower: {rate}"
    unsure = ", with too few repeats to be sure" if change.verdict == "underpowered" else ""
    return f"The loop {loop.group!r} runs at {rate}{unsure}"


def _settings(result: Result) -> dict[str, Any]:
    """Return the config, with the number of hosts if several measured at the same time."""
    settings = dict(result.config)
    if result.hosts:
        settings["hosts"] = len(result.hosts)
    return settings


def _loop_change(
    base: Result, base_loop: Loop, new_loop: Loop, rate_change: Change | None
) -> LoopChange:
    """Return what differs between two loops, and what the base run predicted of it."""
    names = base_loop.params.keys() | new_loop.params.keys()
    names -= {"group", "input", "over", *_WORK_PARAMS}
    changed = []
    for name in sorted(names):
        base_value, new_value = base_loop.params.get(name), new_loop.params.get(name)
        if base_value != new_value:
            changed.append(escape(f"{name}: {base_value} -> {new_value}"))
    if base_loop.farthest != new_loop.farthest:
        changed.append(f"input: {base_loop.farthest} -> {new_loop.farthest}")
    applied: list[Recommendation] = []
    if changed:
        recommended = analyse(base, base_loop.group).advice.changes
        applied = [change for change in recommended if _is_applied(change, base_loop, new_loop)]
    devices = [str(loop.facts.get("device") or "?") for loop in (base_loop, new_loop)]
    return LoopChange(
        group=base_loop.group,
        changed=tuple(changed),
        predicted=_predicted_gain(applied),
        applied=tuple(change.action for change in applied),
        rate_change=rate_change,
        device=escape(" -> ".join(dict.fromkeys(devices))),
    )


def _predicted_gain(applied: Sequence[Recommendation]) -> Estimate | None:
    """Return the product of the gains of recommendations; None if none has a gain."""
    gains = [change.gain for change in applied if change.gain is not None]
    if not gains:
        return None
    return Estimate(
        math.prod(gain.median for gain in gains),
        math.prod(gain.low for gain in gains),
        math.prod(gain.high for gain in gains),
        coverage=0.0,
        repeats=min(gain.repeats for gain in gains),
    )


def _is_applied(change: Recommendation, base_loop: Loop, new_loop: Loop) -> bool:
    """Return whether the new loop follows a recommendation for the base loop."""
    if change.setting == "stage":
        return base_loop.farthest == "store" and new_loop.farthest in ("cold", "warm")
    if change.setting in ("sharding", "resize", "shard_size"):
        return data_name(base_loop.params) != data_name(new_loop.params)
    if change.setting in ("workers", "prefetch", "pin_memory", "loader", "normalise"):
        base_value = base_loop.params.get(change.setting)
        new_value = new_loop.params.get(change.setting)
        return bool(new_value == change.value and base_value != change.value)
    return False


def _all_values(
    base: Result, new: Result, pairs: Sequence[tuple[Loop, Loop]]
) -> Iterator[FigureValues]:
    """Yield all figures of the settings of both runs, even if some repeats lack the figure."""
    for base_loop, new_loop in pairs:
        yield from _values_of_loop(base_loop, new_loop)
    for kind, name, base_repeats, new_repeats in _common_settings(base, new):
        figures = _FIGURES.get(kind, (_RATE,))
        yield from _values_of_setting(kind, name, figures, base_repeats, new_repeats)


def _values_of_loop(base_loop: Loop, new_loop: Loop) -> Iterator[FigureValues]:
    """Yield the figures of a loop for each input. The main figure is of the farthest input."""
    shared = [source for source in base_loop.inputs if source in new_loop.inputs]
    inputs = [(source, base_loop.inputs[source], new_loop.inputs[source]) for source in shared]
    main = ""
    for rung in RUNGS:
        if rung in shared:
            main = rung
    if base_loop.farthest and new_loop.farthest:
        main = base_loop.farthest
        if new_loop.farthest != base_loop.farthest:
            main = f"{base_loop.farthest} -> {new_loop.farthest}"
    if main and main not in shared:
        inputs.append((main, base_loop.trials, new_loop.trials))
    for source, base_repeats, new_repeats in inputs:
        figures = _FIGURES["train"] if source in ("warm", "cold", "store") else (_RATE,)
        name = f"{base_loop.group}, {source}"
        for values in _values_of_setting(
            "train", name, figures, base_repeats, new_repeats, base_loop.group
        ):
            yield values if source == main else replace(values, is_main=False)


def _values_of_setting(
    kind: str,
    name: str,
    figures: Sequence[Figure],
    base: Repeats,
    new: Repeats,
    group: str = "",
) -> Iterator[FigureValues]:
    """Yield the figures of one setting; the first one that a run has is the main figure."""
    has_main = False
    for figure in figures:
        base_values = [v for v in metric_values(base, figure.metric) if has_ratio(v)]
        new_values = [v for v in metric_values(new, figure.metric) if has_ratio(v)]
        if not base_values and not new_values:
            continue
        # A median over some repeats is not comparable with a median over all of them.
        if len(base_values) != len(base):
            base_values = []
        if len(new_values) != len(new):
            new_values = []
        yield FigureValues(kind, escape(name), figure, base_values, new_values, not has_main, group)
        has_main = True


def _is_complete(values: FigureValues) -> bool:
    """Return whether every repeat of both runs has the figure."""
    return bool(values.base and values.new)


def _incomplete_words(values: FigureValues) -> str:
    run = "new" if values.base else "base"
    if not values.base and not values.new:
        run = "both runs"
    return f"{values.name}: {values.figure.name} is missing in repeats of {run}"


def _decides(figures: Sequence[FigureValues]) -> list[bool]:
    """Return for each figure whether it decides the exit code.

    The main figures of loops decide. Without loops, the main figures of loaders and probes decide.
    """
    main_kinds = {values.kind for values in figures if values.is_main}
    deciding_kinds = main_kinds & set(_LOOPS) or main_kinds
    return [values.is_main and values.kind in deciding_kinds for values in figures]


def _is_loop_rate(change: Change) -> bool:
    values = change.values
    return values.kind == "train" and values.is_main and values.figure is _RATE


def _common_settings(base: Result, new: Result) -> Iterator[tuple[str, str, Repeats, Repeats]]:
    """Yield the settings of both runs other than loops: kind, name and repeats of each run."""
    for kind in _kinds_without_loops(base):
        new_by_key = {}
        for params, repeats in by_settings(new.trials, kind):
            new_by_key[_key(params, repeats)] = repeats
        for params, repeats in by_settings(base.trials, kind):
            new_repeats = new_by_key.get(_key(params, repeats))
            if new_repeats is not None:
                yield kind, _setting_name(kind, params), repeats, new_repeats


def _unpaired(base: Result, new: Result, pairs: Sequence[tuple[Loop, Loop]]) -> Iterator[str]:
    """Yield settings and loops that only one run has, and trials that were not completed."""
    groups = set()
    for base_loop, new_loop in pairs:
        groups |= {base_loop.group, new_loop.group}
    for run_name, run, other in (("base", base, new), ("new", new, base)):
        for loop in training_loops(run.trials):
            if loop.group not in groups:
                yield f"only in {run_name}: loop {escape(loop.group)}"
        for kind in _kinds_without_loops(run):
            other_keys = {
                _key(params, repeats) for params, repeats in by_settings(other.trials, kind)
            }
            for params, repeats in by_settings(run.trials, kind):
                if _key(params, repeats) not in other_keys:
                    name, label = _setting_name(kind, params), escape(cold_label(repeats))
                    yield f"only in {run_name}: {name} {label}".rstrip()
        reasons = [trial.reason for trial in run.trials if trial.status != "done"]
        for reason in dict.fromkeys(reasons):
            yield f"failed or skipped in {run_name}: {escape(reason)}"


def _kinds_without_loops(run: Result) -> list[str]:
    return list(dict.fromkeys(trial.kind for trial in run.trials if trial.kind != "train"))


def _key(params: Mapping[str, Any], repeats: Repeats) -> str:
    """Return a key that is equal for equal settings with an equal state of the page cache."""
    return json.dumps([dict(params), cold_label(repeats)], sort_keys=True, default=str)


def _setting_name(kind: str, params: Mapping[str, Any]) -> str:
    try:
        return params_words(kind, params)
    except (LookupError, TypeError, ValueError):  # Another version had other parameters.
        return escape(f"{kind} {json.dumps(dict(params), default=str)}")
