"""The exact timings of one loop, on a virtual clock."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.reading.read_counter import ReadTotals
from iobench.clock import VirtualClock
from iobench.consumers.null import NullConsumer
from iobench.consumers.protocol import ConsumerSettings
from iobench.errors import TrialFailed
from iobench.loaders import Batch, LoaderSettings
from iobench.loaders.null import NullLoader
from iobench.trials.epoch_loop import EpochTimings, run_epoch
from iobench.trials.loop_timings import LoopTimings, window_timings
from iobench.trials.window_rules import FixedSteps, WholeEpoch, WindowRule
from tests.iobench.trials.fakes import (
    SAMPLES,
    START_S,
    STEP_S,
    WAIT_S,
    AsynchronousConsumer,
    SlowConsumer,
    looped,
    warm,
)


def driven(
    batches: int,
    rule: WindowRule,
    kind: type[SlowConsumer] = SlowConsumer,
    *,
    last_samples: int = SAMPLES,
    full_batch: int | None = None,
) -> EpochTimings:
    """Return the timings of a loop over one epoch with this number of batches."""
    loader, clock = looped(batches, last_samples)
    return run_epoch(lambda: loader.epoch(0), warm(kind, clock), clock, rule, full_batch=full_batch)


def counted(times: EpochTimings) -> LoopTimings:
    """Return the timings of the steps that the rule accepted."""
    assert times.window is not None
    return window_timings(times, times.window)


def test_every_step_is_its_wait_and_its_work() -> None:
    """Four of five batches count, and the waits and computations add up to the time."""
    times = counted(driven(5, FixedSteps(1, 4, SAMPLES)))
    assert times.wait_s.tolist() == [WAIT_S] * 4
    assert times.step_s.tolist() == [WAIT_S + STEP_S] * 4
    assert times.compute_s.tolist() == [STEP_S] * 4
    assert times.seconds == times.step_s.sum()
    assert (times.samples, times.left_out_steps) == (4 * SAMPLES, 1)
    assert times.time_to_first_batch_s == START_S + WAIT_S
    assert times.samples_per_s == SAMPLES / (WAIT_S + STEP_S)


def test_a_whole_epoch_begins_with_its_request() -> None:
    """The start is the wait of the first step and belongs to the time."""
    epoch = driven(5, WholeEpoch())
    assert (epoch.is_complete, epoch.window) == (True, None)
    times = window_timings(epoch, epoch.all_steps)
    assert times.wait_s.tolist() == [START_S + WAIT_S, *[WAIT_S] * 4]
    assert times.seconds == START_S + 5 * (WAIT_S + STEP_S) == times.step_s.sum()
    assert times.epoch_starts_s.tolist() == [START_S + WAIT_S]
    assert times.later_steps.tolist() == [False, *[True] * 4]


def test_utilisation_leaves_out_the_first_step_alone() -> None:
    """The AU leaves out one step as MLPerf Storage does, however many the rate leaves out."""
    clock = VirtualClock()

    def batches() -> Iterator[Batch]:
        for wait_s in (5.0, 1.0, 0.0, 0.0):
            clock.sleep(wait_s)
            yield Batch(None, None, SAMPLES)

    epoch = run_epoch(batches, warm(SlowConsumer, clock), clock, FixedSteps(3, 1, SAMPLES))
    times = counted(epoch)
    assert times.samples_per_s == SAMPLES / STEP_S
    assert times.au_mlperf == pytest.approx(3 * STEP_S / (3 * STEP_S + 1.0))
    timings = window_timings(epoch, epoch.all_steps)
    assert timings.au_mlperf == times.au_mlperf


@given(st.integers(1, 20), st.integers(0, 19), st.integers(1, 20))
def test_steps_left_out_are_in_no_figure(batches: int, left_out: int, steps: int) -> None:
    """Time counts from the end of the last step left out; too few batches give no window."""
    epoch = driven(batches, FixedSteps(left_out, steps, SAMPLES))
    if left_out + steps > batches:
        assert epoch.window is None
        assert epoch.is_complete
        return
    times = counted(epoch)
    assert times.left_out_steps == left_out
    assert len(times.wait_s) == len(times.step_s) == len(times.compute_s) == steps
    assert times.samples == steps * SAMPLES
    start_s = 0 if left_out else START_S
    assert times.seconds == pytest.approx(start_s + steps * (WAIT_S + STEP_S))
    assert times.seconds == pytest.approx(times.step_s.sum())


def test_a_device_that_computes_behind_the_loop_is_waited_for() -> None:
    """The clock starts and stops when the device is idle."""
    times = counted(driven(5, FixedSteps(1, 4, SAMPLES), AsynchronousConsumer))
    assert times.seconds == pytest.approx(4 * (WAIT_S + STEP_S))
    assert times.samples_per_s == pytest.approx(SAMPLES / (WAIT_S + STEP_S))
    assert times.step_s.tolist() == [WAIT_S] * 4


def test_no_batch_is_requested_beyond_the_last_step() -> None:
    """The loop stops as soon as enough steps count."""
    loader, clock = looped(100)
    consumer = warm(SlowConsumer, clock)
    requested = count()

    def batches() -> Iterator[Batch]:
        for batch in loader.epoch(0):
            next(requested)
            yield batch

    epoch = run_epoch(batches, consumer, clock, FixedSteps(2, 4, SAMPLES))
    assert not epoch.is_complete
    assert (len(counted(epoch).step_s), consumer.steps, next(requested)) == (4, 6, 6)


def test_a_consumer_goes_on_from_epoch_to_epoch() -> None:
    """Each epoch has the computing time of its own steps."""
    loader, clock = looped(3)
    consumer = warm(SlowConsumer, clock)
    epochs = [run_epoch(lambda: loader.epoch(0), consumer, clock, WholeEpoch()) for _ in range(2)]
    assert [epoch.compute_s.tolist() for epoch in epochs] == [[STEP_S] * 3] * 2


def test_a_smaller_last_batch() -> None:
    """A loader alone counts the batch; a training loop drops it and counts its samples."""
    kept = driven(3, WholeEpoch(), last_samples=4)
    assert (kept.all_steps.samples, kept.all_steps.steps) == (2 * SAMPLES + 4, 3)
    assert kept.dropped_samples == 0
    dropped = driven(3, WholeEpoch(), last_samples=4, full_batch=SAMPLES)
    assert (dropped.all_steps.samples, dropped.all_steps.steps) == (2 * SAMPLES, 2)
    assert dropped.dropped_samples == 4


def test_progress_has_all_samples_so_far() -> None:
    """Progress is reported after each step, also if the step does not count."""
    loader, clock = looped(3, last_samples=4)
    reported: list[float] = []
    consumer = warm(SlowConsumer, clock)
    run_epoch(lambda: loader.epoch(0), consumer, clock, WholeEpoch(), progress=reported.append)
    assert reported == [10, 20, 24]


def test_arrivals_belong_to_the_steps_that_count() -> None:
    """The balance has no samples that arrived before, such as those of earlier epochs."""
    loader, clock = looped(4)
    arrivals = (ReadTotals(100 + 10 * number, 1_000 * number) for number in count())

    def arrived() -> ReadTotals:
        return next(arrivals)

    rule = FixedSteps(1, 2, SAMPLES, arrived)
    consumer = warm(SlowConsumer, clock)
    epoch = run_epoch(lambda: loader.epoch(0), consumer, clock, rule, read_totals=arrived)
    times = counted(epoch)
    assert (times.arrived_samples, times.arrived_bytes) == (10, 1_000)
    assert times.balance == 10 / (2 * SAMPLES)
    assert epoch.all_steps.arrived == ReadTotals(30, 3_000)


@pytest.mark.parametrize(
    ("batches", "reason"),
    [
        (0, r"^the loader gave no batch$"),
        (1, "gave no full batch of 10, only 4 samples in smaller batches: use more images"),
    ],
)
def test_a_loop_without_a_batch_fails(batches: int, reason: str) -> None:
    """The reason says how many samples there were and what to do."""
    with pytest.raises(TrialFailed, match=reason):
        driven(batches, WholeEpoch(), last_samples=4, full_batch=SAMPLES)


def test_a_loader_that_ignores_the_batch_size_fails() -> None:
    """A batch that is larger than requested ends the loop, and the reason says what to set."""
    reason = r"batch of 25 samples, but batch_size is 10: the loader ignores .*; set batch_size to"
    with pytest.raises(TrialFailed, match=reason):
        driven(2, WholeEpoch(), last_samples=25, full_batch=SAMPLES)


def test_time_is_up_within_an_epoch() -> None:
    """A necessary epoch fails with the samples so far, and an additional one is left."""
    step_s = WAIT_S + STEP_S
    with pytest.raises(TrialFailed, match=r"^40 samples at 106\.00 s$"):
        driven(9, WholeEpoch(105.5, lambda samples, at_s: f"{samples} samples at {at_s:.2f} s"))
    left = driven(9, WholeEpoch(100 + START_S + 2 * step_s))
    assert (left.is_complete, left.all_steps.steps) == (False, 2)


def test_a_loop_keeps_no_object_for_each_step() -> None:
    """A loop of 20,000 steps over an idle loader keeps fewer than 1,000 blocks of memory."""
    clock = VirtualClock()
    loader = NullLoader(None, LoaderSettings(batch_size=10), clock)
    consumer = NullConsumer(ConsumerSettings(), clock)
    before = sys.getallocatedblocks()
    epoch = run_epoch(lambda: loader.epoch(0), consumer, clock, FixedSteps(1, 19_999, 10))
    assert epoch.all_steps.steps == 20_000
    assert sys.getallocatedblocks() - before < 1_000


class Noting:
    """A rule that notes its calls, looks after each step, and stops after the third."""

    def __init__(self, events: list[str]) -> None:
        self.check_at_samples, self.check_at_s = 0.0, 0.0
        self._events = events

    def begin(self, now_s: float) -> None:
        """Note that the epoch was requested."""
        self._events.append("begin")

    def first_batch(self) -> None:
        """Note that the first batch has come."""
        self._events.append("first batch")

    def check(self, steps: int, samples: int, now_s: float) -> bool:
        """Note the number of steps."""
        self._events.append(f"look at {steps}")
        return steps == 3

    @property
    def window(self) -> None:
        """Return the accepted window, which is always missing."""
        return


def test_a_rule_hears_of_the_first_batch_before_it_is_consumed() -> None:
    """Samples that arrive during the first step were not in flight before it."""
    events: list[str] = []

    class Consumer(SlowConsumer):
        def step(self, batch: Batch) -> None:
            events.append("step")
            super().step(batch)

    loader, clock = looped(5, SAMPLES)
    consumer = warm(Consumer, clock)
    events.clear()
    run_epoch(lambda: loader.epoch(0), consumer, clock, Noting(events))
    assert events == [
        *("begin", "first batch", "step", "look at 1"),
        *("step", "look at 2", "step", "look at 3"),
    ]
