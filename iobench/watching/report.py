"""The report of a watched run: rates and waits of each loader, with notes on unknown values."""

from __future__ import annotations

import math
import os
import timeit
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dataprep.counted import counted
from iobench.analysis.analyse import summarised
from iobench.clock import since_1970_s
from iobench.errors import Unavailable
from iobench.loops.spans import MAX_SPANS
from iobench.machine.environment import describe
from iobench.machine.sampling import Columns, Samples
from iobench.result import STEADY_STATE, Result, trial_line
from iobench.rundir import add_line, begin_log, write_results
from iobench.stats import quantiles
from iobench.trial import Outcome, Span, Trial, TrialSpec
from iobench.watching.ceiling import Replayed, loss_metrics, without_replay
from iobench.watching.loader import Epoch
from iobench.watching.rates import loop_rate
from iobench.watching.session import IDLE, NO_BATCH, REPLAY, STEP_FIELDS, UNKNOWN, StepLog

MOST_STEPS = 200_000
"""Series and quantiles are of the last so many steps; sums are of all steps."""

NOTES = (
    "waiting for data is the time that the loop spent in next() on the host, with the start of "
    "each epoch; a GPU may have computed queued work meanwhile",
    "one run of one script: no interval",
)
KILLED = "the script ended without notice: steps of its last second may be missing"

_CALIBRATION = 2_000
_RECORD_BYTES = 8 * len(STEP_FIELDS)


def write(
    folder: Path,
    settings: Mapping[str, Any],
    loaders: Sequence[Mapping[str, Any]],
    records: bytes,
    samples: Samples,
    *,
    ended: bool,
) -> str:
    """Write the run directory: result, tables and report; returns the verdict.

    ``ended``: the script said that it ends.

    Raises:
        StoreError: a file cannot be written.
    """
    config = {"watch": {key: settings[key] for key in ("per_s", "samplers")}}
    result = Result(settings["name"], settings["started"], describe({}), config, rates=STEADY_STATE)
    begin_log(folder, result)
    table, cost_s = step_table(records), step_cost_s()
    for number, loader in enumerate(loaders):
        params = {key: loader[key] for key in ("loader", "batch_size") if loader.get(key)}
        if settings["world_size"] > 1:
            params |= {key: settings[key] for key in ("rank", "world_size")}
        spec = TrialSpec("watch", params)
        trial, found = Trial(spec.id, spec.kind, params, spec.repeat, "done"), Outcome({})
        try:
            found = outcome(
                *(table, number, samples),
                step_cost_s=cost_s,
                notes=() if ended else (KILLED,),
                replay_batches=loader.get("replay", 0),
            )
            _, lasted_s = found.counted_s or (0.0, 0.0)
            begun_s = since_1970_s(found.origin_s or 0.0)
            trial = replace(
                trial,
                metrics=found.metrics,
                started_s=round(begun_s, 3),
                seconds=round(lasted_s, 3),
                time_zero_s=begun_s,
            )
        except Unavailable as error:
            trial = replace(trial, status="skipped", reason=str(error))
        result = result.with_trial(trial)
        add_line(folder, trial_line(trial, found.series, found.samples, found.spans))
    result = summarised(result)
    write_results(folder, result)
    return str(result.summary["verdict"])


def step_cost_s() -> float:
    """Seconds that watching adds to a step, measured by watched and plain passes over a list.

    The smallest of three, since other work on the machine only adds time.
    """
    batches = [([0] * 32, [0] * 32)] * _CALIBRATION

    def watched() -> None:
        deque(Epoch(lambda: iter(batches), 0, 0, StepLog(len)), 0)

    watched_s = min(timeit.repeat(watched, number=1, repeat=3))
    plain_s = min(timeit.repeat(lambda: deque(batches, 0), number=1, repeat=3))
    return max(0.0, watched_s - plain_s) / _CALIBRATION


def step_table(records: bytes) -> pd.DataFrame:
    """The log of a script as a table of records, without duplicates."""
    whole = len(records) // _RECORD_BYTES * _RECORD_BYTES
    rows = np.frombuffer(records[:whole]).reshape(-1, len(STEP_FIELDS))
    return pd.DataFrame(rows, columns=list(STEP_FIELDS)).drop_duplicates(ignore_index=True)


