"""The rate of a watched loop: one figure where two bounds agree, else a range, or unknown.

A loader may fetch batches ahead, so that a loop takes them faster than the loader can go on. Two
figures enclose the steady rate:

- the lower bound: all samples since the first request, divided by the time since then. Nothing
  that the loop has taken was fetched before that time began.
- the upper bound: the samples and the time of the steps after the batches that were ready early.
  What is ready at the begin of this window makes it too fast, never too slow.

Three whole epochs or more, with their starts, enclose the rate as well: all of them, and those
after the first, which alone has the cost of a first start. Nothing is fetched across epochs, unless
the next epoch comes at once.

The lower bound fails where batches were ready before the first request, because a queue was full
by then. Such batches come at once. They are taken out of the lower bound: all batches from the
first one on that came at once, at most the first epoch. If the bounds do not agree without them,
the rate is unknown. For the same reason the time between two steps that belongs to no step (other
loops, validation, checkpoints) counts in the lower bound if the batch after it came at once. The
time of a replay is such a time: batches may have been fetched in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from iobench.watching.session import NO_BATCH
from iobench.words import number_words

Array: TypeAlias = np.ndarray[Any, Any]

AGREE = 1.05
"""The upper bound may be so many times the lower one for both to be one rate."""
AT_ONCE_S, AT_ONCE_SHARE = 0.005, 0.05
"""A batch came at once if the loop waited for it less than the longer of these: seconds, and a
share of the mean step. Handing over a batch that is ready takes some time too."""
FEWEST_STEPS = 20
"""The fewest steps in the window of the upper bound, unless the loop has fewer."""
FEWEST_EPOCHS = 3
_NEXT_STEPS = 10
MOST_READY = 1_000
"""No queue is taken to hold more batches than these before the first request."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Samples/s between which the steady rate lies, and how they were found."""

    low: float
    high: float
    rule: Literal["epochs", "bounds"]

    @property
    def agree(self) -> bool:
        """Whether they are one rate."""
        return self.low > 0 and max(self.low, self.high) <= AGREE * min(self.low, self.high)


@dataclass(frozen=True, slots=True)
class LoopRate:
    """The rate of a loop. ``ready`` batches may have been ready before the first request."""

    bounds: Bounds
    ready: int

    @property
    def metrics(self) -> dict[str, Any]:
        """One rate with its rule, or the ends of a range; empty if the rate is unknown."""
        bounds = self.bounds
        if bounds.agree:
            return {"samples_per_s": bounds.high, "rate_rule": bounds.rule}
        if self.ready or bounds.low <= 0:
            return {}
        low, high = sorted((bounds.low, bounds.high))
        return {"samples_per_s_low": low, "samples_per_s_high": high}

    @property
    def note(self) -> str:
        """Why there is no single rate; empty if there is one."""
        more = f"more steps, or {FEWEST_EPOCHS} whole epochs, give one rate"
        bounds = self.bounds
        if bounds.agree:
            return ""
        if self.metrics:
            return (
                f"the rate is a range: {number_words(bounds.low)} samples/s since the first "
                f"request, {number_words(bounds.high)} without the start and the batches that were "
                f"ready early; {more}"
            )
        return (
            f"the rate is unknown: the first {self.ready:,} batches came at once, so they may have "
            f"been ready before the first request; it is at most {number_words(bounds.high)} "
            f"samples/s; {more} if the loop waits for some of their batches"
        )


def loop_rate(rows: pd.DataFrame, before_replay: int | None = None) -> LoopRate | None:
    """The rate over the rows of one loader, which begin with its first batch.

    A row is a step, or the end of an epoch: ``epoch``, ``called_s``, ``samples``, ``wait_s`` and
    ``step_s``. Of a loop with a replay, its repeated steps are no rows, and ``before_replay`` rows
    come before them. None if the steps took no time.
    """
    steps = _Steps(rows)
    bounds = _by_epochs(steps) or _by_steps(steps, before_replay)
    return LoopRate(bounds, steps.ready) if bounds.high > 0 else None


