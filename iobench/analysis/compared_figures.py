"""PURE. The figures that two runs have in common, and the settings that only one of them has.

Loops are paired by their group. All other trials are paired by their settings and the proved state
of the page cache. A figure that some repeats of a run lack is not compared, because a median over
some repeats is not comparable with a median over all of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from dataprep.name_encoding import escape
from iobench.analysis.loops import FARTHEST, Loop, training_loops
from iobench.analysis.regressions import Change, Figure, FigureValues
from iobench.analysis.repeats import Repeats, by_settings, cold_label, metric_values
from iobench.results.result import Result
from iobench.results.statistics import has_ratio
from iobench.results.trial import Params
from iobench.results.wording import params_words
from iobench.trials.ladder import RUNGS

LOOP_KINDS = ("train", "watch")
"""Kinds of trials that are loops: training loops, and loops that ``iobench.watch`` measured."""

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
"""The figures by kind of trial. The main figure of a setting is the first of them that either run
has."""


def paired_loops(base: Sequence[Loop], new: Sequence[Loop]) -> list[tuple[Loop, Loop]]:
    """Return pairs of a loop of each run, with the same group.

    If no group is the same and each run has a single loop, these two loops are the pair.
    """
    new_by_group = {loop.group: loop for loop in new}
    pairs = [(loop, new_by_group[loop.group]) for loop in base if loop.group in new_by_group]
    if not pairs and len(base) == len(new) == 1:
        return [(base[0], new[0])]
    return pairs


def figures_of_both(
    base: Result, new: Result, pairs: Sequence[tuple[Loop, Loop]]
) -> Iterator[FigureValues]:
    """Yield all figures of the settings that both runs have, even if some repeats lack the figure.

    Args:
        base: the base run.
        new: the new run.
        pairs: the loops of both runs, from ``paired_loops``.
    """
    for base_loop, new_loop in pairs:
        yield from _values_of_loop(base_loop, new_loop)
    for kind, name, base_repeats, new_repeats in _common_settings(base, new):
        figures = _FIGURES.get(kind, (_RATE,))
        yield from _values_of_setting(kind, name, figures, base_repeats, new_repeats)


def _values_of_loop(base_loop: Loop, new_loop: Loop) -> Iterator[FigureValues]:
    """Yield the figures of a loop for each input that both runs have.

    The main figure is the rate with the farthest input. If the farthest inputs of the runs differ,
    the rate of the base run with its farthest input is compared with the rate of the new run with
    its own farthest input.
    """
    shared = [source for source in base_loop.inputs if source in new_loop.inputs]
    compared = [(source, base_loop.inputs[source], new_loop.inputs[source]) for source in shared]
    main = _main_input(base_loop, new_loop, shared)
    if main and main not in shared:
        compared.append((main, base_loop.trials, new_loop.trials))
    for source, base_repeats, new_repeats in compared:
        figures = _FIGURES["train"] if source in FARTHEST else (_RATE,)
        name = f"{base_loop.group}, {source}"
        for values in _values_of_setting(
            "train", name, figures, base_repeats, new_repeats, base_loop.group
        ):
            yield values if source == main else replace(values, is_main=False)


def _main_input(base_loop: Loop, new_loop: Loop, shared: Sequence[str]) -> str:
    """Return the input whose rate decides: ``cold``, or ``store -> cold`` if the inputs differ.

    If either loop has no input that reads samples, it is the last rung of the ladder that both
    have. Empty if they have no rung in common.

    Args:
        base_loop: the loop of the base run.
        new_loop: the loop of the new run.
        shared: the inputs that both loops have.
    """
    if base_loop.farthest and new_loop.farthest:
        if base_loop.farthest == new_loop.farthest:
            return base_loop.farthest
        return f"{base_loop.farthest} -> {new_loop.farthest}"
    shared_rungs = [rung for rung in RUNGS if rung in shared]
    return shared_rungs[-1] if shared_rungs else ""


def _values_of_setting(
    kind: str,
    name: str,
    figures: Sequence[Figure],
    base: Repeats,
    new: Repeats,
    group: str = "",
) -> Iterator[FigureValues]:
    """Yield the figures of one setting that either run has. The first of them is the main figure.

    Args:
        kind: the kind of the trials.
        name: the setting in words.
        figures: the figures to compare.
        base: the repeats of the base run.
        new: the repeats of the new run.
        group: the group of a training loop; empty for other kinds.
    """
    has_main = False
    for figure in figures:
        base_values = _comparable_values(base, figure)
        new_values = _comparable_values(new, figure)
        if not base_values and not new_values:
            continue
        yield FigureValues(
            kind=kind,
            name=escape(name),
            figure=figure,
            base=base_values if len(base_values) == len(base) else (),
            new=new_values if len(new_values) == len(new) else (),
            is_main=not has_main,
            group=group,
        )
        has_main = True


def _comparable_values(repeats: Repeats, figure: Figure) -> list[float]:
    """Return those values of a figure from which a ratio can be computed."""
    return [value for value in metric_values(repeats, figure.metric) if has_ratio(value)]


def decides(figures: Sequence[FigureValues]) -> list[bool]:
    """Return for each figure whether it decides the exit code.

    The main figures of loops decide. If there are none, the main figures of all other kinds decide.
    """
    main_kinds = {values.kind for values in figures if values.is_main}
    deciding_kinds = main_kinds & set(LOOP_KINDS) or main_kinds
    return [values.is_main and values.kind in deciding_kinds for values in figures]


def is_loop_rate(change: Change) -> bool:
    """Return whether a change is that of the rate of a training loop, as its main figure."""
    values = change.values
    return values.kind == "train" and values.is_main and values.figure is _RATE


def incomplete_words(values: FigureValues) -> str:
    """Return why a figure was not compared: ``g, cold: samples/s is missing in repeats of new``."""
    run = "new" if values.base else "base"
    if not values.base and not values.new:
        run = "both runs"
    return f"{values.name}: {values.figure.name} is missing in repeats of {run}"


def _common_settings(base: Result, new: Result) -> Iterator[tuple[str, str, Repeats, Repeats]]:
    """Yield the settings, other than those of training loops, that both runs have.

    Each has its kind, its name in words, and the repeats of the base run and of the new run.
    """
    for kind in _kinds_without_loops(base):
        new_by_key = {}
        for params, repeats in by_settings(new.trials, kind):
            new_by_key[_key(params, repeats)] = repeats
        for params, repeats in by_settings(base.trials, kind):
            new_repeats = new_by_key.get(_key(params, repeats))
            if new_repeats is not None:
                yield kind, _setting_name(kind, params), repeats, new_repeats


def unpaired_words(base: Result, new: Result, pairs: Sequence[tuple[Loop, Loop]]) -> Iterator[str]:
    """Yield texts about loops and settings that only one run has, and about failed trials.

    Args:
        base: the base run.
        new: the new run.
        pairs: the loops of both runs, from ``paired_loops``.
    """
    groups = set()
    for base_loop, new_loop in pairs:
        groups |= {base_loop.group, new_loop.group}
    for run_name, run, other in (("base", base, new), ("new", new, base)):
        for loop in training_loops(run.trials):
            if loop.group not in groups:
                yield f"only in {run_name}: loop {escape(loop.group)}"
        for kind in _kinds_without_loops(run):
            for name in _settings_without_pair(run, other, kind):
                yield f"only in {run_name}: {name}"
        reasons = [trial.reason for trial in run.trials if trial.status != "done"]
        for reason in dict.fromkeys(reasons):
            yield f"failed or skipped in {run_name}: {escape(reason)}"


def _settings_without_pair(run: Result, other: Result, kind: str) -> Iterator[str]:
    """Yield the settings of a kind of trials, in words, that another run lacks."""
    other_keys = {_key(params, repeats) for params, repeats in by_settings(other.trials, kind)}
    for params, repeats in by_settings(run.trials, kind):
        if _key(params, repeats) not in other_keys:
            name, label = _setting_name(kind, params), escape(cold_label(repeats))
            yield f"{name} {label}".rstrip()


def _kinds_without_loops(run: Result) -> list[str]:
    """Return the kinds of trials of a run, without training loops."""
    return list(dict.fromkeys(trial.kind for trial in run.trials if trial.kind != "train"))


def _key(params: Params, repeats: Repeats) -> str:
    """Return a key that is equal for equal settings with an equal state of the page cache."""
    return json.dumps([dict(params), cold_label(repeats)], sort_keys=True, default=str)


def _setting_name(kind: str, params: Params) -> str:
    """Return a setting in words.

    If another version of iobench wrote it with other parameters, it is returned as JSON.
    """
    try:
        return params_words(kind, params)
    except (LookupError, TypeError, ValueError):
        return escape(f"{kind} {json.dumps(dict(params), default=str)}")