def outcome(
    table: pd.DataFrame,
    loader: int,
    samples: Samples,
    *,
    step_cost_s: float,
    notes: Sequence[str] = (),
    replay_batches: int = 0,
) -> Outcome:
    """The figures of the loop over one loader.

    The first step counts in no share. Waiting for the end of an epoch counts. Complete passes over
    other watched loaders within a step, such as validation, do not count. ``rates`` says how
    samples/s are counted, and ``ceiling`` what a replay of ``replay_batches`` batches shows. Its
    steps count in no other figure.

    Raises:
        Unavailable: the table has no step after the loader's first.
    """
    own = table[table.loader == loader]
    replayed = without_replay(_timed(own[own.samples > IDLE], table), own[own.samples == REPLAY])
    rows = replayed.rows
    first, rest = rows.iloc[0], rows.iloc[1:]
    steps = rest[rest.samples != NO_BATCH]
    if steps.empty:
        raise Unavailable("no step after the first has ended, so the loop has no figures")
    origin_s, ended_s = float(first.called_s), float(rows.ended_s.iloc[-1])
    seconds = float(rest.step_s.sum())
    per_second = 1 / seconds if seconds > 0 else 0.0
    metrics: dict[str, Any] = {
        "seconds": seconds,
        "steps": len(steps),
        "epochs": int(rows[rows.samples != NO_BATCH].epoch.nunique()),
        "wait_share": float(rest.wait_s.sum()) * per_second,
        "time_to_first_batch_s": float(first.wait_s),
        "first_step_s": float(first.step_s - first.wait_s),
        "harness_step_s": step_cost_s,
        "harness_share": step_cost_s * len(steps) * per_second,
        "sampling_core_share": samples.core_share,
        "sampling_notes": list(samples.notes),
        "notes": [*notes, *NOTES, *replayed.notes(replay_batches), *_notes(rows, steps)],
        **replayed.metrics(replay_batches),
    }
    if (steps.samples != UNKNOWN).all():
        metrics["samples"] = int(steps.samples.sum())
        rate = loop_rate(rows, replayed.rows_before)
        if rate is not None:
            metrics |= rate.metrics
            metrics["notes"] += [rate.note] if rate.note else []
        metrics |= loss_metrics(rate, replayed.ceiling)
    starts = steps[steps.epoch != first.epoch].drop_duplicates("epoch")
    if len(starts):
        metrics["epoch_start_s"] = float(starts.wait_s.mean())
        metrics["epoch_start_share"] = float(starts.wait_s.sum()) * per_second
    idle = own[own.samples == IDLE]
    if len(idle):
        idle_s = idle.set_index("called_s").got_s
        # Requests for repeated batches are not among the rows.
        of_steps, of_starts = idle_s.index.isin(rest.called_s), idle_s.index.isin(starts.called_s)
        metrics["device_wait_share"] = float(idle_s[of_steps].sum()) * per_second
        metrics["device_epoch_start_share"] = float(idle_s[of_starts].sum()) * per_second
    last = steps.tail(MOST_STEPS)
    for name, column in (("step_s", last.step_s), ("batch_wait_s", last.wait_s)):
        metrics |= {f"{name}_{q}": value for q, value in quantiles(column.tolist()).items()}
    series: dict[str, Sequence[float]] = {
        # As for a training loop, without the unknown time of the device.
        "step_end_s": last.step_s.cumsum().tolist(),
        "time_s": (last.ended_s - origin_s).tolist(),
        "wait_s": last.wait_s.tolist(),
        "epoch": last.epoch.astype(int).tolist(),
    }
    if last.elsewhere_s.any():
        series["elsewhere_s"] = last.elsewhere_s.tolist()
    readings = _within(samples.columns, origin_s, ended_s)
    pauses = [(begin_s - origin_s, end_s - origin_s) for begin_s, end_s in replayed.pauses]
    metrics |= _means(readings, pauses)
    return Outcome(
        metrics=metrics,
        series=series,
        origin_s=origin_s,
        counted_s=(float(first.ended_s) - origin_s, ended_s - origin_s),
        samples={str(name): column.tolist() for name, column in readings.items()},
        pauses=pauses,
        spans=[
            *_epochs(rows, origin_s),
            *_ends_of_epochs(rows, origin_s),
            *_replay_spans(replayed, origin_s),
        ],
    )


def _epochs(rows: pd.DataFrame, origin_s: float) -> list[Span]:
    """Each epoch from its request to its end, with the wait for its first batch."""
    epochs = rows.groupby("epoch", sort=False).agg(
        begin_s=("called_s", "first"), end_s=("ended_s", "last"), wait_s=("wait_s", "first")
    )
    return [
        Span("epochs", f"epoch {int(epoch)}", begin_s - origin_s, end_s - begin_s, wait_s)
        for epoch, begin_s, end_s, wait_s in epochs.tail(MAX_SPANS).itertuples(name=None)
    ]


