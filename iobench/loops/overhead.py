"""What the loop's own clock and notes cost a step: the same loop around nothing."""

from __future__ import annotations

from collections.abc import Iterator

from iobench.clock import Clock
from iobench.consumers.null import NullConsumer
from iobench.consumers.protocol import ConsumerSettings
from iobench.loaders.null import placeholder
from iobench.loaders.protocol import Batch
from iobench.loops.drive import drive
from iobench.stats import median

_STEPS, _ROUNDS = 1_000, 5


def step_cost_s(clock: Clock) -> float:
    """Seconds a step of ``drive`` with a loader and a consumer that do nothing; some ms in all.

    An upper bound: the call of either and a comparison of the time for progress are in it. The
    median of a few rounds, which one interruption does not move.
    """
    batch = placeholder(1)

    def batches() -> Iterator[Batch]:
        for _ in range(_STEPS):
            yield batch

    def looked(samples: float) -> None:
        clock.now_s()

    rounds = []
    for _ in range(_ROUNDS):
        consumer = NullConsumer(ConsumerSettings(), clock)
        times = drive(batches, consumer, clock, leave_out=1, progress=looked)
        rounds.append(times.seconds / len(times.step_s))
    return median(rounds)
