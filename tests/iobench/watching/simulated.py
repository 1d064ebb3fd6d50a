"""Watched loops over loaders of known speed, on a virtual clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from iobench.clock import VirtualClock
from iobench.machine.sampling import Samples
from iobench.results.trial import Metrics, Outcome
from iobench.watching.figures import outcome
from iobench.watching.proxy import TimedEpoch
from iobench.watching.replay import Replay, ReplaySettings
from tests.iobench.watching.logged import MemoryLog, Record, table

BATCH = 20


@dataclass(frozen=True, slots=True)
class SimulatedLoader:
    """A loader whose ``workers`` fetch batches into a queue.

    A worker takes ``workers`` times ``batch_s`` for a batch. ``full`` batches are in the queue
    before the first request of each epoch. The first batch is handed over after ``start_s``, and
    once ``ahead`` batches are in the queue. Handing a batch over takes ``handover_s``.
    """

    batch_s: float
    queue: int = 8
    workers: int = 1
    full: int = 0
    ahead: int = 1
    start_s: float = 0.0
    handover_s: float = 0.0

    def epoch(self, batches: int, clock: VirtualClock) -> Iterator[list[int]]:
        """Yield the batches of an epoch that begins now."""
        begun_s = clock.now_s() + self.start_s
        free_s = [begun_s] * self.workers
        fetched_s: list[float] = []
        given_s: list[float] = []
        for number in range(batches):
            while len(fetched_s) < min(batches, number + self.queue):
                worker = len(fetched_s) % self.workers
                has_room = len(fetched_s) < self.queue
                room_s = 0.0 if has_room else given_s[len(fetched_s) - self.queue]
                if len(fetched_s) >= self.full:
                    free_s[worker] = max(free_s[worker], room_s) + self.batch_s * self.workers
                fetched_s.append(free_s[worker])
            needed = max(number, min(self.ahead, batches) - 1)
            clock.sleep(fetched_s[needed] - clock.now_s())
            clock.sleep(self.handover_s)
            given_s.append(clock.now_s())
            yield [0] * BATCH

    def rate(self, step_s: float) -> float:
        """Return the samples/s of an endless loop whose steps take ``step_s``."""
        return BATCH / max(self.batch_s, step_s + self.handover_s)


def watched(
    loader: SimulatedLoader,
    batches: int,
    step_s: float,
    *,
    epochs: int = 1,
    between: Callable[[int, VirtualClock], None] | None = None,
    replay: ReplaySettings | None = None,
) -> Metrics:
    """Return the figures of a loop over ``loader``; ``between`` is called after each epoch."""
    records = recorded(loader, batches, step_s, epochs=epochs, between=between, replay=replay)
    return figures(records, replay)


def figures(records: list[Record], replay: ReplaySettings | None = None) -> Metrics:
    """Return the figures that a report has for a log."""
    return outcome_of_log(records, replay).metrics


def outcome_of_log(
    records: list[Record],
    replay: ReplaySettings | None = None,
    samples: Samples = Samples({}, 0.0, ()),  # noqa: B008  samples are frozen
) -> Outcome:
    """Return the outcome of the first loader of a log, with these readings of the machine."""
    batches = 0 if replay is None else replay.batches
    return outcome(table(*records), 0, samples, step_cost_s=0.0, replay_batches=batches)


def recorded(
    loader: SimulatedLoader,
    batches: int,
    step_s: float,
    *,
    epochs: int = 1,
    between: Callable[[int, VirtualClock], None] | None = None,
    replay: ReplaySettings | None = None,
) -> list[Record]:
    """Return the log of such a loop."""
    clock, log = VirtualClock(), MemoryLog()
    repeated = None
    if replay is not None:
        repeated = Replay(replay, 0, log, clock=clock.now_s)
    for number in range(epochs):
        epoch = TimedEpoch(
            lambda: loader.epoch(batches, clock),
            0,
            number,
            log,
            replay=repeated,
            clock=clock.now_s,
        )
        for _ in epoch:
            clock.sleep(step_s)
        if between is not None:
            between(number, clock)
    return log.records()
