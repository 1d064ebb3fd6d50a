"""The rate of a watched loop: one figure if two bounds agree, otherwise a range, or unknown.

A loader may fetch batches ahead. While a loop takes these batches, it is faster than the loader can
sustain. Two bounds enclose the steady rate:

- The lower bound is the number of all samples since the first request, divided by the time since
  then. Usually no batch was fetched before the first request, so that this bound is not too high.
- The upper bound is the rate of the steps after the batches that were ready early. Batches that are
  ready when these steps begin make this bound too high, never too low.

With three or more whole epochs there is another pair of bounds. The lower one is the rate of all
whole epochs, with their starts. The upper one is the rate of the whole epochs after the first,
because only the first epoch has the cost of the first start. Usually no batch is fetched for the
next epoch; if one is, it comes at once.

The lower bound is too high if batches were ready before the first request, because a queue was full
by then. Such batches come at once. Therefore the leading batches that came at once, at most those
of the first epoch, are taken out of the lower bound. If the bounds do not agree without them, the
rate is unknown.

Time between two steps that belongs to no step (other loops, validation, checkpoints, a replay)
counts in the lower bound if the batch after it came at once, because the batch may have been
fetched in this time.
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
"""A batch came at once if the loop waited for it less than this many seconds. It takes some time to
hand over a batch, even if the batch is ready."""
AT_ONCE_SHARE = 0.05
"""A batch also came at once if the loop waited for it less than this share of the mean step."""
MIN_STEPS = 20
"""The fewest steps that give the upper bound, unless the loop has fewer."""
MIN_EPOCHS = 3
"""The fewest whole epochs that give bounds of their own."""
_NEXT_STEPS = 10
"""A loop waits from a batch on if it also waits for its share in this many steps from there."""
MAX_READY_BATCHES = 1_000
"""Assume that no queue holds more batches than this before the first request."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The two rates between which the steady rate lies, in samples/s.

    ``rule`` says whether they come from whole epochs (``epochs``) or from steps (``bounds``).
    """

    low: float
    high: float
    rule: Literal["epochs", "bounds"]

    @property
    def agree(self) -> bool:
        """Whether the bounds are close enough to be one rate."""
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
    def metrics(self) -> dict[str, Any]:
        """One rate and its rule, or the ends of a range; empty if the rate is unknown."""
        bounds = self.bounds
        if bounds.agree:
            return {"samples_per_s": bounds.high, "rate_rule": bounds.rule}
        if self.ready or bounds.low <= 0:
            return {}
        low, high = sorted((bounds.low, bounds.high))
        return {"samples_per_s_low": low, "samples_per_s_high": high}

    @property
    def note(self) -> str:
        """Why there is no single rate; empty if there is a single rate."""
        remedy = f"more steps, or {MIN_EPOCHS} whole epochs, give one rate"
        bounds = self.bounds
        if bounds.agree:
            return ""
        if self.metrics:
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
    """The rate of the loop over one loader; None if the steps took no time.

    Args:
        rows: steps and ends of epochs in order, from the first batch on, without repeated steps.
            The columns are ``epoch``, ``called_s``, ``samples``, ``wait_s`` and ``step_s``.
        before_replay: the number of rows before the replay; None if there was no replay.
    """
    steps = _Steps(rows)
    bounds = _by_epochs(steps) or _by_steps(steps, before_replay)
    return LoopRate(bounds, steps.ready) if bounds.high > 0 else None


def first_waiting_batch(wait_s: Array, step_s: Array, at_once_s: float) -> int | None:
    """The number of the batch from which on the loop waits for its loader; None if it never does.

    It is the first batch that meets three conditions:

    - It did not come at once.
    - From this batch on, the loop spends at least ``AT_ONCE_SHARE`` of its time waiting.
    - The mean wait of the next ``_NEXT_STEPS`` steps is at least half of the mean wait of all later
      steps. A single late batch among batches that were ready does not meet this condition.

    Args:
        wait_s: how long the loop waited for each batch.
        step_s: how long each step took, with the wait.
        at_once_s: the longest wait for a batch that came at once.
    """
    number = np.arange(len(wait_s))
    end = np.minimum(number + _NEXT_STEPS, len(wait_s))
    until_s = np.concatenate([[0.0], np.cumsum(wait_s)])
    later_wait_s = until_s[-1] - until_s[:-1]
    later_step_s = np.cumsum(step_s[::-1])[::-1]
    next_mean_s = (until_s[end] - until_s[number]) / (end - number)
    later_mean_s = later_wait_s / (len(wait_s) - number)
    waits = (wait_s >= at_once_s) & (later_wait_s >= AT_ONCE_SHARE * later_step_s)
    numbers = np.flatnonzero(waits & (next_mean_s >= later_mean_s / 2))
    return int(numbers[0]) if len(numbers) else None


def max_at_once_s(mean_step_s: float) -> float:
    """The longest wait for a batch that came at once, in a loop with this mean step."""
    return max(AT_ONCE_S, AT_ONCE_SHARE * mean_step_s)


class _Steps:
    """Rows as arrays. The end of an epoch is a row without samples."""

    def __init__(self, rows: pd.DataFrame) -> None:
        self.epoch = rows.epoch.to_numpy()
        self.is_batch = rows.samples.to_numpy() != END_OF_EPOCH
        self.samples = np.where(self.is_batch, rows.samples.to_numpy(), 0.0)
        self.step_s = rows.step_s.to_numpy()
        wait_s, step_s = rows.wait_s.to_numpy(), self.step_s
        batches = int(self.is_batch.sum())
        mean_step_s = step_s[1:].sum() / max(1, batches - 1)
        at_once_s = max_at_once_s(mean_step_s)
        self.at_once = self.is_batch & (wait_s < at_once_s)
        self.between_s = _between(rows.called_s.to_numpy(), step_s, self.is_batch)
        first_epoch = self.is_batch & (self.epoch == self.epoch[0])
        self.burst = _burst(wait_s[first_epoch], step_s[first_epoch], at_once_s)
        """Batches of the first epoch before the loop waits, not counting the wait for the very
        first batch; None if the loop never waits."""
        ready = int(first_epoch.sum()) if self.burst is None else self.burst
        self.ready = min(ready, MAX_READY_BATCHES) if self.at_once[0] else 0
        self.was_ready = np.arange(len(step_s)) < self.ready

    def low(self, chosen: Array) -> float:
        """Lower bound over the chosen rows: samples without the ready ones, divided by all time."""
        samples = self.samples[chosen & ~self.was_ready].sum()
        seconds = self.step_s[chosen].sum() + self.between_s[chosen & self.at_once].sum()
        return float(samples / seconds) if seconds > 0 else 0.0

    def high(self, chosen: Array) -> float:
        """Upper bound over the chosen rows: all samples, divided by the time of the steps."""
        seconds = self.step_s[chosen].sum()
        return float(self.samples[chosen].sum() / seconds) if seconds > 0 else 0.0


def _by_epochs(steps: _Steps) -> Bounds | None:
    """The bounds from whole epochs; None if there are too few of them."""
    ended = steps.epoch[~steps.is_batch]
    with_batches = steps.epoch[steps.is_batch]
    whole_epochs = np.intersect1d(ended, with_batches)
    if len(whole_epochs) < MIN_EPOCHS:
        return None
    low = steps.low(np.isin(steps.epoch, whole_epochs))
    return Bounds(low, steps.high(np.isin(steps.epoch, whole_epochs[1:])), "epochs")


def _by_steps(steps: _Steps, before_replay: int | None) -> Bounds:
    """The bounds from all steps and from the steps after the batches that were ready early.

    If too few steps follow these batches, the upper bound is that of all steps but the first. The
    steps before a replay give a second lower bound, and the higher of the two counts. The second is
    higher if the loop waits for no batch after the replay, because then the time of the replay
    counts in the bound of all steps.
    """
    number = np.arange(len(steps.epoch))
    window = number > (steps.burst or 0)
    if (window & steps.is_batch).sum() < MIN_STEPS:
        window = number > 0
    low = steps.low(number >= 0)
    if before_replay is not None:
        low = max(low, steps.low(number < before_replay))
    return Bounds(low, steps.high(window), "bounds")


def _between(called_s: Array, step_s: Array, is_batch: Array) -> Array:
    """Seconds that belong to no step, between the requests for the batch before and this batch."""
    between_s = np.zeros(len(called_s))
    batch_rows = np.flatnonzero(is_batch)
    step_time_before_s = np.concatenate([[0.0], np.cumsum(step_s)])[batch_rows]
    elapsed_s, stepping_s = np.diff(called_s[batch_rows]), np.diff(step_time_before_s)
    between_s[batch_rows[1:]] = np.maximum(0.0, elapsed_s - stepping_s)
    return between_s


def _burst(wait_s: Array, step_s: Array, at_once_s: float) -> int | None:
    """The number of the batch from which on the loop waits; the wait for the first is ignored."""
    after_first = first_waiting_batch(wait_s[1:], step_s[1:], at_once_s)
    return None if after_first is None else after_first + 1
