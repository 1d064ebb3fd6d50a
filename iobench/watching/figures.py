"""Compute the figures of a watched loop from its log of steps: rates, waits, spans and notes."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dataprep.message_text import counted
from iobench.errors import Unavailable
from iobench.machine.sampling import Samples
from iobench.results.result import Columns
from iobench.results.statistics import quantiles
from iobench.results.trial import Metrics, Outcome, Span
from iobench.trials.spans import MAX_SPANS
from iobench.watching.ceiling import StepsWithoutReplay, loss_metrics, take_out_replay
from iobench.watching.loop_rate import LoopRate, loop_rate
from iobench.watching.session import (
    DEVICE_IDLE,
    END_OF_EPOCH,
    REPLAY_MARK,
    STEP_FIELDS,
    UNKNOWN_SAMPLES,
)

MAX_STEPS = 200_000
"""Series and quantiles have at most this many steps, the last steps. Sums are over all steps."""

# The notes of every watched loop.
NOTES = (
    "waiting for data is the time that the loop spent in next() on the host, with the start of "
    "each epoch; a GPU may have computed queued work meanwhile",
    "the script ran once, so the figures have no intervals",
)

_RECORD_BYTES = 8 * len(STEP_FIELDS)


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
    records = table[table.loader == loader]
    loop = _loop_rows(records, table)
    without_replay = loop.without_replay
    rate = None
    if loop.has_samples:
        rate = loop_rate(loop.rows, without_replay.rows_before)
    all_notes = [*notes, *NOTES, *without_replay.notes(replay_batches), *_notes(loop)]
    if rate is not None and rate.note:
        all_notes.append(rate.note)
    origin_s, ended_s = float(loop.first.called_s), float(loop.rows.ended_s.iloc[-1])
    readings = _within(samples.columns, origin_s, ended_s)
    pauses = [(begin_s - origin_s, end_s - origin_s) for begin_s, end_s in without_replay.pauses]
    last_steps = loop.steps.tail(MAX_STEPS)
    metrics = {
        **_time_metrics(loop),
        "harness_step_s": step_cost_s,
        "harness_share": loop.share_of_time(step_cost_s * len(loop.steps)),
        "sampling_core_share": samples.core_share,
        "sampling_notes": list(samples.notes),
        "notes": all_notes,
        **without_replay.metrics(replay_batches),
        **_rate_metrics(loop, rate),
        **_start_metrics(loop),
        **_device_metrics(loop, records[records.samples == DEVICE_IDLE]),
        **_named_quantiles("step_s", last_steps.step_s),
        **_named_quantiles("batch_wait_s", last_steps.wait_s),
        **_means(readings, pauses),
    }
    return Outcome(
        metrics=metrics,
        series=_series(last_steps, origin_s),
        origin_s=origin_s,
        counted_s=(float(loop.first.ended_s) - origin_s, ended_s - origin_s),
        samples={str(name): column.tolist() for name, column in readings.items()},
        pauses=pauses,
        spans=[
            *_epochs(loop.rows, origin_s),
            *_ends_of_epochs(loop.rows, origin_s),
            *_replay_spans(without_replay, origin_s),
        ],
    )


@dataclass(frozen=True, slots=True)
class _LoopRows:
    """The steps and ends of epochs of a loop over one loader, without the steps of a replay.

    Attributes:
        without_replay: all rows, and the results of the replay.
        first: the first step. It counts in no share.
        later: the rows after the first step.
        steps: the steps among ``later``.
        starts: the steps among ``steps`` with which a later epoch begins.
        seconds: the time of ``later``.
    """

    without_replay: StepsWithoutReplay
    first: Any
    later: pd.DataFrame
    steps: pd.DataFrame
    starts: pd.DataFrame
    seconds: float

    @property
    def rows(self) -> pd.DataFrame:
        """All rows, with the first step."""
        return self.without_replay.rows

    @property
    def has_samples(self) -> bool:
        """Whether the number of samples is known for every step but the first."""
        return bool((self.steps.samples != UNKNOWN_SAMPLES).all())

    def share_of_time(self, seconds: float) -> float:
        """A time as a share of the time after the first step; 0 if that time is 0."""
        inverse_seconds = 1 / self.seconds if self.seconds > 0 else 0.0
        return seconds * inverse_seconds


def _loop_rows(records: pd.DataFrame, table: pd.DataFrame) -> _LoopRows:
    """Select the rows that count.

    Args:
        records: the records of the loader.
        table: the records of all loaders.

    Raises:
        Unavailable: there is no step after the first step of the loader.
    """
    all_rows = _timed(records[records.samples > DEVICE_IDLE], table)
    without_replay = take_out_replay(all_rows, records[records.samples == REPLAY_MARK])
    first, later = without_replay.rows.iloc[0], without_replay.rows.iloc[1:]
    steps = later[later.samples != END_OF_EPOCH]
    if steps.empty:
        raise Unavailable("no step after the first has ended, so the loop has no figures")
    starts = steps[steps.epoch != first.epoch].drop_duplicates("epoch")
    return _LoopRows(without_replay, first, later, steps, starts, float(later.step_s.sum()))


def _time_metrics(loop: _LoopRows) -> Metrics:
    """The number of steps and epochs, and how long they took."""
    rows = loop.rows
    return {
        "seconds": loop.seconds,
        "steps": len(loop.steps),
        "epochs": int(rows[rows.samples != END_OF_EPOCH].epoch.nunique()),
        "wait_share": loop.share_of_time(float(loop.later.wait_s.sum())),
        "time_to_first_batch_s": float(loop.first.wait_s),
        "first_step_s": float(loop.first.step_s - loop.first.wait_s),
    }


def _rate_metrics(loop: _LoopRows, rate: LoopRate | None) -> Metrics:
    """The samples, their rate and the loss; empty if the samples of a batch are unknown."""
    if not loop.has_samples:
        return {}
    return {
        "samples": int(loop.steps.samples.sum()),
        **(rate.metrics if rate is not None else {}),
        **loss_metrics(rate, loop.without_replay.ceiling),
    }


def _start_metrics(loop: _LoopRows) -> Metrics:
    """The waits for the first batches of later epochs; empty if there was only one epoch."""
    waits_s = loop.starts.wait_s
    if waits_s.empty:
        return {}
    return {
        "epoch_start_s": float(waits_s.mean()),
        "epoch_start_share": loop.share_of_time(float(waits_s.sum())),
    }


def _device_metrics(loop: _LoopRows, idle: pd.DataFrame) -> Metrics:
    """The share of the time in which the GPU was idle while it waited for batches.

    The result is empty if this was not measured.

    Args:
        loop: the rows of the loop.
        idle: the records of the GPU's idle time.
    """
    if idle.empty:
        return {}
    idle_s = idle.set_index("called_s").got_s
    # Requests for repeated batches are not among the steps, so their idle time is left out.
    is_step = idle_s.index.isin(loop.later.called_s)
    is_start = idle_s.index.isin(loop.starts.called_s)
    return {
        "device_wait_share": loop.share_of_time(float(idle_s[is_step].sum())),
        "device_epoch_start_share": loop.share_of_time(float(idle_s[is_start].sum())),
    }


def _named_quantiles(prefix: str, values: pd.Series[float]) -> dict[str, float]:
    """The quantiles of values by the names of their metrics, such as ``step_s_p99``."""
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
    spans = []
    for epoch, begin_s, end_s, wait_s in epochs.tail(MAX_SPANS).itertuples(name=None):
        name, seconds = f"epoch {int(epoch)}", end_s - begin_s
        spans.append(Span("epochs", name, begin_s - origin_s, seconds, wait_s))
    return spans


def _ends_of_epochs(rows: pd.DataFrame, origin_s: float) -> list[Span]:
    """How long the loop waited until it learned that an epoch had ended.

    This wait belongs to no step, but it counts as waiting.
    """
    ends = rows[rows.samples == END_OF_EPOCH].tail(MAX_SPANS)
    spans = []
    for epoch, called_s, wait_s in zip(ends.epoch, ends.called_s, ends.wait_s, strict=True):
        name, begin_s, seconds = f"end of epoch {int(epoch)}", called_s - origin_s, float(wait_s)
        spans.append(Span("steps", name, float(begin_s), seconds, seconds))
    return spans


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
    """The mean load of CPUs and disks. Readings in pauses are left out.

    A metric is left out if the machine was not sampled for it. ``loop_cpu_share`` is a share of all
    processors.
    """
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


def _notes(loop: _LoopRows) -> list[str]:
    """Sentences about time in other loaders, unknown samples, and steps that are left out."""
    notes = []
    elsewhere_s = loop.rows.elsewhere_s.sum()
    if elsewhere_s > 0:
        notes.append(
            f"{elsewhere_s:,.3g} s within its steps were whole passes over other watched "
            "loaders, such as validation: its figures leave them out"
        )
    if not loop.has_samples:
        notes.append("the number of samples in a batch is unknown: use watch(loader, batch_size=N)")
    steps = len(loop.steps)
    if steps > MAX_STEPS:
        notes.append(
            f"series and quantiles cover only the last {MAX_STEPS:,} of {steps:,} steps; shares "
            "and rates cover all steps"
        )
    return notes
