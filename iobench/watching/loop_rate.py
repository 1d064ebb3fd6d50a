"""The rate of a watched loop. It is one rate if two bounds agree, otherwise a range or unknown.

A loader may fetch batches in advance. While a loop takes these batches, it is faster than the
loader. Two bounds enclose the steady rate:

- The lower bound is the number of all samples since the first request, divided by the time since
  this request.
- The upper bound is the rate of the later steps, after the batches that were ready early. Batches
  that are ready when these steps begin can make this bound too high, but never too low.

With three or more whole epochs, another pair of bounds is used:

- The lower bound is the rate of all whole epochs, with their starts.
- The upper bound is the rate of the whole epochs after the first one, because the first epoch has
  the cost of the first start.

The lower bound would be too high if batches were fetched before the first request, for example
because a queue was full by then. Such batches *come at once*: the loop waits for them only a few
milliseconds. Therefore the first batches of the loop, as long as they come at once, are not counted
in the lower bound. Only batches of the first epoch are left out in this way, since loaders usually
fetch no batch of the next epoch. If the bounds do not agree after that, the rate is unknown.

A loop also spends time between two steps, for validation, checkpoints or a replay. This time counts
in the lower bound if the next batch comes at once, because the loader may have fetched the batch in
this time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from iobench.results.numbers import precise_number
from iobench.watching.session import END_OF_EPOCH

Array: TypeAlias = np.ndarray[Any, Any]

MAX_QUOTIENT = 1.05
"""Two bounds agree if their quotient is at most this."""
AT_ONCE_S = 0.005
"""A batch came at once if the loop waited for it less than this many seconds. Handing over a batch
takes some time, even if the batch is ready."""
AT_ONCE_SHARE = 0.05
"""A batch also came at once if the loop waited for it less than this share of the mean step."""
MIN_STEPS = 20
"""The smallest number of steps for the upper bound. If fewer steps are left, all steps except the
first are used."""
MIN_EPOCHS = 3
"""The smallest number of whole epochs for bounds from whole epochs."""
_NEXT_STEPS = 10
"""The number of steps over which ``first_waiting_batch`` takes the mean of the next waits."""
MAX_READY_BATCHES = 1_000
"""The largest number of batches that are assumed to be ready before the first request."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The two rates between which the steady rate lies.

    Attributes:
        low: the lower bound in samples/s. It can be above ``high``.
        high: the upper bound in samples/s.
        rule: whether the bounds come from whole epochs (``epochs``) or from steps (``bounds``).
    """

    low: float
    high: float
    rule: Literal["epochs", "bounds"]

    @property
    def agree(self) -> bool:
        """Whether the bounds are positive and close enough to count as one rate."""
        return self.low > 0 and max(self.low, self.high) <= MAX_QUOTIENT * min(self.low, self.high)


@dataclass(frozen=True, slots=True)
class LoopRate:
    """The rate of a loop.

    Attributes:
        bounds: the two bounds of the rate.
        ready: the number of batches that may have been ready before the first request.
    """

    bounds: Bounds
    ready: int

    @property
    def ends(self) -> tuple[float, float] | None:
        """The ends of the range of the rate; None if the rate is unknown.

        If the bounds agree, both ends are the upper bound. If they do not agree, and batches may
        have been ready before the first request, the rate is unknown.
        """
        bounds = self.bounds
        if bounds.agree:
            return bounds.high, bounds.high
        if self.ready or bounds.low <= 0:
            return None
        return min(bounds.low, bounds.high), max(bounds.low, bounds.high)

    @property
    def metrics(self) -> dict[str, float | str]:
        """One rate and its rule, or the ends of a range; empty if the rate is unknown."""
        if self.ends is None:
            return {}
        low, high = self.ends
        if self.bounds.agree:
            return {"samples_per_s": high, "rate_rule": self.bounds.rule}
        return {"samples_per_s_low": low, "samples_per_s_high": high}

    @property
    def note(self) -> str:
        """The reason why there is no single rate; empty if there is one."""
        bounds = self.bounds
        if bounds.agree:
            return ""
        remedy = f"more steps, or {MIN_EPOCHS} whole epochs, give one rate"
        if self.ends is not None:
            return (
                f"the rate is a range: {precise_number(bounds.low)} samples/s since the first "
                f"request, {precise_number(bounds.high)} without the start and the batches that "
                f"were ready early; {remedy}"
            )
        return (
            f"the rate is unknown: the first {self.ready:,} batches came at once, so they may have "
            f"been ready before the first request; it is at most {precise_number(bounds.high)} "
            f"samples/s; {remedy} if the loop waits for some of their batches"
        )


def loop_rate(rows: pd.DataFrame, before_replay: int | None = None) -> LoopRate | None:
    """The rate of the loop over one loader; None if its steps have no samples or took no time.

    Args:
        rows: steps and ends of epochs in order, from the first batch on, without repeated steps.
            The columns are ``epoch``, ``called_s``, ``samples``, ``wait_s`` and ``step_s``.
        before_replay: the number of rows before the replay; None if there was no replay.
    """
    steps = _Steps(rows)
    bounds = _by_epochs(steps) or _by_steps(steps, before_replay)
    return LoopRate(bounds, steps.ready) if bounds.high > 0 else None


def first_waiting_batch(wait_s: Array, step_s: Array, at_once_s: float) -> int | None:
    """The first batch from which on the loop waits for its loader; None if it never waits.

    This is the first batch that meets three conditions:

    - It did not come at once.
    - From this batch on, the loop spends at least ``AT_ONCE_SHARE`` of its time waiting.
    - The mean wait of the next ``_NEXT_STEPS`` steps is at least half of the mean wait of all later
      steps. A single late batch among batches that were ready does not meet this condition.

    Args:
        wait_s: how long the loop waited for each batch.
        step_s: how long each step took, including the wait.
        at_once_s: the longest wait for a batch that came at once.

    Returns:
        The number of the batch, from 0.
    """
    number = np.arange(len(wait_s))
    next_end = np.minimum(number + _NEXT_STEPS, len(wait_s))
    wait_before_s = np.concatenate([[0.0], np.cumsum(wait_s)])
    later_wait_s = wait_before_s[-1] - wait_before_s[:-1]
    later_step_s = np.cumsum(step_s[::-1])[::-1]
    next_mean_s = (wait_before_s[next_end] - wait_before_s[number]) / (next_end - number)
    later_mean_s = later_wait_s / (len(wait_s) - number)
    came_late = wait_s >= at_once_s
    is_waiting = later_wait_s >= AT_ONCE_SHARE * later_step_s
    is_lasting = next_mean_s >= later_mean_s / 2
    numbers = np.flatnonzero(came_late & is_waiting & is_lasting)
    return int(numbers[0]) if len(numbers) else None


def max_at_once_s(mean_step_s: float) -> float:
    """The longest wait for a batch that came at once, in a loop with this mean step."""
    return max(AT_ONCE_S, AT_ONCE_SHARE * mean_step_s)


class _Steps:
    """The rows of a loop as arrays. The end of an epoch is a row without samples."""

    def __init__(self, rows: pd.DataFrame) -> None:
        """Compute the arrays.

        Args:
            rows: the argument of ``loop_rate``.
        """
        self.epoch = rows.epoch.to_numpy()
        self.is_batch = rows.samples.to_numpy() != END_OF_EPOCH
        self.samples = np.where(self.is_batch, rows.samples.to_numpy(), 0.0)
        self.step_s = rows.step_s.to_numpy()
        wait_s, step_s = rows.wait_s.to_numpy(), self.step_s
        batches = int(self.is_batch.sum())
        mean_step_s = step_s[1:].sum() / max(1, batches - 1)
        at_once_s = max_at_once_s(mean_step_s)
        self.at_once = self.is_batch & (wait_s < at_once_s)
        """Whether each row is a batch that came at once."""
        self.between_s = _time_between_steps(rows.called_s.to_numpy(), step_s, self.is_batch)
        """For each batch, the seconds since the previous request that belong to no step."""
        is_first_epoch = self.is_batch & (self.epoch == self.epoch[0])
        self.early_batches = _early_batches(
            wait_s[is_first_epoch], step_s[is_first_epoch], at_once_s
        )
        """The number of batches of the first epoch before the loop begins to wait for batches.

        The wait for the first batch is ignored. None if the loop never waits."""
        self.ready = 0
        """The number of batches that may have been ready before the first request."""
        if self.at_once[0]:
            early_batches = self.early_batches
            if early_batches is None:
                early_batches = int(is_first_epoch.sum())
            self.ready = min(early_batches, MAX_READY_BATCHES)
        self.was_ready = np.arange(len(step_s)) < self.ready
        """Whether each row is a batch that may have been ready before the first request."""

    def low(self, is_chosen: Array) -> float:
        """The lower bound over the chosen rows.

        It is the number of samples that were not ready before the first request, divided by the
        time of the steps and the time between steps that counts.
        """
        samples = self.samples[is_chosen & ~self.was_ready].sum()
        seconds = self.step_s[is_chosen].sum() + self.between_s[is_chosen & self.at_once].sum()
        return float(samples / seconds) if seconds > 0 else 0.0

    def high(self, is_chosen: Array) -> float:
        """The upper bound over the chosen rows: their samples, divided by the time of the steps."""
        seconds = self.step_s[is_chosen].sum()
        return float(self.samples[is_chosen].sum() / seconds) if seconds > 0 else 0.0


def _by_epochs(steps: _Steps) -> Bounds | None:
    """The bounds from whole epochs; None if there are too few of them."""
    ended_epochs = steps.epoch[~steps.is_batch]
    epochs_with_batches = steps.epoch[steps.is_batch]
    whole_epochs = np.intersect1d(ended_epochs, epochs_with_batches)
    if len(whole_epochs) < MIN_EPOCHS:
        return None
    low = steps.low(np.isin(steps.epoch, whole_epochs))
    high = steps.high(np.isin(steps.epoch, whole_epochs[1:]))
    return Bounds(low, high, "epochs")


def _by_steps(steps: _Steps, before_replay: int | None) -> Bounds:
    """The bounds from all steps and from the steps after the batches that were ready early.

    If too few steps follow these batches, the upper bound is the bound of all steps but the first.

    With a replay there are two lower bounds, from all steps and from the steps before the replay,
    and the higher bound counts. If the loop waits for no batch after the replay, the time of the
    replay counts in the bound of all steps, and makes it too low.
    """
    number = np.arange(len(steps.epoch))
    is_later = number > (steps.early_batches or 0)
    if (is_later & steps.is_batch).sum() < MIN_STEPS:
        is_later = number > 0
    low = steps.low(number >= 0)
    if before_replay is not None:
        low = max(low, steps.low(number < before_replay))
    return Bounds(low, steps.high(is_later), "bounds")


def _time_between_steps(called_s: Array, step_s: Array, is_batch: Array) -> Array:
    """For each batch, the seconds since the previous request that belong to no step."""
    between_s = np.zeros(len(called_s))
    batch_rows = np.flatnonzero(is_batch)
    step_time_before_s = np.concatenate([[0.0], np.cumsum(step_s)])[batch_rows]
    elapsed_s = np.diff(called_s[batch_rows])
    in_steps_s = np.diff(step_time_before_s)
    between_s[batch_rows[1:]] = np.maximum(0.0, elapsed_s - in_steps_s)
    return between_s


def _early_batches(wait_s: Array, step_s: Array, at_once_s: float) -> int | None:
    """The number of batches before the loop begins to wait; None if it never waits.

    The wait for the first batch is ignored.
    """
    after_first = first_waiting_batch(wait_s[1:], step_s[1:], at_once_s)
    return None if after_first is None else after_first + 1
