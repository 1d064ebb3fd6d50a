"""What a replay shows: the loop's rate without its loader, and the loss.

The steps of a loop with a replay are of three sorts:

- repeated steps. They count in no figure of the loader. The last half of them gives the ceiling,
  in two parts. The ceiling is one figure if the parts agree within 5 %, else a range.
- steps after the replay whose batches may have been fetched during it. They count in no figure.
  They end with the first batch that the loop has to wait for. If it waits for none until the end
  of the epoch, although it had waited before the replay, all of them are left out. If it had not
  waited before either, they count: a loader that is fast enough is no limit.
- all others, of which the figures of the loop are.

The loss is ``1 - rate / ceiling``. It is a range where one of the two is a range.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from iobench.watching.rates import AGREE, LoopRate, longest_at_once_s, waits_from
from iobench.watching.replay import WARM_UP_STEPS
from iobench.watching.session import NO_BATCH, UNKNOWN


@dataclass(frozen=True, slots=True)
class Ceiling:
    """Samples/s of the loop on batches that it has: of two parts, and of both together."""

    low: float
    high: float
    mean: float

    @property
    def agrees(self) -> bool:
        """Whether both parts have one rate."""
        return self.high <= AGREE * self.low

    @property
    def metrics(self) -> dict[str, float]:
        """One rate, or the ends of a range."""
        if self.agrees:
            return {"ceiling_samples_per_s": self.mean}
        return {"ceiling_samples_per_s_low": self.low, "ceiling_samples_per_s_high": self.high}


@dataclass(frozen=True, slots=True)
class Replayed:
    """The steps of a loop, without those that its replay disturbs.

    Attributes:
        rows: the steps and ends of epochs that count.
        before: number of rows before the replay; None without one.
        repeated: steps on repeated batches.
        planned: repeated steps that were planned; 0 if the replay did not begin.
        left_out: steps after the replay that do not count.
        ceiling: None if the replay did not end, or samples in a batch are unknown.
        pauses: the moments at which the replay began and at which steps count again.
    """

    rows: pd.DataFrame
    before: int | None = None
    repeated: int = 0
    planned: int = 0
    left_out: int = 0
    ceiling: Ceiling | None = None
    pauses: tuple[tuple[float, float], ...] = ()

    def metrics(self, batches: int) -> dict[str, float]:
        """The ceiling, and how it was measured; empty if the replay did not begin."""
        if not self.planned:
            return {}
        steps = {
            "replay_batches": batches,
            "replay_steps": self.repeated,
            "replay_left_out": self.left_out,
        }
        return {**steps, **(self.ceiling.metrics if self.ceiling is not None else {})}

    def notes(self, batches: int) -> list[str]:
        """What qualifies the ceiling; ``batches`` were to be repeated, 0 without a replay."""
        if not batches:
            return [
                "the rate of the device alone was not measured: that needs iobench.watch(loader, "
                "replay=8), or the same loop on data in its own memory (iobench run, training, "
                "inputs: synthetic)"
            ]
        if not self.planned:
            begins = WARM_UP_STEPS + batches
            return [
                f"the replay did not take place, so the ceiling is unknown: it begins after "
                f"{begins:,} batches of the loader"
            ]
        if self.repeated < self.planned:
            return [
                f"the loop ended during the replay, after {self.repeated:,} of {self.planned:,} "
                "repeated steps, so the ceiling is unknown"
            ]
        counted = self.planned - self.planned // 2
        said = [
            f"{self.planned:,} steps trained on {batches:,} repeated batches; the last "
            f"{counted:,} of them are the ceiling, the rate of the loop without its loader"
        ]
        if self.ceiling is not None and not self.ceiling.agrees:
            said.append(
                "the ceiling is a range, since the repeated steps were not even: a higher "
                "replay_steps gives one rate"
            )
        if self.left_out:
            said.append(
                f"{self.left_out:,} steps after the replay count in no figure: their batches may "
                "have been fetched during the replay"
            )
        return said


def without_replay(rows: pd.DataFrame, marks: pd.DataFrame) -> Replayed:
    """Separate the steps of one loader.

    Args:
        rows: steps and ends of epochs, with ``wait_s``, ``step_s`` and ``elsewhere_s``.
        marks: marks of the replay; empty if there was none. After an interrupt two may be of the
            same number of steps.
    """
    if marks.empty:
        return Replayed(rows)
    marks = marks.sort_values("called_s").drop_duplicates("got_s", keep="last")
    begun_s, planned = float(marks.called_s.iloc[0]), int(marks.ended_s.iloc[0])
    is_complete = int(marks.got_s.iloc[-1]) == planned
    ended_s = float(marks.called_s.iloc[-1]) if is_complete else np.inf
    rows = _since(rows, ended_s)
    of_epoch = rows.epoch == marks.epoch.iloc[0]
    is_batch = rows.samples != NO_BATCH
    is_repeated = of_epoch & is_batch & rows.got_s.between(begun_s, ended_s, inclusive="left")
    is_before = rows.got_s < begun_s
    is_after = of_epoch & ~is_before & ~is_repeated
    is_unsteady = _fetched_during(rows, is_before & is_batch, is_after, is_batch)
    repeated = rows[is_repeated]
    kept = rows[~is_repeated & ~is_unsteady]
    later = kept[kept.got_s >= begun_s]
    resumed_s = float(later.called_s.iloc[0]) if len(later) else float(rows.ended_s.iloc[-1])
    return Replayed(
        rows=kept,
        before=int((kept.got_s < begun_s).sum()),
        repeated=len(repeated),
        planned=planned,
        left_out=int((is_unsteady & is_batch).sum()),
        ceiling=_ceiling(repeated, marks) if is_complete else None,
        pauses=((begun_s, resumed_s),),
    )


def loss_metrics(rate: LoopRate | None, ceiling: Ceiling | None) -> dict[str, float]:
    """The loss, or the ends of its range; empty if the rate or the ceiling is unknown."""
    known = rate.metrics if rate is not None else {}
    if ceiling is None or not known:
        return {}
    if "samples_per_s" in known:
        lowest = highest = known["samples_per_s"]
    else:
        lowest, highest = known["samples_per_s_low"], known["samples_per_s_high"]
    slowest, fastest = ceiling.low, ceiling.high
    if ceiling.agrees:
        slowest = fastest = ceiling.mean
    low, high = 1 - highest / slowest, 1 - lowest / fastest
    return {"loss_share": low} if low == high else {"loss_share_low": low, "loss_share_high": high}


def _since(rows: pd.DataFrame, ended_s: float) -> pd.DataFrame:
    """The rows without the time for which the first request after the replay waited for a GPU."""
    is_across = (rows.called_s < ended_s) & (rows.got_s >= ended_s)
    waited_s = (ended_s - rows.called_s).where(is_across, 0.0)
    return rows.assign(
        called_s=rows.called_s + waited_s,
        wait_s=rows.wait_s - waited_s,
        step_s=rows.step_s - waited_s,
    )


def _fetched_during(
    rows: pd.DataFrame, is_before: pd.Series[bool], is_after: pd.Series[bool], is_batch: Any
) -> pd.Series[bool]:
    """The rows after the replay whose batches may have been fetched during it."""
    before, after = rows[is_before], rows[is_after & is_batch]
    at_once_s = longest_at_once_s(float(before.step_s.iloc[1:].mean()))
    # The first batch of all is waited for by any loop.
    waited = waits_from(before.wait_s.to_numpy()[1:], before.step_s.to_numpy()[1:], at_once_s)
    waits = waits_from(after.wait_s.to_numpy(), after.step_s.to_numpy(), at_once_s)
    if waits is None:
        return is_after & (waited is not None)
    return is_after & (rows.got_s < float(after.got_s.iloc[waits]))


def _ceiling(repeated: pd.DataFrame, marks: pd.DataFrame) -> Ceiling | None:
    """The rate of the last half of the repeated steps, from its marks."""
    if (repeated.samples == UNKNOWN).any():
        return None
    parts = []
    for begin_s, end_s in pairwise(marks.called_s.tolist()[1:]):
        steps = repeated[repeated.got_s.between(begin_s, end_s, inclusive="left")]
        parts.append((float(steps.samples.sum()), end_s - begin_s - float(steps.elsewhere_s.sum())))
    if not parts or any(samples <= 0 or seconds <= 0 for samples, seconds in parts):
        return None
    rates = [samples / seconds for samples, seconds in parts]
    samples, seconds = (sum(values) for values in zip(*parts, strict=True))
    return Ceiling(min(rates), max(rates), samples / seconds)
