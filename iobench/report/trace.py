"""PURE. Make a trace of a run: loops, workers and readings of the machine on one timeline.

The file follows the "Trace Event Format" that ``chrome://tracing`` introduced and Perfetto reads:
a JSON object whose ``traceEvents`` are complete events (``X``), counters (``C``) and names of
processes and threads (``M``). Each trial is a process of the trace, and each of its tracks is a
thread.

Times are microseconds since ``baseTimeNanoseconds``. As in torch.profiler, this moment is a
multiple of 7,889,238 s after 1970: the last multiple before the run. Therefore traces of both
programs can be joined without shifting their times. All times are multiples of 125 ns. Such a time
is exact both as a number of nanoseconds and as a binary fraction of microseconds, so that rounding
in a viewer never makes neighbouring slices overlap.

A *slice* is a period on a track, such as a step. A *span* is a period that a trial has stored.
"""

from __future__ import annotations

import gzip
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, NamedTuple, NotRequired, TypedDict

import pandas as pd

from dataprep.message_text import counted
from iobench.report.counting_rules import INPUTS_WITHOUT_DATA
from iobench.report.series import by_trial, readings_by_trial
from iobench.results.result import Result
from iobench.results.trial import Span, Trial, TrialSpec
from iobench.results.wording import point_words

_BASE_S = 7_889_238
"""Times count from a multiple of this number of seconds, as in libkineto's output_json."""
_TICKS_PER_S = 8_000_000
_TICKS_PER_US = 8
"""A tick is 125 ns."""
_FIRST_PROCESS = 10_000_000
"""The id of the first trial's process. It is larger than any process id of Linux, so that the trace
can be joined with a trace of real processes."""

_KINDS_OF_LOOPS = {"train", "watch"}
"""Kinds of trials that store steps."""
_SPAN_CATEGORIES = {
    "epochs": ("epoch", "first batch", "until the first batch"),
    "steps": ("step", "wait", "wait"),
    "worker": ("batch", "", ""),
    "rank": ("rank step", "rank wait", "wait"),
}
"""For each kind of track: the category of its spans, the category of waits within them, and the
name of these waits."""
_KINDS_WITH_WORKERS = {"loader", "train"}
"""Kinds of trials whose loaders can have workers that store their batches."""
_UNIT = re.compile(r"(.+)_(share|cores|bytes_per_s|bytes|mhz|w)")


class Event(TypedDict):
    """An event in the file, with the keys of the "Trace Event Format" that iobench writes."""

    name: str
    cat: NotRequired[str]
    """The category, by which a viewer can filter and colour."""
    ph: str
    """The kind: ``X`` for a slice, ``C`` for a counter, ``M`` for a name."""
    ts: NotRequired[float]
    """The begin in microseconds since ``Trace.base_s``; missing for a name."""
    dur: NotRequired[float]
    """The duration in microseconds; only for a slice."""
    pid: int
    """The id of the process that stands for a trial."""
    tid: int
    """The id of the thread that stands for a track."""
    args: NotRequired[Mapping[str, Any]]
    """Further facts about a slice, the value of a counter, or a name."""


