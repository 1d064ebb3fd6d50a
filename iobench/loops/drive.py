"""The measured loop: batches of one epoch from a loader into a consumer, on a clock."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dataprep.reading.read_counter import ReadTotals
from iobench.clock import Clock
from iobench.consumers.protocol import Consumer
from iobench.errors import TrialFailed
from iobench.loaders.protocol import Batch
from iobench.loops.counted import Mark, Window, WindowRule


@dataclass(frozen=True, slots=True)
class EpochTimes:
    """Timings of all steps of one epoch, or of the part that was read.

    Attributes:
        whole: from the request for the epoch until the device has done its last step.
        window: the steps that count by the rule; None if it accepted none.
        is_over: whether the loader gave all batches.
        time_to_first_batch_s: from the request to the first batch.
        first_step_ended_s: when the device had done the first step, on the loop's clock.
        wait_s: how long each step waited for its batch.
        ended_s: when the host had done each step, on the loop's clock.
        compute_s: computing time of the device in each step.
        dropped_samples: samples of smaller batches, which a training loop does not take.
    """

    whole: Window
    window: Window | None
    is_over: bool
    time_to_first_batch_s: float
    first_step_ended_s: float
    wait_s: array[float]
    ended_s: array[float]
    compute_s: array[float]
    dropped_samples: int = 0


def drive(
    epoch: Callable[[], Iterator[Batch]],
    consumer: Consumer,
    clock: Clock,
    rule: WindowRule,
    *,
    arrived: Callable[[], ReadTotals] | None = None,
    full_batch: int | None = None,
    progress: Callable[[float], object] = lambda samples: None,
) -> EpochTimes:
    """Feed ``consumer`` until the batches end or ``rule`` stops the loop.

    Args:
        epoch: requests the epoch; called once, after which batches may be read ahead.
        consumer: takes each batch; its steps in earlier epochs do not count.
        clock: of all times.
        rule: decides which steps count, and when the loop may stop.
        arrived: what the loader has read so far; None if it does not count.
        full_batch: samples of a batch; smaller ones are dropped. None takes all.
        progress: is called after each step with all samples so far.

    Raises:
        TrialFailed: no batch came, or the rule cannot give a rate in time.
    """
    earlier_steps = len(consumer.compute_s())
    requested_s = clock.now_s()
    batches = epoch()
    rule.begin(requested_s)
    before = arrived() if arrived is not None else None
    wait_s, ended_s = array("d"), array("d")
    first_batch_s = first_step_ended_s = before_s = requested_s
    steps = samples = dropped = 0
    is_over = False
    while True:
        batch = next(batches, None)
        if batch is None:
            is_over = True
            break
        if full_batch is not None and batch.samples != full_batch:
            dropped += batch.samples
            continue
        got_s = clock.now_s()
        if not steps:
            first_batch_s = got_s
            rule.first_batch()
        consumer.step(batch)
        if not steps:
            consumer.finish()
            first_step_ended_s = clock.now_s()
        steps += 1
        samples += batch.samples
        now_s = clock.now_s()
        wait_s.append(got_s - before_s)
        ended_s.append(now_s)
        if samples >= rule.look_at_samples or now_s >= rule.look_at_s:
            consumer.finish()
            if rule.look(steps, samples, clock.now_s()):
                break
        progress(samples)
        before_s = clock.now_s()
    consumer.finish()
    end = Mark(steps, samples, clock.now_s(), arrived() if arrived is not None else None)
    if not steps:
        raise TrialFailed(_no_batch(dropped, full_batch))
    return EpochTimes(
        whole=Window(Mark(0, 0, requested_s, before), end),
        window=rule.window,
        is_over=is_over,
        time_to_first_batch_s=first_batch_s - requested_s,
        first_step_ended_s=first_step_ended_s,
        wait_s=wait_s,
        ended_s=ended_s,
        compute_s=array("d", consumer.compute_s()[earlier_steps:]),
        dropped_samples=dropped,
    )


def _no_batch(dropped: int, full_batch: int | None) -> str:
    if dropped:
        return (
            f"the loader gave no whole batch of {full_batch:,}, only {dropped:,} samples in "
            "smaller ones: give more images or smaller batches"
        )
    return "the loader gave no batch"