def _ends_of_epochs(rows: pd.DataFrame, origin_s: float) -> list[Span]:
    """How long the loop waited to learn that an epoch had ended: in no step, but in the waiting."""
    ends = rows[rows.samples == NO_BATCH].tail(MAX_SPANS)
    values = zip(ends.epoch, ends.called_s - origin_s, ends.wait_s, strict=True)
    return [
        Span("steps", f"end of epoch {int(epoch)}", float(called_s), float(wait_s), float(wait_s))
        for epoch, called_s, wait_s in values
    ]


def _replay_spans(replayed: Replayed, origin_s: float) -> list[Span]:
    """The steps of a replay and those after it that do not count, which are no steps of a trace."""
    name = f"{counted(replayed.repeated, 'repeated step')}, {replayed.left_out:,} left out"
    return [
        Span("replay", name, begin_s - origin_s, end_s - begin_s)
        for begin_s, end_s in replayed.pauses
    ]


def _timed(rows: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    """Steps from the first batch on, with ``wait_s``, ``elsewhere_s`` and ``step_s``.

    ``elsewhere_s`` is the time of complete passes over any loader within the step's work.
    """
    begun = (rows.samples != NO_BATCH).cummax()
    if not begun.any():
        raise Unavailable("no batch came through this loader: does the loop iterate over it?")
    rows = rows[begun]
    got_s, ended_s = rows.got_s.to_numpy(), rows.ended_s.to_numpy()
    elsewhere_s = np.zeros(len(rows))
    covered_s = -math.inf
    # Begin and end of each complete pass over a loader, outer passes before those within.
    epochs = table[table.samples > IDLE].groupby(["loader", "epoch"])
    spans = epochs.agg(begun_s=("called_s", "first"), ended_s=("ended_s", "last"))
    whole = spans[epochs.samples.last() == NO_BATCH]
    ordered = whole.sort_values(["begun_s", "ended_s"], ascending=[True, False])
    for begin_s, end_s in ordered.itertuples(index=False, name=None):
        step = int(np.searchsorted(got_s, begin_s, side="right")) - 1
        # Of a pass within a pass only the outer one counts.
        if step >= 0 and end_s <= ended_s[step] and begin_s >= covered_s:
            elsewhere_s[step] += end_s - begin_s
            covered_s = end_s
    return rows.assign(
        wait_s=rows.got_s - rows.called_s,
        elsewhere_s=elsewhere_s,
        step_s=rows.ended_s - rows.called_s - elsewhere_s,
    )


def _within(columns: Columns, begin_s: float, end_s: float) -> pd.DataFrame:
    """Readings from ``begin_s`` to ``end_s``, timed from ``begin_s``, without empty columns."""
    readings = pd.DataFrame({"time_s": [], **columns}, dtype=float)
    kept = readings[readings.time_s.between(begin_s, end_s)].dropna(axis="columns", how="all")
    return kept if kept.empty else kept.assign(time_s=kept.time_s - begin_s)


def _means(readings: pd.DataFrame, pauses: Sequence[tuple[float, float]]) -> dict[str, float]:
    """How busy CPUs and disks were, without the readings in pauses."""
    for begin_s, end_s in pauses if len(readings) else ():
        readings = readings[~readings.time_s.between(begin_s, end_s)]
    means = {}
    for name, columns, unit in (
        ("loop_cpu_share", ["tree.user_cores", "tree.system_cores"], os.cpu_count() or 1),
        ("cpu_busy_share", ["cpu.user_share", "cpu.system_share", "cpu.steal_share"], 1),
        ("disk_read_mb_per_s", ["disk.read_bytes_per_s"], 1e6),
    ):
        if len(readings) and set(columns) <= set(readings.columns):
            means[name] = float(readings[columns].mean().sum()) / unit
    return means


def _notes(rows: pd.DataFrame, steps: pd.DataFrame) -> list[str]:
    notes = []
    elsewhere_s = rows.elsewhere_s.sum()
    if elsewhere_s > 0:
        notes.append(
            f"{elsewhere_s:,.3g} s within its steps were whole passes over other watched "
            "loaders, such as validation: its figures leave them out"
        )
    if (steps.samples == UNKNOWN).any():
        notes.append(
            "the number of samples in a batch is unknown: give watch(loader, batch_size=N)"
        )
    if len(steps) > MOST_STEPS:
        notes.append(
            f"series and quantiles are of the last {MOST_STEPS:,} of {len(steps):,} steps; "
            "shares and rates are of all"
        )
    return notes