@dataclass(frozen=True, slots=True)
class SavedRun:
    """A saved run: its result, and the tables of its steps, readings and spans."""

    result: Result
    series: pd.DataFrame
    samples: pd.DataFrame
    spans: Mapping[str, Sequence[Span]]


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace of runs.

    Attributes:
        base_s: the moment from which timestamps count, in seconds since 1970.
        events: the events in the format of Chrome's trace viewer.
        lacking: texts about data that the runs did not store.
    """

    base_s: int
    events: Sequence[Event]
    lacking: Sequence[str]

    @property
    def processes(self) -> int:
        """The number of trials in the trace."""
        return len({event["pid"] for event in self.events})

    def encoded(self, *, compress: bool = False) -> bytes:
        """The content of the file. The same trace always gives the same bytes."""
        content = {
            "displayTimeUnit": "ms",
            "baseTimeNanoseconds": self.base_s * 10**9,
            "otherData": {"lacking": list(self.lacking)},
            "traceEvents": self.events,
        }
        data = json.dumps(content, allow_nan=False, separators=(",", ":")).encode() + b"\n"
        return gzip.compress(data, mtime=0) if compress else data


class _Slice(NamedTuple):
    """A part of a track, with the slices inside it.

    Its times are on the same clock as the times of the trial's steps.
    """

    begin_s: float
    end_s: float
    name: str
    category: str
    arguments: Mapping[str, Any] = {}
    inner: Sequence[_Slice] = ()


@dataclass(frozen=True, slots=True)
class _Track:
    """A row of the trace. Its slices do not overlap, except that one may be inside another."""

    name: str
    slices: Sequence[_Slice]


@dataclass(frozen=True, slots=True)
class _SavedTrial:
    """The saved data of a trial.

    The times of steps, readings and spans count from ``zero_s``. They are not added to ``zero_s``
    as floating point numbers, because the sum would be rounded to a quarter of a microsecond.

    Attributes:
        trial: the trial.
        zero_s: the moment from which its times count, in seconds since 1970.
        steps: the columns of its steps.
        readings: the readings of the machine, by column.
        spans: the periods that it has stored.
    """

    trial: Trial
    zero_s: float
    steps: Mapping[str, Sequence[float]]
    readings: Mapping[str, Sequence[tuple[float, float]]]
    spans: Sequence[Span]


def trace_of(runs: Sequence[SavedRun]) -> Trace:
    """The trace of all trials of one or more saved runs, without trials that were not started."""
    saved_trials: list[_SavedTrial] = []
    for run in runs:
        saved_trials += _started_trials(run)
    begins_s: list[float] = []
    for saved in saved_trials:
        moments_s = (saved.trial.started_s, saved.zero_s)
        # 0 means that the moment was not stored.
        begins_s.append(min(moment_s for moment_s in moments_s if moment_s))
    base_s = int(min(begins_s, default=0.0)) // _BASE_S * _BASE_S
    threads = count(_FIRST_PROCESS + 1_000_000)  # Larger than the ids of the processes.
    names: list[Event] = []
    events: list[Event] = []
    for number, saved in enumerate(saved_trials):
        process = _FIRST_PROCESS + number
        zero = _ticks(saved.zero_s - base_s)
        names += _process_names(saved.trial, process, number)
        for position, track in enumerate(_tracks(saved)):
            thread = next(threads)
            names += _thread_names(track.name, process, thread, position)
            events += _slice_events(track.slices, process, thread, zero, 0, math.inf)
        events += _counter_events(saved, process, zero)
    # Sorting keeps the order of events that begin together, so that the outer one comes first.
    events.sort(key=lambda event: event["ts"])
    return Trace(base_s, [*names, *events], _lacking(saved_trials))


def _started_trials(run: SavedRun) -> Iterator[_SavedTrial]:
    """The saved data of each trial that was started. Skipped trials were not started."""
    steps, readings = by_trial(run.series), readings_by_trial(run.samples)
    for trial in run.result.trials:
        # Earlier versions did not store when the loop began. The trial's begin is used instead.
        zero_s = trial.time_zero_s or trial.started_s
        if zero_s:
            trial_readings, spans = readings.get(trial.id, {}), run.spans.get(trial.id, ())
            yield _SavedTrial(trial, zero_s, steps.get(trial.id, {}), trial_readings, spans)


def _tracks(saved: _SavedTrial) -> Iterator[_Track]:
    """The tracks of a trial: the trial, its epochs, its steps, then its ranks and workers."""
    trial = saved.trial
    if trial.started_s:
        status = {"status": trial.status, "id": trial.id}
        if trial.reason:
            status["reason"] = trial.reason
        begin_s = trial.started_s - saved.zero_s
        end_s = begin_s + trial.seconds
        yield _Track("trial", [_Slice(begin_s, end_s, "trial", "trial", status)])
    spans: dict[str, list[Span]] = {}
    for span in saved.spans:
        spans.setdefault(span.track, []).append(span)
    steps = [*_first_steps(saved), *_steps(saved)]
    epochs = [_slice_of(span) for span in spans.pop("epochs", ())] or _epochs(saved)
    if epochs:
        yield _Track("epochs", epochs)
    steps += [_slice_of(span) for span in spans.pop("steps", ())]
    if steps:
        yield _Track("steps", sorted(steps, key=lambda step: step.begin_s))
    for track in sorted(spans, key=_by_number):
        slices = [_slice_of(span) for span in spans[track]]
        yield _Track(track, sorted(slices, key=lambda part: part.begin_s))


def _by_number(track: str) -> tuple[str | int, ...]:
    """A key that sorts tracks by their numbers: ``rank 2`` comes before ``rank 10``."""
    return tuple(int(word) if word.isdecimal() else word for word in re.findall(r"\d+|\D+", track))


def _slice_of(span: Span) -> _Slice:
    """A stored span as a slice, with its wait inside it."""
    # The last word without a number: the track ``rank 0 worker 1`` has the kind ``worker``.
    kind = span.track.rstrip("0123456789 ").rpartition(" ")[2]
    category, wait_category, wait_name = _SPAN_CATEGORIES.get(kind, (kind, f"{kind} wait", "wait"))
    inner = []
    if span.wait_s > 0:
        wait_end_s = span.begin_s + span.wait_s
        inner = [_Slice(span.begin_s, wait_end_s, wait_name, wait_category)]
    end_s = span.begin_s + span.seconds
    return _Slice(span.begin_s, end_s, span.name, category, inner=inner)


def _steps(saved: _SavedTrial) -> Iterator[_Slice]:
    """The counted steps, each with its wait and its work."""
    steps = saved.steps
    step_ends_s, waits_s = steps.get("step_end_s", ()), steps.get("wait_s", ())
    ends_s = steps.get("time_s") or step_ends_s
    computes_s = steps.get("compute_s", ())
    elsewhere_s = steps.get("elsewhere_s") or [0.0] * len(ends_s)
    if not len(step_ends_s) == len(waits_s) == len(ends_s) == len(elsewhere_s):
        return  # The columns do not belong together: the table was changed by hand.
    last_end_s = 0.0
    for number, end_s in enumerate(ends_s):
        length_s = step_ends_s[number] - last_end_s + elsewhere_s[number]
        last_end_s = step_ends_s[number]
        begin_s = end_s - length_s
        arrived_s = begin_s + waits_s[number]
        arguments: dict[str, float] = {"step": number}
        if len(computes_s) == len(ends_s):
            arguments["compute_s"] = round(computes_s[number], 9)
        if elsewhere_s[number] > 0:
            arguments["other_loaders_s"] = round(elsewhere_s[number], 9)
        inner = [
            _Slice(begin_s, arrived_s, "wait", "wait"),
            _Slice(arrived_s, end_s, "work", "work"),
        ]
        yield _Slice(begin_s, end_s, "step", "step", arguments, inner)


def _first_steps(saved: _SavedTrial) -> Iterator[_Slice]:
    """The time before the first counted step: the wait for the first batch, and uncounted steps."""
    steps, metrics = saved.steps, saved.trial.metrics
    first_batch_s = metrics.get("time_to_first_batch_s")
    if not steps.get("time_s") or not first_batch_s:
        return
    elsewhere_s = (steps.get("elsewhere_s") or [0.0])[0]
    begin_s = steps["time_s"][0] - steps["step_end_s"][0] - elsewhere_s
    if saved.trial.kind == "watch":
        end_s, name = first_batch_s + metrics.get("first_step_s", 0.0), "first step"
    elif metrics.get("left_out"):
        end_s, name = begin_s, f"{counted(metrics['left_out'], 'step')} before the rate"
    else:
        return
    if first_batch_s <= end_s <= begin_s + 1e-6:
        yield _Slice(0.0, first_batch_s, "wait for the first batch", "not counted")
        yield _Slice(first_batch_s, end_s, name, "not counted")


def _epochs(saved: _SavedTrial) -> list[_Slice]:
    """The epochs of a loop that stored no epochs, from the first to the last step of each.

    The list is empty if the steps have no numbers of epochs.
    """
    numbers = saved.steps.get("epoch", ())
    steps = list(_steps(saved))
    if len(numbers) != len(steps):
        return []
    spans: dict[int, tuple[float, float]] = {}
    for number, step in zip(numbers, steps, strict=True):
        begin_s, _ = spans.get(int(number), (step.begin_s, step.end_s))
        spans[int(number)] = begin_s, step.end_s
    return [
        _Slice(begin_s, end_s, f"epoch {number}", "epoch")
        for number, (begin_s, end_s) in spans.items()
    ]


def _slice_events(
    slices: Sequence[_Slice],
    process: int,
    thread: int,
    zero: int,
    first: float,
    last: float,
) -> Iterator[Event]:
    """The events of slices, each followed by the events of the slices inside it.

    Args:
        slices: the slices in the order of their begin.
        process, thread: the ids of the process and of the thread.
        zero: the tick from which the times of the slices count.
        first, last: the ticks within which the events must be. If two neighbours would overlap
            because of rounding, the second one begins at the end of the first one.
    """
    for part in slices:
        begin = min(max(zero + _ticks(part.begin_s), first), last)
        end = min(max(zero + _ticks(part.end_s), begin), last)
        first = end
        event: Event = {
            "name": part.name,
            "cat": part.category,
            "ph": "X",
            "ts": begin / _TICKS_PER_US,
            "dur": (end - begin) / _TICKS_PER_US,
            "pid": process,
            "tid": thread,
        }
        if part.arguments:
            event["args"] = part.arguments
        yield event
        yield from _slice_events(part.inner, process, thread, zero, begin, end)


def _counter_events(saved: _SavedTrial, process: int, zero: int) -> Iterator[Event]:
    """The readings of the machine as counters: ``cpu.user_share`` is ``cpu user`` in shares."""
    for column, points in saved.readings.items():
        sampler, _, key = column.partition(".")
        match = _UNIT.fullmatch(key)
        quantity, unit = (match[1], match[2]) if match else (key, "value")
        name = f"{sampler} {quantity.replace('_', ' ')}"
        for time_s, value in points:
            yield {
                "name": name,
                "cat": "reading",
                "ph": "C",
                "ts": max(0, zero + _ticks(time_s)) / _TICKS_PER_US,
                "pid": process,
                "tid": 0,
                "args": {unit: value},
            }


def _ticks(seconds: float) -> int:
    """A time as a whole number of ticks of 125 ns."""
    return round(seconds * _TICKS_PER_S)


def _process_names(trial: Trial, process: int, position: int) -> Iterator[Event]:
    """The name, the status and the position of a trial's process in the viewer."""
    name = point_words(TrialSpec(trial.kind, trial.params, trial.repeat))
    # Viewers cut long names, so the parts in which the loops of a run differ come first.
    if "input" in trial.params:
        name = f"{trial.params['input']}: {name}"
    if "rank" in trial.params:
        name = f"rank {trial.params['rank']}: {name}"
    yield _metadata("process_name", process, 0, {"name": name})
    yield _metadata("process_labels", process, 0, {"labels": f"iobench {trial.status}"})
    yield _metadata("process_sort_index", process, 0, {"sort_index": position})


