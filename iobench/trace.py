"""PURE. A run as a trace: loops, workers and readings of the machine on one timeline.

The file follows the "Trace Event Format" that ``chrome://tracing`` introduced and Perfetto reads:
a JSON object whose ``traceEvents`` are complete events (``X``), counters (``C``) and names of
processes and threads (``M``). Each trial is a process of the trace, and each of its tracks is a
thread.

Times are microseconds since ``baseTimeNanoseconds``, which is chosen as torch.profiler chooses it:
the begin of the current interval of 7,889,238 s since 1970. So both traces fit together without a
shift. They are multiples of 125 ns: these are exact both as nanoseconds and as binary fractions of
microseconds, so that no viewer sees neighbours overlap that only meet.
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
from typing import Any, NamedTuple

import pandas as pd

from dataprep.counted import counted
from iobench.report.series import by_trial, readings_by_trial
from iobench.result import Result
from iobench.trial import Span, Trial, TrialSpec
from iobench.words import point_words

Event = dict[str, Any]

_BASE_S = 7_889_238
"""Timestamps are relative to a multiple of this number of seconds (libkineto's output_json)."""
_TICKS_PER_S = 8_000_000
_TICKS_PER_US = 8
_FIRST_PROCESS = 10_000_000
"""Larger than any process number of Linux, so that traces of real processes fit beside it."""

_LOOPS = {"train", "watch"}
_OF_SPANS = {
    "epochs": ("epoch", "first batch", "until the first batch"),
    "steps": ("step", "wait", "wait"),
    "worker": ("batch", "", ""),
    "rank": ("rank step", "rank wait", "wait"),
}
"""Categories of stored spans and of their waits, and the name of these, by the word of a track."""
_BATCHING = {"loader", "train"}
_UNIT = re.compile(r"(.+)_(share|cores|bytes_per_s|bytes|mhz|w)")


@dataclass(frozen=True, slots=True)
class SavedRun:
    """A run as it is stored: its result, and the tables of its steps, readings and spans."""

    result: Result
    series: pd.DataFrame
    samples: pd.DataFrame
    spans: Mapping[str, Sequence[Span]]


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace of runs. ``lacking`` says in sentences what the runs did not store."""

    base_s: int
    events: Sequence[Event]
    lacking: Sequence[str]

    @property
    def processes(self) -> int:
        """Number of trials in it."""
        return len({event["pid"] for event in self.events})

    def encoded(self, *, compress: bool = False) -> bytes:
        """The bytes of the file; compressed ones are the same for the same trace."""
        content = {
            "displayTimeUnit": "ms",
            "baseTimeNanoseconds": self.base_s * 10**9,
            "otherData": {"lacking": list(self.lacking)},
            "traceEvents": self.events,
        }
        data = json.dumps(content, allow_nan=False, separators=(",", ":")).encode() + b"\n"
        return gzip.compress(data, mtime=0) if compress else data


class _Slice(NamedTuple):
    """A part of a track, timed like the steps of its trial, and the slices within it."""

    begin_s: float
    end_s: float
    name: str
    category: str
    arguments: Mapping[str, Any] = {}
    inner: Sequence[_Slice] = ()


@dataclass(frozen=True, slots=True)
class _Track:
    """A thread of the trace; ``slices`` that are not within each other do not overlap."""

    name: str
    slices: Sequence[_Slice]


@dataclass(frozen=True, slots=True)
class _Recorded:
    """Everything that is stored of one trial.

    Its times count from ``zero_s``, in seconds since 1970. They are not added to it as floating
    point numbers, which would round them to a quarter of a microsecond.
    """

    trial: Trial
    zero_s: float
    steps: Mapping[str, Sequence[float]]
    readings: Mapping[str, Sequence[tuple[float, float]]]
    spans: Sequence[Span]


def trace_of(runs: Sequence[SavedRun]) -> Trace:
    """The trace of all trials of these runs that were begun."""
    recorded = [recording for run in runs for recording in _recorded(run)]
    begins_s: list[float] = []
    for recording in recorded:
        moments_s = (recording.trial.started_s, recording.zero_s)
        # A moment of 0 was not stored.
        begins_s.append(min(moment_s for moment_s in moments_s if moment_s))
    base_s = int(min(begins_s, default=0.0)) // _BASE_S * _BASE_S
    threads = count(_FIRST_PROCESS + 1_000_000)
    names: list[Event] = []
    events: list[Event] = []
    for number, recording in enumerate(recorded):
        process = _FIRST_PROCESS + number
        zero = _ticks(recording.zero_s - base_s)
        names += _process_names(recording.trial, process, number)
        for position, track in enumerate(_tracks(recording)):
            thread = next(threads)
            names += _thread_names(track.name, process, thread, position)
            events += _slice_events(track.slices, process, thread, zero, 0, math.inf)
        events += _counter_events(recording, process, zero)
    # Events of one track that begin together keep their order: the outer one comes first.
    events.sort(key=lambda event: float(event["ts"]))
    return Trace(base_s, [*names, *events], _lacking(recorded))


def _recorded(run: SavedRun) -> Iterator[_Recorded]:
    steps, readings = by_trial(run.series), readings_by_trial(run.samples)
    for trial in run.result.trials:
        if not trial.started_s and not trial.time_zero_s:
            continue
        yield _Recorded(
            trial,
            # Of an earlier version, the begin of the trial stands for that of its loop.
            trial.time_zero_s or trial.started_s,
            steps.get(trial.id, {}),
            readings.get(trial.id, {}),
            run.spans.get(trial.id, ()),
        )


def _tracks(recorded: _Recorded) -> Iterator[_Track]:
    """The tracks of a trial: itself, its epochs, its steps, then its ranks and workers."""
    trial = recorded.trial
    if trial.started_s:
        status = {"status": trial.status, "id": trial.id}
        if trial.reason:
            status["reason"] = trial.reason
        begin_s = trial.started_s - recorded.zero_s
        end_s = begin_s + trial.seconds
        yield _Track("trial", [_Slice(begin_s, end_s, "trial", "trial", status)])
    spans: dict[str, list[Span]] = {}
    for span in recorded.spans:
        spans.setdefault(span.track, []).append(span)
    steps = [*_first_steps(recorded), *_steps(recorded)]
    epochs = [_slice_of(span) for span in spans.pop("epochs", ())] or _epochs(recorded)
    if epochs:
        yield _Track("epochs", epochs)
    steps += [_slice_of(span) for span in spans.pop("steps", ())]
    if steps:
        yield _Track("steps", sorted(steps, key=lambda step: step.begin_s))
    for track in sorted(spans, key=_by_number):
        slices = [_slice_of(span) for span in spans[track]]
        yield _Track(track, sorted(slices, key=lambda part: part.begin_s))


def _by_number(track: str) -> tuple[str | int, ...]:
    """``rank 2``, ``rank 10``, ``worker 2``, ``worker 10``: in the order of their numbers."""
    return tuple(int(word) if word.isdecimal() else word for word in re.findall(r"\d+|\D+", track))


def _slice_of(span: Span) -> _Slice:
    """A stored span, with its wait within it."""
    track = span.track.rstrip("0123456789 ").rpartition(" ")[2]
    category, waiting, name = _OF_SPANS.get(track, (track, f"{track} wait", "wait"))
    inner = []
    if span.wait_s > 0:
        inner = [_Slice(span.begin_s, span.begin_s + span.wait_s, name, waiting)]
    end_s = span.begin_s + span.seconds
    return _Slice(span.begin_s, end_s, span.name, category, inner=inner)


def _steps(recorded: _Recorded) -> Iterator[_Slice]:
    """The steps that count, each with its wait and its work."""
    steps = recorded.steps
    step_ends_s, waits_s = steps.get("step_end_s", ()), steps.get("wait_s", ())
    ends_s = steps.get("time_s") or step_ends_s
    computes_s = steps.get("compute_s", ())
    elsewhere_s = steps.get("elsewhere_s") or [0.0] * len(ends_s)
    if not len(step_ends_s) == len(waits_s) == len(ends_s) == len(elsewhere_s):
        return  # A table that was changed by hand.
    before_s = 0.0
    for number, end_s in enumerate(ends_s):
        length_s = step_ends_s[number] - before_s + elsewhere_s[number]
        before_s = step_ends_s[number]
        begin_s = end_s - length_s
        arrived_s = begin_s + waits_s[number]
        arguments: dict[str, Any] = {"step": number}
        if len(computes_s) == len(ends_s):
            arguments["compute_s"] = round(computes_s[number], 9)
        if elsewhere_s[number] > 0:
            arguments["other_loaders_s"] = round(elsewhere_s[number], 9)
        inner = [
            _Slice(begin_s, arrived_s, "wait", "wait"),
            _Slice(arrived_s, end_s, "work", "work"),
        ]
        yield _Slice(begin_s, end_s, "step", "step", arguments, inner)


def _first_steps(recorded: _Recorded) -> Iterator[_Slice]:
    """The steps before those that count, as far as they are known."""
    steps, metrics = recorded.steps, recorded.trial.metrics
    first_batch_s = metrics.get("time_to_first_batch_s")
    if not steps.get("time_s") or not first_batch_s:
        return
    elsewhere_s = (steps.get("elsewhere_s") or [0.0])[0]
    begin_s = steps["time_s"][0] - steps["step_end_s"][0] - elsewhere_s
    if recorded.trial.kind == "watch":
        end_s, name = first_batch_s + metrics.get("first_step_s", 0.0), "first step"
    elif left_out := metrics.get("left_out"):
        end_s, name = begin_s, f"{counted(left_out, 'step')} before the rate"
    else:
        return
    if first_batch_s <= end_s <= begin_s + 1e-6:
        yield _Slice(0.0, first_batch_s, "wait for the first batch", "not counted")
        yield _Slice(first_batch_s, end_s, name, "not counted")


def _epochs(recorded: _Recorded) -> list[_Slice]:
    """The epochs of a loop that stored none, from its steps."""
    numbers = recorded.steps.get("epoch", ())
    steps = list(_steps(recorded))
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
    """Complete events between the ticks ``first`` and ``last``; ``zero`` is that of time 0.

    They nest: where rounding makes neighbours overlap, the later one is cut.
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


def _counter_events(recorded: _Recorded, process: int, zero: int) -> Iterator[Event]:
    """The readings of the machine: ``cpu.user_share`` is the counter ``cpu user`` in shares."""
    for column, points in recorded.readings.items():
        sampler, _, key = column.partition(".")
        match = _UNIT.fullmatch(key)
        quantity, unit = (match[1], match[2]) if match else (key, "value")
        for time_s, value in points:
            yield {
                "name": f"{sampler} {quantity.replace('_', ' ')}",
                "cat": "reading",
                "ph": "C",
                "ts": max(0, zero + _ticks(time_s)) / _TICKS_PER_US,
                "pid": process,
                "tid": 0,
                "args": {unit: value},
            }


def _ticks(seconds: float) -> int:
    return round(seconds * _TICKS_PER_S)


def _process_names(trial: Trial, process: int, position: int) -> Iterator[Event]:
    name = point_words(TrialSpec(trial.kind, trial.params, trial.repeat))
    # Viewers cut long names: what distinguishes the loops of a run comes first.
    if "input" in trial.params:
        name = f"{trial.params['input']}: {name}"
    if "rank" in trial.params:
        name = f"rank {trial.params['rank']}: {name}"
    yield _name("process_name", process, 0, {"name": name})
    yield _name("process_labels", process, 0, {"labels": f"iobench {trial.status}"})
    yield _name("process_sort_index", process, 0, {"sort_index": position})


def _thread_names(name: str, process: int, thread: int, position: int) -> Iterator[Event]:
    yield _name("thread_name", process, thread, {"name": name})
    yield _name("thread_sort_index", process, thread, {"sort_index": position})


def _name(name: str, process: int, thread: int, arguments: Mapping[str, Any]) -> Event:
    return {"name": name, "ph": "M", "pid": process, "tid": thread, "args": arguments}


def _lacking(recorded: Sequence[_Recorded]) -> list[str]:
    """What the trials did not store, each with the number of trials that it is about."""
    numbers: Counter[str] = Counter()
    for recording in recorded:
        if recording.trial.status == "done":
            numbers.update(_gaps(recording))
    return [f"{counted(number, 'trial')}: no {gap}" for gap, number in numbers.items()]


def _gaps(recorded: _Recorded) -> Iterator[str]:
    trial, steps = recorded.trial, recorded.steps
    if trial.kind == "watch":
        yield "batches of workers: those of your own loader are not seen"
        if trial.metrics.get("steps", 0) > len(steps.get("step_end_s", ())):
            yield "first steps of a long loop: the last ones are stored"
    if trial.kind == "loader":
        yield "steps: of a loader alone, its epochs and the batches of its workers are stored"
    if trial.kind in _LOOPS and not steps:
        yield "steps"
    if trial.kind == "train" and steps and not trial.time_zero_s:
        yield "moment at which the loop began: its steps are shown from the begin of the trial"
    if _has_workers(trial) and not any("worker" in span.track for span in recorded.spans):
        yield "batches of workers: torch-map, torch-iterable and torch-folder note them"
    if not recorded.readings:
        yield "readings of the machine (sampling.samplers)"


def _has_workers(trial: Trial) -> bool:
    params = trial.params
    reads = trial.kind in _BATCHING and params.get("input") not in ("synthetic", "copy")
    return reads and bool(params.get("workers"))
