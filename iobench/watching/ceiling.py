"""The ceiling and the loss: the loop's rate without its loader, and the cost of the loader.

A loop with a replay makes three kinds of steps:

- Repeated steps, which train on repeated batches. They are used only for the ceiling. Their second
  half is measured in two parts. If the rates of both parts agree within 5 %, the ceiling is one
  rate. Otherwise it is a range.
- Steps after the replay whose batches may have been fetched during the replay. They count in no
  figure. These steps end with the first batch for which the loop has to wait. If the loop waits for
  no batch in the rest of the epoch, the whole rest is left out. There is one exception: if the loop
  did not wait for batches before the replay either, the loader is fast enough, and the steps count.
- All other steps. They are used for the rate of the loop and its other figures.

The loss is ``1 - rate / ceiling``. It is a range if the rate or the ceiling is a range.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd

from iobench.watching.loop_rate import MAX_QUOTIENT, LoopRate, first_waiting_batch, max_at_once_s
from iobench.watching.replay import WARM_UP_STEPS
from iobench.watching.session import END_OF_EPOCH, UNKNOWN_SAMPLES

_COLUMNS_OF_MARKS = {
    "called_s": "moment_s",
    "got_s": "repeated_steps",
    "ended_s": "planned_steps",
}
"""What the fields of a mark hold, by their names in a record of a step."""


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The rate of the loop on repeated batches, in samples/s.

    Attributes:
        low: the rate of the slower measured part.
        high: the rate of the faster measured part.
        mean: the rate over both parts together.
    """

    low: float
    high: float
    mean: float

    @property
    def agrees(self) -> bool:
        """Whether the rates of both parts are close enough to count as one rate."""
        return self.high <= MAX_QUOTIENT * self.low

    @property
    def ends(self) -> tuple[float, float]:
        """The ends of the range of the ceiling. If both parts agree, both ends are ``mean``."""
        return (self.mean, self.mean) if self.agrees else (self.low, self.high)

    @property
    def metrics(self) -> dict[str, float]:
        """The ceiling as metrics: one rate, or the ends of a range."""
        if self.agrees:
            return {"ceiling_samples_per_s": self.mean}
        return {"ceiling_samples_per_s_low": self.low, "ceiling_samples_per_s_high": self.high}


@dataclass(frozen=True, slots=True)
class StepsWithoutReplay:
    """The steps of a loop, without repeated steps and without steps that the replay has changed.

    Attributes:
        rows: the steps and ends of epochs that count.
        rows_before: the number of ``rows`` before the replay; None if there was no replay.
        repeated: the number of steps on repeated batches.
        planned: the planned number of repeated steps; 0 if the replay did not begin.
        left_out: the number of steps after the replay that do not count.
        ceiling: the rate on repeated batches; None if the replay was not complete, or the samples
            of a batch are unknown.
        pauses: the start and the end of each time in which no step counts, in seconds.
    """

    rows: pd.DataFrame
    rows_before: int | None = None
    repeated: int = 0
    planned: int = 0
    left_out: int = 0
    ceiling: Ceiling | None = None
    pauses: tuple[tuple[float, float], ...] = ()

    def metrics(self, batches: int) -> dict[str, float]:
        """The ceiling and the size of the replay; empty if the replay did not begin.

        Args:
            batches: the number of batches that were repeated.
        """
        if not self.planned:
            return {}
        metrics: dict[str, float] = {
            "replay_batches": batches,
            "replay_steps": self.repeated,
            "replay_left_out": self.left_out,
        }
        if self.ceiling is not None:
            metrics.update(self.ceiling.metrics)
        return metrics

    def notes(self, batches: int) -> list[str]:
        """Sentences for the report about how the ceiling was measured, or why it is unknown.

        Args:
            batches: the requested number of batches to repeat; 0 without a replay.
        """
        if not batches:
            return [
                "the rate of the device alone was not measured: that needs iobench.watch(loader, "
                "replay=8), or the same loop on data in its own memory (iobench run, training, "
                "inputs: synthetic)"
            ]
        if not self.planned:
            begins_after = WARM_UP_STEPS + batches
            return [
                f"the replay did not take place, so the ceiling is unknown: it begins after "
                f"{begins_after:,} batches of the loader"
            ]
        if self.repeated < self.planned:
            return [
                f"the loop ended during the replay, after {self.repeated:,} of {self.planned:,} "
                "repeated steps, so the ceiling is unknown"
            ]
        measured = self.planned - self.planned // 2
        notes = [
            f"{self.planned:,} steps trained on {batches:,} repeated batches; the last "
            f"{measured:,} of them give the ceiling, the rate of the loop without its loader"
        ]
        if self.ceiling is not None and not self.ceiling.agrees:
            notes.append(
                "the ceiling is a range, since the repeated steps were not even: a higher "
                "replay_steps gives one rate"
            )
        if self.left_out:
            notes.append(
                f"{self.left_out:,} steps after the replay count in no figure: their batches may "
                "have been fetched during the replay"
            )
        return notes


