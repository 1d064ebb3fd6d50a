"""The measured loop: batches from a loader into a consumer, on a clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from iobench.clock import Clock
from iobench.consumers.protocol import Consumer
from iobench.errors import TrialFailed
from iobench.loaders.protocol import Batch


@dataclass(frozen=True, slots=True)
class LoopTimes:
    """Timings of one loop. Only the first two include the first ``left_out`` steps.

    Attributes:
        time_to_first_batch_s: from the request for the epoch to its first batch.
        au_mlperf: computing time of the device / running time, both without the first step (MLPerf
            Storage); 0 if no time passed.
        samples, seconds: of the steps that count, until the device has done them.
        taken: samples of all steps.
        wait_s: how long each step waited for its batch.
        step_s: each step from the end of the one before to its own end, waiting included.
        compute_s: computing time of the device in each step.
        asked_s: when the epoch was requested, on the loop's clock.
        begun_s: seconds from then until the steps that count begin.
        running_s: from the end of the first step to the end of the last; see ``au_mlperf``.
        running_compute_s: computing time in the steps of ``running_s`` that do not count.
    """

    time_to_first_batch_s: float
    au_mlperf: float
    samples: int
    taken: int
    seconds: float
    left_out: int
    wait_s: tuple[float, ...]
    step_s: tuple[float, ...]
    compute_s: tuple[float, ...]
    asked_s: float = 0.0
    begun_s: float = 0.0
    running_s: float = 0.0
    running_compute_s: tuple[float, ...] = ()

    @property
    def samples_per_s(self) -> float:
        """Samples per second of the steps that count."""
        return self.samples / self.seconds if self.seconds > 0 else 0.0

    @property
    def begun_at_s(self) -> float:
        """When the steps that count began, on the loop's clock."""
        return self.asked_s + self.begun_s

    @property
    def ended_at_s(self) -> float:
        """When the steps that count ended, on the loop's clock."""
        return self.begun_at_s + self.seconds

    @property
    def counted_s(self) -> tuple[float, float]:
        """Begin and end of the steps that count, in seconds after ``asked_s``."""
        return self.begun_s, self.begun_s + self.seconds


def drive(
    epoch: Callable[[], Iterator[Batch]],
    consumer: Consumer,
    clock: Clock,
    *,
    leave_out: int,
    max_steps: int | None = None,
    max_seconds: float | None = None,
    progress: Callable[[float], object] = lambda samples: None,
) -> LoopTimes:
    """Feed ``consumer`` until the batches end, or ``max_steps`` or ``max_seconds`` are reached.

    The time for the rate begins when the device has done step ``leave_out``, the time for
    ``au_mlperf`` when it has done step 1. Steps of the consumer in earlier epochs do not count.

    Raises:
        TrialFailed: too few batches came for one step that counts.
    """
    done = len(consumer.compute_s())
    asked_s = clock.now_s()
    batches = epoch()
    first_s = begun_s = start_s = last_s = asked_s
    wait_s: list[float] = []
    step_s: list[float] = []
    steps = samples = counted = 0
    while max_steps is None or steps < max_steps:
        before_s = clock.now_s()
        batch = next(batches, None)
        if batch is None:
            break
        got_s = clock.now_s()
        consumer.step(batch)
        steps += 1
        samples += batch.samples
        if steps == 1:
            first_s = got_s
            consumer.finish()
            begun_s = clock.now_s()
        if steps == leave_out:
            consumer.finish()
            start_s = last_s = clock.now_s()
        elif steps > leave_out:
            now_s = clock.now_s()
            wait_s.append(got_s - before_s)
            step_s.append(now_s - last_s)
            last_s = now_s
            counted += batch.samples
            if max_seconds is not None and now_s - start_s >= max_seconds:
                break
        progress(samples)
    consumer.finish()
    ended_s = clock.now_s()
    if not steps:
        raise TrialFailed("the loader gave no batch")
    if not counted:
        raise TrialFailed(
            f"the loader gave {steps} batches, of which the first {leave_out} do not count: "
            "give more images or smaller batches"
        )
    compute_s = tuple(consumer.compute_s()[done:])
    running_s = ended_s - begun_s
    return LoopTimes(
        time_to_first_batch_s=first_s - asked_s,
        au_mlperf=sum(compute_s[1:]) / running_s if running_s > 0 else 0.0,
        samples=counted,
        taken=samples,
        seconds=ended_s - start_s,
        left_out=leave_out,
        wait_s=tuple(wait_s),
        step_s=tuple(step_s),
        compute_s=compute_s[leave_out:],
        asked_s=asked_s,
        begun_s=start_s - asked_s,
        running_s=running_s,
        running_compute_s=compute_s[1:leave_out],
    )


def steps_to_leave_out(workers: int, prefetch: int, steps: int | None) -> int:
    """The first step, and steps whose batches were made while the loop waited for the first.

    At most a quarter of the steps, at least one.
    """
    ahead = 1 + workers * prefetch
    return max(1, ahead if steps is None else min(ahead, steps // 4))
