"""Read epochs until the rate is known, by the rules of ``iobench.trials.window_rules``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count

from dataprep.reading.read_counter import ReadTotals
from iobench.clock import Clock
from iobench.consumers.protocol import Consumer
from iobench.loaders.protocol import Batch
from iobench.results.trial import GIVE_UP_SHARE
from iobench.trials.epoch_loop import EpochTimings, run_epoch
from iobench.trials.loop_timings import LoopTimings, window_timings
from iobench.trials.rate_plan import RatePlan
from iobench.trials.window import Window
from iobench.trials.window_rules import (
    BoundedWindow,
    RateRule,
    SteadyWindow,
    WholeEpoch,
    WindowRule,
)


@dataclass(frozen=True, slots=True)
class RateMeasurement:
    """The epochs of a trial, and the steps of them that count for the rate.

    Attributes:
        rule: the rule by which ``windows`` were chosen.
        epochs: the epochs that were read. If whole epochs count, a last epoch that was read only in
            part is left out; with the other rules it is included.
        windows: for each counted epoch, its counted steps.
        counted_numbers: the numbers of the counted epochs, from 0.
        bounds: the lower and the upper bound of the rate in samples/s; None if they agree, or if
            another rule was used.
    """

    rule: RateRule
    epochs: Sequence[EpochTimings]
    windows: Sequence[Window]
    counted_numbers: Sequence[int]
    bounds: tuple[float, float] | None = None

    def counted_timings(self) -> list[LoopTimings]:
        """The timings of the counted steps, for each counted epoch."""
        timings = []
        for number, window in zip(self.counted_numbers, self.windows, strict=True):
            timings.append(window_timings(self.epochs[number], window))
        return timings


def measure_rate(
    request: Callable[[int], Iterator[Batch]],
    consumer: Consumer,
    clock: Clock,
    plan: RatePlan,
    *,
    read_totals: Callable[[], ReadTotals] | None = None,
    full_batch: int | None = None,
    between_epochs: Callable[[EpochTimings], object] = lambda timings: None,
    progress: Callable[[float], object] = lambda samples: None,
    opening_s: float = 0.0,
) -> RateMeasurement:
    """Read epochs until the rate is known as ``plan`` requires.

    Args:
        request: requests an epoch. Its argument is the number of the epoch, from 0.
        consumer: takes the batches.
        clock: the clock of all times. Time between epochs does not count.
        plan: how the rate is measured.
        read_totals: returns what the loader has read so far; None if it does not count its reads.
        full_batch: samples of a full batch. Smaller batches are dropped. None takes all batches.
        between_epochs: is called after each epoch that is followed by another epoch.
        progress: is called after each step with the number of samples so far.
        opening_s: seconds that creating the loader took. They belong to the first epoch.

    Raises:
        TrialFailed: no full batch came, a batch was larger than a full batch, or no rate can be
            given in time; the message says what to change.
    """
    search = _RateSearch(plan, read_totals, clock.now_s() - opening_s)
    earlier_samples = 0
    for number in count():
        window_rule = search.next_window_rule()
        timings = run_epoch(
            partial(request, number),
            consumer,
            clock,
            window_rule,
            read_totals=read_totals,
            full_batch=full_batch,
            progress=partial(_add_progress, progress, earlier_samples),
        )
        if number == 0 and opening_s:
            timings = _with_opening_time(timings, opening_s)
        earlier_samples += timings.all_steps.samples
        search.add_epoch(timings, window_rule)
        if search.is_done:
            return search.measurement()
        between_epochs(timings)
    raise AssertionError("count() has no end")


def _add_progress(
    progress: Callable[[float], object], earlier_samples: int, samples: float
) -> None:
    """Report the samples of all epochs so far."""
    progress(earlier_samples + samples)


class _RateSearch:
    """The epochs that were read so far, the rule that applies now, and whether to stop.

    Args:
        plan: how the rate is measured.
        read_totals: returns what the loader has read so far; None if it does not count its reads.
        started_s: the moment when the first epoch was requested, or when its loader was opened.
    """

    def __init__(
        self, plan: RatePlan, read_totals: Callable[[], ReadTotals] | None, started_s: float
    ) -> None:
        self._plan, self._read_totals, self._started_s = plan, read_totals, started_s
        self.is_done = False
        """Whether no further epoch is to be read: the rate is known, or the time limit is near."""
        self._rate_rule = plan.rule
        self._epochs: list[EpochTimings] = []
        self._windows: list[Window] = []
        self._counted_numbers: list[int] = []
        self._bounds: tuple[float, float] | None = None

    def next_window_rule(self) -> WindowRule:
        """The rule that chooses the counted steps of the next epoch."""
        plan = self._plan
        if self._rate_rule == "steady":
            # ``choose_rule`` gives this rule only to loaders that count their reads.
            assert self._read_totals is not None  # noqa: S101
            minimum = plan.minimum
            for window in self._windows:
                minimum = minimum.remaining_after(window)
            return SteadyWindow(
                self._read_totals,
                plan.flow,
                minimum,
                plan.give_up_s,
                is_rate_known=bool(self._windows),
            )
        if self._rate_rule == "bounds":
            return BoundedWindow(plan.flow, plan.minimum, plan.give_up_s)
        if len(self._epochs) >= plan.minimum.epochs:
            # The earlier epochs are enough: if the time limit is near, the trial does not fail.
            return WholeEpoch(plan.give_up_s)
        return WholeEpoch(plan.give_up_s, self._failure)

    def add_epoch(self, timings: EpochTimings, window_rule: WindowRule) -> None:
        """Add an epoch that was read by ``window_rule``, and decide whether to stop."""
        if self._rate_rule == "epochs" and not timings.is_complete:
            self.is_done = True  # The time limit is near, and the earlier epochs are enough.
            return
        self._epochs.append(timings)
        if self._rate_rule == "steady":
            self._add_steady_window(timings)
            if self._windows:
                return
        elif self._rate_rule == "bounds" and not timings.is_complete:
            assert isinstance(window_rule, BoundedWindow)  # noqa: S101  see next_window_rule
            self._set_bounds(timings, window_rule)
            return
        # The rule is ``epochs``, or the epoch was too short for another rule.
        self._count_whole_epochs()

    def _add_steady_window(self, timings: EpochTimings) -> None:
        """Let the window of the last epoch count, and stop after enough windows."""
        if timings.window is not None:
            self._add_window(timings.window)
        if self._windows:
            is_stopped = timings.window is None or not timings.is_complete
            self.is_done = is_stopped or self._plan.minimum.is_reached(self._windows)

    def _set_bounds(self, timings: EpochTimings, window_rule: BoundedWindow) -> None:
        """Take the bounds of the rate from the last epoch, and the window of the upper bound."""
        if timings.window is not None:
            self._add_window(timings.window)
        self._bounds = None if window_rule.agree else window_rule.bounds
        self.is_done = True

    def _add_window(self, window: Window) -> None:
        """Let the steps of the last epoch that are in ``window`` count."""
        self._windows.append(window)
        self._counted_numbers.append(len(self._epochs) - 1)

    def _count_whole_epochs(self) -> None:
        """Let whole epochs count from now on, including the epochs that were read already."""
        self._rate_rule = "epochs"
        minimum = self._plan.minimum
        whole_epochs = [epoch.all_steps for epoch in self._epochs]
        has_enough_epochs = len(whole_epochs) >= minimum.epochs
        self.is_done = has_enough_epochs and minimum.is_reached(whole_epochs)

    def measurement(self) -> RateMeasurement:
        """The epochs that were read, and the steps of them that count."""
        if self._rate_rule == "epochs":
            whole_epochs = [epoch.all_steps for epoch in self._epochs]
            numbers = range(len(whole_epochs))
            return RateMeasurement("epochs", self._epochs, whole_epochs, numbers)
        return RateMeasurement(
            self._rate_rule, self._epochs, self._windows, self._counted_numbers, self._bounds
        )

    def _failure(self, samples: int, now_s: float) -> str:
        """The reason of a failure in an epoch of which ``samples`` samples were read."""
        earlier_samples = sum(epoch.all_steps.samples for epoch in self._epochs)
        complete_epochs = len(self._epochs)
        epoch_samples: float | None = self._plan.epoch_samples
        if complete_epochs:
            epoch_samples = earlier_samples / complete_epochs
        return _too_few_epochs_reason(
            self._plan.minimum.epochs,
            complete_epochs,
            epoch_samples,
            earlier_samples + samples,
            now_s - self._started_s,
        )


def _too_few_epochs_reason(
    min_epochs: int,
    complete_epochs: int,
    epoch_samples: float | None,
    read_samples: int,
    spent_s: float,
) -> str:
    """The reason why too few whole epochs were read in time.

    ``epoch_samples`` is None if the first epoch has not ended and its length is unknown.
    """
    if epoch_samples is None:
        return (
            f"the first epoch did not end within {spent_s:,.0f} s and {read_samples:,} samples, "
            f"and {min_epochs} whole epochs are needed: set a longer trial_timeout_s, or use fewer "
            "images"
        )
    needed_s = spent_s * min_epochs * epoch_samples / max(read_samples, 1)
    return (
        f"{complete_epochs} of {min_epochs} whole epochs of {epoch_samples:,.0f} samples were read "
        f"in {spent_s:,.0f} s: about {needed_s:,.0f} s are needed; set trial_timeout_s to "
        f"{math.ceil(needed_s / GIVE_UP_SHARE):,} or more, or use fewer images"
    )


def _with_opening_time(timings: EpochTimings, opening_s: float) -> EpochTimings:
    """The timings of an epoch as if it had been requested before its loader was created."""
    start = replace(timings.all_steps.start, time_s=timings.all_steps.start.time_s - opening_s)
    return replace(
        timings,
        all_steps=Window(start, timings.all_steps.end),
        time_to_first_batch_s=timings.time_to_first_batch_s + opening_s,
    )
