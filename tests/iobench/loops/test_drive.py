"""What one loop took, exactly, on a clock that stands still."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.clock import VirtualClock
from iobench.errors import TrialFailed
from iobench.loaders import Batch
from iobench.loops.drive import LoopTimes, drive, steps_to_leave_out
from tests.iobench.loops.fakes import (
    SAMPLES,
    START_S,
    STEP_S,
    WAIT_S,
    AsynchronousConsumer,
    SlowConsumer,
    looped,
    warm,
)


def driven(batches: int, kind: type[SlowConsumer] = SlowConsumer, **limits: float) -> LoopTimes:
    """A loop over one epoch of so many batches."""
    loader, clock = looped(batches)
    limits = {"leave_out": 1, **limits}
    return drive(lambda: loader.epoch(0), warm(kind, clock), clock, **limits)  # type: ignore[arg-type]


def test_every_step_is_its_wait_and_its_work() -> None:
    """Of 5 batches 4 count: each waits, each computes, and their sum is the whole."""
    times = driven(5)
    assert times.wait_s == (WAIT_S,) * 4
    assert times.step_s == (WAIT_S + STEP_S,) * 4
    assert times.compute_s == (STEP_S,) * 4
    assert times.seconds == sum(times.step_s)
    assert times.samples == 4 * SAMPLES
    assert times.time_to_first_batch_s == START_S + WAIT_S  # from asking for the epoch
    assert LoopTimes(0, 0, 10, 10, 0, 1, (), (), ()).samples_per_s == 0
    assert times.samples_per_s == SAMPLES / (WAIT_S + STEP_S)


def test_utilisation_leaves_out_the_first_step_alone() -> None:
    """As MLPerf Storage has it, however many steps the rate leaves out."""
    clock = VirtualClock()

    def batches() -> Iterator[Batch]:
        for wait_s in (5.0, 1.0, 0.0, 0.0):
            clock.sleep(wait_s)
            yield Batch(None, None, SAMPLES)

    times = drive(batches, warm(SlowConsumer, clock), clock, leave_out=3)
    assert times.samples_per_s == SAMPLES / STEP_S
    assert times.au_mlperf == pytest.approx(3 * STEP_S / (3 * STEP_S + 1.0))


@given(st.integers(2, 20), st.integers(1, 19))
def test_steps_left_out_are_in_no_figure(batches: int, leave_out: int) -> None:
    """What counts begins when the last step left out is done."""
    if leave_out >= batches:
        with pytest.raises(TrialFailed):
            driven(batches, leave_out=leave_out)
        return
    times = driven(batches, leave_out=leave_out)
    counted = batches - leave_out
    assert times.left_out == leave_out
    assert len(times.wait_s) == len(times.step_s) == len(times.compute_s) == counted
    assert times.samples == counted * SAMPLES
    assert times.seconds == pytest.approx(counted * (WAIT_S + STEP_S))


def test_a_device_that_computes_behind_the_loop_is_waited_for() -> None:
    """The clock starts with an idle device and stops with one: nothing is owed or given."""
    times = driven(5, AsynchronousConsumer)
    assert times.seconds == pytest.approx(4 * (WAIT_S + STEP_S))
    assert times.samples_per_s == pytest.approx(SAMPLES / (WAIT_S + STEP_S))
    assert times.step_s == (WAIT_S,) * 4


def test_max_steps_counts_those_left_out() -> None:
    """No batch beyond it is asked for."""
    loader, clock = looped(100)
    consumer = warm(SlowConsumer, clock)
    asked = 0

    def batches():  # type: ignore[no-untyped-def]
        nonlocal asked
        for batch in loader.epoch(0):
            asked += 1
            yield batch

    times = drive(batches, consumer, clock, leave_out=2, max_steps=6)
    assert (len(times.step_s), consumer.steps, asked) == (4, 6, 6)


def test_max_seconds_ends_with_the_step_that_reaches_it() -> None:
    """Seconds count from where the figures begin, so that one step always counts."""
    assert len(driven(100, max_seconds=0.001).step_s) == 1
    times = driven(100, leave_out=3, max_seconds=4 * (WAIT_S + STEP_S))
    assert len(times.step_s) == 4
    assert times.seconds == 4 * (WAIT_S + STEP_S)


def test_a_smaller_last_batch_counts_with_its_samples() -> None:
    """Samples are counted, not batches times their size; progress has all of them."""
    seen: list[float] = []
    loader, clock = looped(3, last_samples=4)
    consumer = warm(SlowConsumer, clock)
    times = drive(lambda: loader.epoch(0), consumer, clock, leave_out=1, progress=seen.append)
    assert times.samples == SAMPLES + 4
    assert seen == [10, 20, 24]


@pytest.mark.parametrize(
    ("batches", "said"),
    [
        (0, r"^the loader gave no batch$"),
        (3, "gave 3 batches, of which the first 3 do not count: give more images"),
    ],
)
def test_too_few_batches_are_counted_out(batches: int, said: str) -> None:
    """The reason says how many there were and what to do."""
    with pytest.raises(TrialFailed, match=said):
        driven(batches, leave_out=3)


@given(st.integers(0, 64), st.integers(1, 16), st.none() | st.integers(4, 500))
def test_what_is_left_out(workers: int, prefetch: int, steps: int | None) -> None:
    """At least the first step; of a known number of steps at most a quarter."""
    found = steps_to_leave_out(workers, prefetch, steps)
    assert found >= 1
    if steps is None:
        assert found == 1 + workers * prefetch
    else:
        assert found <= max(1, steps // 4)
        assert found == min(1 + workers * prefetch, steps // 4)
