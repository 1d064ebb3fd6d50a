"""Read epoch after epoch until the rate is known, by the rules of ``iobench.loops.counted``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count

from dataprep.reading.read_counter import ReadTotals
from iobench.clock import Clock
from iobench.consumers.protocol import Consumer
from iobench.loaders.protocol import Batch
from iobench.loops.counted import (
    BoundedWindow,
    Flow,
    Least,
    Rule,
    SteadyWindow,
    WholeEpoch,
    Window,
    WindowRule,
)
from iobench.loops.drive import EpochTimes, drive
from iobench.trial import GIVE_UP_SHARE


@dataclass(frozen=True, slots=True)
class RatePlan:
    """How the rate of a trial is measured.

    Attributes:
        rule: the rule to begin with. A loop goes on by whole epochs if the first epoch turns out
            to be too short for it.
        flow: how samples flow through the loader.
        least: what the counted steps must reach at least.
        give_up_s: the moment on the loop's clock after which the trial ends by itself.
        epoch_samples: samples of an epoch of this process; None if there is no end.
    """

    rule: Rule
    flow: Flow
    least: Least = field(default_factory=Least)
    give_up_s: float = math.inf
    epoch_samples: int | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """The epochs of a trial, and what of them counts.

    Attributes:
        rule: the rule by which ``windows`` were chosen.
        epochs: every epoch that was read, the last one perhaps in part.
        windows: the part of an epoch that counts, for each epoch that counts.
        counted: the numbers of these epochs.
        bounds: lower and upper bound of the rate in samples/s if they do not agree, else None.
    """

    rule: Rule
    epochs: Sequence[EpochTimes]
    windows: Sequence[Window]
    counted: Sequence[int]
    bounds: tuple[float, float] | None = None


def measure(
    request: Callable[[int], Iterator[Batch]],
    consumer: Consumer,
    clock: Clock,
    plan: RatePlan,
    *,
    arrived: Callable[[], ReadTotals] | None = None,
    full_batch: int | None = None,
    between: Callable[[EpochTimes], object] = lambda times: None,
    progress: Callable[[float], object] = lambda samples: None,
    opening_s: float = 0.0,
) -> Measured:
    """Read epochs until ``plan`` is fulfilled.

    Args:
        request: requests an epoch by its number, from 0.
        consumer: takes the batches.
        clock: of all times. Time between epochs does not count.
        plan: how the rate is measured.
        arrived: what the loader has read so far; None if it does not count.
        full_batch: samples of a batch; smaller ones are dropped. None takes all.
        between: is called after each epoch that another one follows.
        progress: is called after each step with all samples so far.
        opening_s: seconds that making the loader took; they belong to the first epoch.

    Raises:
        TrialFailed: no rate can be given in time; the message says what is missing.
    """
    state = _State(plan, arrived, clock.now_s() - opening_s)
    taken = 0
    for number in count():
        window_rule = state.next_rule()
        times = drive(
            partial(request, number),
            consumer,
            clock,
            window_rule,
            arrived=arrived,
            full_batch=full_batch,
            progress=lambda samples, before=taken: progress(before + samples),  # type: ignore[misc]
        )
        if not number and opening_s:
            times = _opened_before(times, opening_s)
        taken += times.whole.samples
        if state.is_done_after(times, window_rule):
            return state.measured()
        between(times)
    raise AssertionError("count() has no end")


class _State:
    """The epochs that were read so far, and the rule that is followed."""

    def __init__(
        self, plan: RatePlan, arrived: Callable[[], ReadTotals] | None, started_s: float
    ) -> None:
        self._plan, self._arrived, self._started_s = plan, arrived, started_s
        self._rule = plan.rule
        self._epochs: list[EpochTimes] = []
        self._windows: list[Window] = []
        self._bounds: tuple[float, float] | None = None

    def next_rule(self) -> WindowRule:
        """The rule for the steps of the next epoch."""
        plan, missing = self._plan, self._plan.least
        if self._rule == "steady" and self._arrived is not None:
            for window in self._windows:
                missing = missing.less(window)
            is_known = bool(self._windows)
            return SteadyWindow(
                self._arrived, plan.flow, missing, plan.give_up_s, is_known=is_known
            )
        if self._rule == "bounds":
            return BoundedWindow(plan.flow, missing, plan.give_up_s)
        if len(self._epochs) >= plan.least.epochs:
            return WholeEpoch(plan.give_up_s)
        return WholeEpoch(plan.give_up_s, self._late)

    def is_done_after(self, times: EpochTimes, window_rule: WindowRule) -> bool:
        """Take one more epoch, and decide whether the rate is known."""
        if self._rule == "epochs" and not times.is_over:
            return True  # Time is up, and the epochs before this one are enough.
        self._epochs.append(times)
        if self._rule == "steady":
            if times.window is not None:
                self._windows.append(times.window)
            if self._windows:
                is_stopped = times.window is None or not times.is_over
                return is_stopped or self._plan.least.is_reached(self._windows)
        elif self._rule == "bounds" and not times.is_over:
            assert isinstance(window_rule, BoundedWindow)  # noqa: S101  see next_rule
            self._windows = [times.window] if times.window is not None else []
            self._bounds = None if window_rule.agree else window_rule.bounds
            return True
        self._rule = "epochs"  # The epoch was too short for another rule.
        whole = [epoch.whole for epoch in self._epochs]
        return len(whole) >= self._plan.least.epochs and self._plan.least.is_reached(whole)

    def measured(self) -> Measured:
        """What counts of the epochs that were read."""
        if self._rule == "epochs":
            whole = [epoch.whole for epoch in self._epochs]
            return Measured("epochs", self._epochs, whole, range(len(whole)))
        counted = [
            number for number, epoch in enumerate(self._epochs) if epoch.window in self._windows
        ]
        return Measured(self._rule, self._epochs, self._windows, counted, self._bounds)

    def _late(self, samples: int, now_s: float) -> str:
        samples_before = sum(epoch.whole.samples for epoch in self._epochs)
        spent_s = now_s - self._started_s
        done = len(self._epochs)
        epoch_samples = samples_before / done if done else self._plan.epoch_samples
        read = samples_before + samples
        return _late(self._plan.least.epochs, done, epoch_samples, read, spent_s)


def _late(
    least_epochs: int, done: int, epoch_samples: float | None, read: int, spent_s: float
) -> str:
    """The reason why whole epochs were not enough in time.

    ``epoch_samples`` is None if the first epoch is not over and its length is unknown.
    """
    if epoch_samples is None:
        return (
            f"the first epoch did not end within {spent_s:,.0f} s and {read:,} samples, and "
            f"{least_epochs} whole epochs are needed: set a longer trial_timeout_s, or take fewer "
            "images"
        )
    wanted_s = spent_s * least_epochs * epoch_samples / max(read, 1)
    return (
        f"{done} of {least_epochs} whole epochs of {epoch_samples:,.0f} samples were read in "
        f"{spent_s:,.0f} s: about {wanted_s:,.0f} s are needed; set trial_timeout_s to "
        f"{math.ceil(wanted_s / GIVE_UP_SHARE):,} or more, or take fewer images"
    )


def _opened_before(times: EpochTimes, opening_s: float) -> EpochTimes:
    """The same epoch, requested ``opening_s`` earlier: its loader was made just for it."""
    start = replace(times.whole.start, time_s=times.whole.start.time_s - opening_s)
    return replace(
        times,
        whole=Window(start, times.whole.end),
        time_to_first_batch_s=times.time_to_first_batch_s + opening_s,
    )
