"""Write the report of a watched run: the rates and waits of each loader, and notes about them."""

from __future__ import annotations

import math
import os
import timeit
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dataprep.counted import counted
from iobench.analysis.analyse import summarised
from iobench.clock import since_1970_s
from iobench.errors import Unavailable
from iobench.machine.environment import describe
from iobench.machine.sampling import Samples
from iobench.results.result import STEADY_STATE, Columns, Result, trial_line
from iobench.results.statistics import quantiles
from iobench.results.trial import Outcome, Span, Trial, TrialSpec
from iobench.runner.run_folder import add_line, begin_log, write_results
from iobench.trials.spans import MAX_SPANS
from iobench.watching.ceiling import StepsWithoutReplay, loss_metrics, take_out_replay
from iobench.watching.loop_rate import loop_rate
from iobench.watching.proxy import TimedEpoch
from iobench.watching.session import (
    DEVICE_IDLE,
    END_OF_EPOCH,
    REPLAY_MARK,
    STEP_FIELDS,
    UNKNOWN_SAMPLES,
    StepLog,
    WatchedLoader,
    WatchSettings,
)

MAX_STEPS = 200_000
"""Series and quantiles have at most this many steps, the last steps. Sums are over all steps."""

NOTES = (
    "waiting for data is the time that the loop spent in next() on the host, with the start of "
    "each epoch; a GPU may have computed queued work meanwhile",
    "one run of one script: no interval",
)
KILLED = "the script ended without notice: steps of its last second may be missing"

_CALIBRATION_STEPS = 2_000
_RECORD_BYTES = 8 * len(STEP_FIELDS)


def write(
    folder: Path,
    settings: WatchSettings,
    loaders: Sequence[WatchedLoader],
    records: bytes,
    samples: Samples,
    *,
    announced_end: bool,
) -> str:
    """Write the run folder: result, tables and report. Returns the verdict.

    Args:
        folder: the run folder.
        settings: the settings of the run.
        loaders: the watched loaders, in the order of their numbers.
        records: the log of steps.
        samples: the readings of the machine.
        announced_end: whether the script has announced its end. If not, it may have been killed.

    Raises:
        StoreError: a file cannot be written.
    """
    config = {"watch": {"per_s": settings.per_s, "samplers": list(settings.samplers)}}
    result = Result(settings.name, settings.started, describe({}), config, rates=STEADY_STATE)
    begin_log(folder, result)
    table, cost_s = read_step_log(records), step_cost_s()
    for number, loader in enumerate(loaders):
        spec = TrialSpec("watch", _params(settings, loader))
        trial = Trial(spec.id, spec.kind, spec.params, spec.repeat, "done")
        loop = Outcome({})
        try:
            loop = outcome(
                table,
                number,
                samples,
                step_cost_s=cost_s,
                notes=() if announced_end else (KILLED,),
                replay_batches=loader.replay,
            )
            _, ended_s = loop.counted_s or (0.0, 0.0)
            begun_s = since_1970_s(loop.origin_s or 0.0)
            trial = replace(
                trial,
                metrics=loop.metrics,
                started_s=round(begun_s, 3),
                seconds=round(ended_s, 3),
                time_zero_s=begun_s,
            )
        except Unavailable as error:
            trial = replace(trial, status="skipped", reason=str(error))
        result = result.with_trial(trial)
        add_line(folder, trial_line(trial, loop.series, loop.samples, loop.spans))
    result = summarised(result)
    write_results(folder, result)
    return str(result.summary["verdict"])


def _params(settings: WatchSettings, loader: WatchedLoader) -> dict[str, Any]:
    """The parameters of the trial of a loader. Unknown values are left out.

    The rank is only a parameter if the job has several processes.
    """
    params: dict[str, Any] = {}
    if loader.loader:
        params["loader"] = loader.loader
    if loader.batch_size:
        params["batch_size"] = loader.batch_size
    if settings.world_size > 1:
        params["rank"] = settings.rank
        params["world_size"] = settings.world_size
    return params


def step_cost_s() -> float:
    """The seconds that watching adds to a step.

    This is the difference between a watched and a plain pass over a list. Each pass is measured
    three times, and the shortest time counts, since other work on the machine only adds time.
    """
    batches = [([0] * 32, [0] * 32)] * _CALIBRATION_STEPS

    def watched_pass() -> None:
        # A deque of length 0 takes all items of an iterator, and keeps none.
        deque(TimedEpoch(lambda: iter(batches), 0, 0, StepLog(len)), 0)

    watched_s = min(timeit.repeat(watched_pass, number=1, repeat=3))
    plain_s = min(timeit.repeat(lambda: deque(batches, 0), number=1, repeat=3))
    return max(0.0, watched_s - plain_s) / _CALIBRATION_STEPS