def _thread_names(name: str, process: int, thread: int, position: int) -> Iterator[Event]:
    """The name and the position of a track's thread in the viewer."""
    yield _metadata("thread_name", process, thread, {"name": name})
    yield _metadata("thread_sort_index", process, thread, {"sort_index": position})


def _metadata(name: str, process: int, thread: int, arguments: Mapping[str, Any]) -> Event:
    """An event that names or describes a process or a thread."""
    return {"name": name, "ph": "M", "pid": process, "tid": thread, "args": arguments}


def _lacking(saved_trials: Sequence[_SavedTrial]) -> list[str]:
    """Texts about data that was not stored, each with the number of trials that lack it."""
    trial_counts: Counter[str] = Counter()
    for saved in saved_trials:
        if saved.trial.status == "done":
            trial_counts.update(_gaps(saved))
    return [f"{counted(trials, 'trial')}: no {gap}" for gap, trials in trial_counts.items()]


def _gaps(saved: _SavedTrial) -> Iterator[str]:
    """The kinds of data that a trial did not store, each with the reason if it is known."""
    trial, steps = saved.trial, saved.steps
    if trial.kind == "watch":
        yield "batches of workers: iobench.watch cannot see the workers of your loader"
        if trial.metrics.get("steps", 0) > len(steps.get("step_end_s", ())):
            yield "first steps: only the last steps of a long loop are stored"
    if trial.kind == "loader":
        yield "steps: a loader without training has only epochs and batches of workers"
    if trial.kind in _KINDS_OF_LOOPS and not steps:
        yield "steps"
    if trial.kind == "train" and steps and not trial.time_zero_s:
        yield "begin of the loop: its steps are shown from the begin of the trial"
    if _has_workers(trial) and not any("worker" in span.track for span in saved.spans):
        yield "batches of workers: only torch-map, torch-iterable and torch-folder store them"
    if not saved.readings:
        yield "readings of the machine: see the key sampling.samplers"


def _has_workers(trial: Trial) -> bool:
    """Whether workers of a loader made the batches of the trial."""
    params = trial.params
    if trial.kind not in _KINDS_WITH_WORKERS or params.get("input") in INPUTS_WITHOUT_DATA:
        return False
    return bool(params.get("workers"))