def take_out_replay(rows: pd.DataFrame, marks: pd.DataFrame) -> StepsWithoutReplay:
    """Remove the steps that the replay has added or changed from the steps of one loader.

    Args:
        rows: steps and ends of epochs, with ``wait_s``, ``step_s`` and ``elsewhere_s``.
        marks: the marks of the replay, as ``iobench.watching.session`` describes them; empty if
            there was no replay. After Ctrl-C two marks may have the same number of steps.
    """
    if marks.empty:
        return StepsWithoutReplay(rows)
    marks = marks.rename(columns=_COLUMNS_OF_MARKS)
    marks = marks.sort_values("moment_s").drop_duplicates("repeated_steps", keep="last")
    begun_s, planned = float(marks.moment_s.iloc[0]), int(marks.planned_steps.iloc[0])
    is_complete = int(marks.repeated_steps.iloc[-1]) == planned
    ended_s = float(marks.moment_s.iloc[-1]) if is_complete else np.inf
    rows = _without_device_wait(rows, ended_s)
    is_in_epoch = rows.epoch == marks.epoch.iloc[0]
    is_batch = rows.samples != END_OF_EPOCH
    is_repeated = is_in_epoch & is_batch & rows.got_s.between(begun_s, ended_s, inclusive="left")
    is_before = rows.got_s < begun_s
    is_after = is_in_epoch & ~is_before & ~is_repeated
    is_unsteady = _fetched_during(rows, is_before & is_batch, is_after, is_batch)
    repeated_rows = rows[is_repeated]
    kept_rows = rows[~is_repeated & ~is_unsteady]
    rows_after_replay = kept_rows[kept_rows.got_s >= begun_s]
    resumed_s = float(rows.ended_s.iloc[-1])
    if len(rows_after_replay):
        resumed_s = float(rows_after_replay.called_s.iloc[0])
    return StepsWithoutReplay(
        rows=kept_rows,
        rows_before=int((kept_rows.got_s < begun_s).sum()),
        repeated=len(repeated_rows),
        planned=planned,
        left_out=int((is_unsteady & is_batch).sum()),
        ceiling=_ceiling(repeated_rows, marks) if is_complete else None,
        pauses=((begun_s, resumed_s),),
    )


def loss_metrics(rate: LoopRate | None, ceiling: Ceiling | None) -> dict[str, float]:
    """The loss, or the ends of its range; empty if the rate or the ceiling is unknown."""
    if ceiling is None or rate is None or rate.ends is None:
        return {}
    rate_low, rate_high = rate.ends
    ceiling_low, ceiling_high = ceiling.ends
    low, high = 1 - rate_high / ceiling_low, 1 - rate_low / ceiling_high
    if low == high:
        return {"loss_share": low}
    return {"loss_share_low": low, "loss_share_high": high}


def _without_device_wait(rows: pd.DataFrame, ended_s: float) -> pd.DataFrame:
    """The rows without the wait for the GPU at the end of the replay.

    This wait is at the start of the first request after the replay, which then begins at
    ``ended_s``.
    """
    is_first_after = (rows.called_s < ended_s) & (rows.got_s >= ended_s)
    device_wait_s = (ended_s - rows.called_s).where(is_first_after, 0.0)
    return rows.assign(
        called_s=rows.called_s + device_wait_s,
        wait_s=rows.wait_s - device_wait_s,
        step_s=rows.step_s - device_wait_s,
    )


def _fetched_during(
    rows: pd.DataFrame,
    is_before: pd.Series[bool],
    is_after: pd.Series[bool],
    is_batch: pd.Series[bool],
) -> pd.Series[bool]:
    """Whether each row is after the replay, and its batch may have been fetched during the replay.

    Args:
        rows: all rows of the loader.
        is_before: whether each row is a batch before the replay.
        is_after: whether each row is after the replay and in the same epoch.
        is_batch: whether each row is a batch, and not the end of an epoch.
    """
    before, after = rows[is_before], rows[is_after & is_batch]
    at_once_s = max_at_once_s(float(before.step_s.iloc[1:].mean()))
    # Every loop waits for its first batch, so this wait is ignored.
    first_wait_before = first_waiting_batch(
        before.wait_s.to_numpy()[1:], before.step_s.to_numpy()[1:], at_once_s
    )
    first_wait_after = first_waiting_batch(
        after.wait_s.to_numpy(), after.step_s.to_numpy(), at_once_s
    )
    if first_wait_after is None:
        return is_after & (first_wait_before is not None)
    return is_after & (rows.got_s < float(after.got_s.iloc[first_wait_after]))


def _ceiling(repeated: pd.DataFrame, marks: pd.DataFrame) -> Ceiling | None:
    """The rates of the two measured parts of a complete replay.

    None if the samples of a batch are unknown, or if a part has no samples or takes no time.

    Args:
        repeated: the repeated steps.
        marks: the marks of the replay. The first mark is the start of the replay. Each part lies
            between two of the other marks.
    """
    if (repeated.samples == UNKNOWN_SAMPLES).any():
        return None
    rates: list[float] = []
    all_samples, all_seconds = 0.0, 0.0
    for begin_s, end_s in pairwise(marks.moment_s.tolist()[1:]):
        steps = repeated[repeated.got_s.between(begin_s, end_s, inclusive="left")]
        samples = float(steps.samples.sum())
        seconds = end_s - begin_s - float(steps.elsewhere_s.sum())
        if samples <= 0 or seconds <= 0:
            return None
        rates.append(samples / seconds)
        all_samples += samples
        all_seconds += seconds
    if not rates:
        return None
    return Ceiling(min(rates), max(rates), all_samples / all_seconds)