def read_step_log(records: bytes) -> pd.DataFrame:
    """The log of a script as a table of records, without duplicates."""
    # A script that was killed may have written only a part of its last record.
    complete_bytes = len(records) // _RECORD_BYTES * _RECORD_BYTES
    rows = np.frombuffer(records[:complete_bytes]).reshape(-1, len(STEP_FIELDS))
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

    - The first step counts in no share.
    - The wait until the loop learns that an epoch has ended counts as waiting.
    - Complete passes over other watched loaders within a step, such as validation, do not count.
    - Steps of a replay count only for the ceiling.
    - ``iobench.watching.loop_rate`` explains how samples/s are computed.

    Args:
        table: the log of steps of all loaders.
        loader: the number of the loader.
        samples: the readings of the machine.
        step_cost_s: the seconds that watching adds to a step.
        notes: notes about the whole run.
        replay_batches: the requested number of batches to repeat; 0 without a replay.

    Raises:
        Unavailable: the table has no step after the first step of the loader.
    """
    loader_records = table[table.loader == loader]
    loader_steps = _timed(loader_records[loader_records.samples > DEVICE_IDLE], table)
    replay_marks = loader_records[loader_records.samples == REPLAY_MARK]
    without_replay = take_out_replay(loader_steps, replay_marks)
    rows = without_replay.rows
    first_row, later_rows = rows.iloc[0], rows.iloc[1:]
    steps = later_rows[later_rows.samples != END_OF_EPOCH]
    if steps.empty:
        raise Unavailable("no step after the first has ended, so the loop has no figures")
    origin_s, ended_s = float(first_row.called_s), float(rows.ended_s.iloc[-1])
    seconds = float(later_rows.step_s.sum())
    inverse_seconds = 1 / seconds if seconds > 0 else 0.0
    rate = None
    has_samples = bool((steps.samples != UNKNOWN_SAMPLES).all())
    if has_samples:
        rate = loop_rate(rows, without_replay.rows_before)
    all_notes = [*notes, *NOTES]
    all_notes += without_replay.notes(replay_batches)
    all_notes += _notes(rows, steps)
    if rate is not None and rate.note:
        all_notes.append(rate.note)
    readings = _within(samples.columns, origin_s, ended_s)
    pauses = [(begin_s - origin_s, end_s - origin_s) for begin_s, end_s in without_replay.pauses]
    last_steps = steps.tail(MAX_STEPS)
    metrics: dict[str, Any] = {
        "seconds": seconds,
        "steps": len(steps),
        "epochs": int(rows[rows.samples != END_OF_EPOCH].epoch.nunique()),
        "wait_share": float(later_rows.wait_s.sum()) * inverse_seconds,
        "time_to_first_batch_s": float(first_row.wait_s),
        "first_step_s": float(first_row.step_s - first_row.wait_s),
        "harness_step_s": step_cost_s,
        "harness_share": step_cost_s * len(steps) * inverse_seconds,
        "sampling_core_share": samples.core_share,
        "sampling_notes": list(samples.notes),
        "notes": all_notes,
    }
    metrics.update(without_replay.metrics(replay_batches))
    if has_samples:
        metrics["samples"] = int(steps.samples.sum())
        if rate is not None:
            metrics.update(rate.metrics)
        metrics.update(loss_metrics(rate, without_replay.ceiling))
    starts = steps[steps.epoch != first_row.epoch].drop_duplicates("epoch")
    if len(starts):
        metrics["epoch_start_s"] = float(starts.wait_s.mean())
        metrics["epoch_start_share"] = float(starts.wait_s.sum()) * inverse_seconds
    metrics.update(
        _device_metrics(
            loader_records[loader_records.samples == DEVICE_IDLE],
            later_rows,
            starts,
            inverse_seconds,
        )
    )
    metrics.update(_named_quantiles("step_s", last_steps.step_s))
    metrics.update(_named_quantiles("batch_wait_s", last_steps.wait_s))
    metrics.update(_means(readings, pauses))
    return Outcome(
        metrics=metrics,
        series=_series(last_steps, origin_s),
        origin_s=origin_s,
        counted_s=(float(first_row.ended_s) - origin_s, ended_s - origin_s),
        samples={str(name): column.tolist() for name, column in readings.items()},
        pauses=pauses,
        spans=[
            *_epochs(rows, origin_s),
            *_ends_of_epochs(rows, origin_s),
            *_replay_spans(without_replay, origin_s),
        ],
    )


def _device_metrics(
    idle: pd.DataFrame, steps: pd.DataFrame, starts: pd.DataFrame, inverse_seconds: float
) -> dict[str, float]:
    """The share of the time in which the GPU was idle while it waited for batches.

    The result is empty if this was not measured.

    Args:
        idle: the records of the GPU's idle time.
        steps: the steps and ends of epochs that count.
        starts: the steps with which an epoch begins.
        inverse_seconds: 1 / the seconds of all steps.
    """
    if idle.empty:
        return {}
    idle_s = idle.set_index("called_s").got_s
    # Requests for repeated batches are not among the steps, so their idle time is left out.
    is_step = idle_s.index.isin(steps.called_s)
    is_start = idle_s.index.isin(starts.called_s)
    return {
        "device_wait_share": float(idle_s[is_step].sum()) * inverse_seconds,
        "device_epoch_start_share": float(idle_s[is_start].sum()) * inverse_seconds,
    }


def _named_quantiles(prefix: str, values: pd.Series[float]) -> dict[str, float]:
    return {f"{prefix}_{name}": value for name, value in quantiles(values.tolist()).items()}


def _series(steps: pd.DataFrame, origin_s: float) -> dict[str, Sequence[float]]:
    """The series of a training loop. The computing time of the device is unknown and left out."""
    series: dict[str, Sequence[float]] = {
        "step_end_s": steps.step_s.cumsum().tolist(),
        "time_s": (steps.ended_s - origin_s).tolist(),
        "wait_s": steps.wait_s.tolist(),
        "epoch": steps.epoch.astype(int).tolist(),
    }
    if steps.elsewhere_s.any():
        series["elsewhere_s"] = steps.elsewhere_s.tolist()
    return series


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
    """How long the loop waited until it learned that an epoch had ended.

    This wait belongs to no step, but it counts as waiting.
    """
    ends = rows[rows.samples == END_OF_EPOCH].tail(MAX_SPANS)
    values = zip(ends.epoch, ends.called_s - origin_s, ends.wait_s, strict=True)
    return [
        Span("steps", f"end of epoch {int(epoch)}", float(called_s), float(wait_s), float(wait_s))
        for epoch, called_s, wait_s in values
    ]


def _replay_spans(without_replay: StepsWithoutReplay, origin_s: float) -> list[Span]:
    """The time of the replay and of the steps after it that do not count."""
    repeated_steps = counted(without_replay.repeated, "repeated step")
    name = f"{repeated_steps}, {without_replay.left_out:,} left out"
    return [
        Span("replay", name, begin_s - origin_s, end_s - begin_s)
        for begin_s, end_s in without_replay.pauses
    ]


def _timed(rows: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    """The steps from the first batch on, with columns ``wait_s``, ``elsewhere_s`` and ``step_s``.

    ``elsewhere_s`` is the time of complete passes over any watched loader within a step, such as
    validation. It is not part of ``step_s``.

    Raises:
        Unavailable: the loader gave no batch.
    """
    has_had_batch = (rows.samples != END_OF_EPOCH).cummax()
    if not has_had_batch.any():
        raise Unavailable("no batch came through this loader: does the loop iterate over it?")
    rows = rows[has_had_batch]
    got_s, ended_s = rows.got_s.to_numpy(), rows.ended_s.to_numpy()
    elsewhere_s = np.zeros(len(rows))
    covered_s = -math.inf
    # Each complete pass over a loader, with its begin and its end. The passes are sorted so that a
    # pass comes before the passes within it.
    passes = table[table.samples > DEVICE_IDLE].groupby(["loader", "epoch"])
    spans = passes.agg(begun_s=("called_s", "first"), ended_s=("ended_s", "last"))
    complete = spans[passes.samples.last() == END_OF_EPOCH]
    complete = complete.sort_values(["begun_s", "ended_s"], ascending=[True, False])
    for begin_s, end_s in complete.itertuples(index=False, name=None):
        step = int(np.searchsorted(got_s, begin_s, side="right")) - 1
        # A pass within another pass is already included in the outer pass.
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
    """The mean load of CPUs and disks. Readings in pauses are left out."""
    if readings.empty:
        return {}
    for begin_s, end_s in pauses:
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
    """Sentences about time in other loaders, unknown samples, and steps that are left out."""
    notes = []
    elsewhere_s = rows.elsewhere_s.sum()
    if elsewhere_s > 0:
        notes.append(
            f"{elsewhere_s:,.3g} s within its steps were whole passes over other watched "
            "loaders, such as validation: its figures leave them out"
        )
    if (steps.samples == UNKNOWN_SAMPLES).any():
        notes.append("the number of samples in a batch is unknown: use watch(loader, batch_size=N)")
    if len(steps) > MAX_STEPS:
        notes.append(
            f"series and quantiles are of the last {MAX_STEPS:,} of {len(steps):,} steps; "
            "shares and rates are of all"
        )
    return notes
