"""The measured loop over one epoch: it gives batches of a loader to a consumer, on a clock."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dataprep.reading.read_counter import ReadTotals
from iobench.clock import Clock
from iobench.consumers.protocol import Consumer
from iobench.errors import TrialFailed
from iobench.loaders.protocol import Batch
from iobench.trials.window import Mark, Window
from iobench.trials.window_rules import WindowRule


@dataclass(frozen=True, slots=True)
class EpochTimings:
    """Timings of all steps of one epoch, or of the part of it that was read.

    Attributes:
        all_steps: all steps, from the request for the epoch until the device has done the last one.
        window: the steps that count for the rate; None if the rule has accepted no steps.
        is_complete: whether the loop ended because the loader had no more batches. It is False if
            the rule stopped the loop, even at the last batch.
        time_to_first_batch_s: from the request to the first batch.
        first_step_ended_s: when the device had done the first step, on the loop's clock.
        wait_s: how long each step waited for its batch.
        ended_s: when the host had done each step, on the loop's clock.
        compute_s: computing time of the device in each step.
        dropped_samples: samples of batches that are smaller than a full batch. A training loop does
            not take them.
    """

    all_steps: Window
    window: Window | None
    is_complete: bool
    time_to_first_batch_s: float
    first_step_ended_s: float
    wait_s: array[float]
    ended_s: array[float]
    compute_s: array[float]
    dropped_samples: int = 0


def run_epoch(
    request: Callable[[], Iterator[Batch]],
    consumer: Consumer,
    clock: Clock,
    rule: WindowRule,
    *,
    read_totals: Callable[[], ReadTotals] | None = None,
    full_batch: int | None = None,
    progress: Callable[[float], object] = lambda samples: None,
) -> EpochTimings:
    """Give batches to ``consumer`` until the epoch ends or ``rule`` stops the loop.

    Args:
        request: requests the epoch. It is called once; the loader may then read batches ahead.
        consumer: takes each batch. It may have taken steps in earlier epochs, which are left out.
        clock: the clock of all times.
        rule: decides which steps count, and when the loop may stop.
        read_totals: returns what the loader has read so far; None if it does not count its reads.
        full_batch: samples of a full batch. Smaller batches are dropped. None takes all batches.
        progress: is called with the number of samples so far after each step, except the step at
            which the rule stops the loop.

    Raises:
        TrialFailed: no full batch came, a batch was larger than a full batch, or the rule cannot
            give a rate in time.
    """
    earlier_steps = len(consumer.compute_s())
    requested_s = clock.now_s()
    batches = request()
    rule.begin(requested_s)
    read_before = read_totals() if read_totals is not None else None
    wait_s, ended_s = array("d"), array("d")
    first_batch_s = first_step_ended_s = wait_begun_s = requested_s
    steps = samples = dropped_samples = 0
    is_complete = False
    while True:
        batch = next(batches, None)
        if batch is None:
            is_complete = True
            break
        if full_batch is not None and batch.samples != full_batch:
            if batch.samples > full_batch:
                raise TrialFailed(
                    f"the loader gave a batch of {batch.samples:,} samples, but batch_size is "
                    f"{full_batch:,}: the loader ignores batch_size; set batch_size to its own "
                    "size, or use another loader"
                )
            dropped_samples += batch.samples
            continue
        batch_s = clock.now_s()
        if not steps:
            first_batch_s = batch_s
            rule.first_batch()
        consumer.step(batch)
        if not steps:
            consumer.finish()
            first_step_ended_s = clock.now_s()
        steps += 1
        samples += batch.samples
        now_s = clock.now_s()
        wait_s.append(batch_s - wait_begun_s)
        ended_s.append(now_s)
        if samples >= rule.check_at_samples or now_s >= rule.check_at_s:
            consumer.finish()
            if rule.check(steps, samples, clock.now_s()):
                break
        progress(samples)
        wait_begun_s = clock.now_s()
    consumer.finish()
    ended_at_s = clock.now_s()
    read_after = read_totals() if read_totals is not None else None
    start = Mark(0, 0, requested_s, read_before)
    end = Mark(steps, samples, ended_at_s, read_after)
    if not steps:
        raise TrialFailed(_no_batch_reason(dropped_samples, full_batch))
    return EpochTimings(
        all_steps=Window(start, end),
        window=rule.window,
        is_complete=is_complete,
        time_to_first_batch_s=first_batch_s - requested_s,
        first_step_ended_s=first_step_ended_s,
        wait_s=wait_s,
        ended_s=ended_s,
        compute_s=array("d", consumer.compute_s()[earlier_steps:]),
        dropped_samples=dropped_samples,
    )


def _no_batch_reason(dropped_samples: int, full_batch: int | None) -> str:
    """The reason why an epoch had no step: no batches, or only batches that were too small."""
    if dropped_samples:
        return (
            f"the loader gave no full batch of {full_batch:,}, only {dropped_samples:,} samples "
            "in smaller batches: use more images or a smaller batch_size"
        )
    return "the loader gave no batch"