def waits_from(wait_s: Array, step_s: Array, at_once_s: float) -> int | None:
    """The number of the first batch from which on the loop waits; None if there is none.

    It waits from a batch on if this batch did not come at once, the steps from there on wait for a
    share of their time, and the next steps wait at least half as long as all later ones do on
    average. One late batch among many that were ready is no end of a burst.
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


def longest_at_once_s(mean_step_s: float) -> float:
    """The longest wait for a batch that came at once."""
    return max(AT_ONCE_S, AT_ONCE_SHARE * mean_step_s)


class _Steps:
    """Rows as arrays. The end of an epoch is a row without samples."""

    def __init__(self, rows: pd.DataFrame) -> None:
        self.epoch = rows.epoch.to_numpy()
        self.is_batch = rows.samples.to_numpy() != NO_BATCH
        self.samples = np.where(self.is_batch, rows.samples.to_numpy(), 0.0)
        self.step_s = rows.step_s.to_numpy()
        wait_s, step_s = rows.wait_s.to_numpy(), self.step_s
        batches = int(self.is_batch.sum())
        mean_step_s = step_s[1:].sum() / max(1, batches - 1)
        at_once_s = longest_at_once_s(mean_step_s)
        self.at_once = self.is_batch & (wait_s < at_once_s)
        self.between_s = _between(rows.called_s.to_numpy(), step_s, self.is_batch)
        first_epoch = self.is_batch & (self.epoch == self.epoch[0])
        self.burst = _burst(wait_s[first_epoch], step_s[first_epoch], at_once_s)
        """Batches of the first epoch before the first one, after the very first, that was waited
        for; None if there is none."""
        ready = int(first_epoch.sum()) if self.burst is None else self.burst
        self.ready = min(ready, MOST_READY) if self.at_once[0] else 0
        self.ready_samples = float(self.samples[: self.ready].sum())

    def low(self, chosen: Array) -> float:
        """Samples of the chosen rows that cannot have been ready, by all their time."""
        samples = self.samples[chosen].sum() - self.ready_samples
        seconds = self.step_s[chosen].sum() + self.between_s[chosen & self.at_once].sum()
        return float(samples / seconds) if seconds > 0 else 0.0

    def high(self, chosen: Array) -> float:
        """Samples of the chosen rows by the time of their steps."""
        seconds = self.step_s[chosen].sum()
        return float(self.samples[chosen].sum() / seconds) if seconds > 0 else 0.0


def _by_epochs(steps: _Steps) -> Bounds | None:
    """All whole epochs, and those after the first; None if there are too few of them."""
    ended = steps.epoch[~steps.is_batch]
    with_batches = steps.epoch[steps.is_batch]
    whole = np.intersect1d(ended, with_batches)
    if len(whole) < FEWEST_EPOCHS:
        return None
    low = steps.low(np.isin(steps.epoch, whole))
    return Bounds(low, steps.high(np.isin(steps.epoch, whole[1:])), "epochs")


def _by_steps(steps: _Steps, before_replay: int | None) -> Bounds:
    """All steps, and those after the batches that were ready early, or after the first step.

    The steps before a replay have a lower bound of their own. It is the better one where the loop
    waits for no batch afterwards, so that the time of the replay counts in the bound of all steps.
    """
    number = np.arange(len(steps.epoch))
    window = number > (steps.burst or 0)
    if (window & steps.is_batch).sum() < FEWEST_STEPS:
        window = number > 0
    low = steps.low(number >= 0)
    if before_replay is not None:
        low = max(low, steps.low(number < before_replay))
    return Bounds(low, steps.high(window), "bounds")


def _between(called_s: Array, step_s: Array, is_batch: Array) -> Array:
    """Seconds before each batch, since the request for the batch before it, that are no step's."""
    between_s = np.zeros(len(called_s))
    at = np.flatnonzero(is_batch)
    begun_s = np.concatenate([[0.0], np.cumsum(step_s)])[at]  # in the time of steps alone
    between_s[at[1:]] = np.maximum(0.0, np.diff(called_s[at]) - np.diff(begun_s))
    return between_s


def _burst(wait_s: Array, step_s: Array, at_once_s: float) -> int | None:
    """The number of the first batch, from the second on, from which on the loop waits."""
    later = waits_from(wait_s[1:], step_s[1:], at_once_s)
    return None if later is None else later + 1
