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


def test_first_batch_is_timed_from_asking_for_the_epoch() -> None:
    """Opening belongs to the first batch; warming the consumer up does not."""
    assert driven(5).time_to_first_batch_s == START_S + WAIT_S


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
    """Seconds count from where the figures begin, not from the first batch on."""
    times = driven(100, leave_out=3, max_seconds=4 * (WAIT_S + STEP_S))
    assert len(times.step_s) == 4
    assert times.seconds == 4 * (WAIT_S + STEP_S)


def test_a_slow_start_leaves_time_for_a_step() -> None:
    """A limit shorter than the first batch takes still gives a step that counts."""
    assert len(driven(100, max_seconds=0.001).step_s) == 1


def test_a_smaller_last_batch_counts_with_its_samples() -> None:
    """Samples are counted, not batches times their size."""
    loader, clock = looped(3, last_samples=4)
    consumer = warm(SlowConsumer, clock)
    times = drive(lambda: loader.epoch(0), consumer, clock, leave_out=1)
    assert times.samples == SAMPLES + 4


def test_progress_is_all_samples_so_far() -> None:
    """Those left out included: a person wants to see that something happens."""
    loader, clock = looped(4)
    seen: list[float] = []
    consumer = warm(SlowConsumer, clock)
    drive(lambda: loader.epoch(0), consumer, clock, leave_out=2, progress=seen.append)
    assert seen == [10, 20, 30, 40]


def test_an_empty_loader_gave_no_batch() -> None:
    """It is said in these words, and is no division by zero."""
    with pytest.raises(TrialFailed, match=r"^the loader gave no batch$"):
        driven(0)


def test_too_few_batches_are_counted_out() -> None:
    """The reason says how many there were and what to do."""
    with pytest.raises(TrialFailed, match="gave 3 batches, of which the first 3 do not count: giv"):
        driven(3, leave_out=3)


def test_errors_of_a_loader_come_through() -> None:
    """Whatever it raises is the trial's reason."""

    def broken():  # type: ignore[no-untyped-def]
        yield from looped(2)[0].epoch(0)
        raise KeyError("shard 7")

    _, clock = looped(2)
    with pytest.raises(KeyError, match="shard 7"):
        drive(broken, warm(SlowConsumer, clock), clock, leave_out=1)


def test_no_time_is_no_rate() -> None:
    """A loop that took no time at all has the rate 0, not an infinite one."""
    assert LoopTimes(0, 0, 10, 10, 0, 1, (), (), ()).samples_per_s == 0


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
