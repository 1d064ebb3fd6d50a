"""``mock``: each item takes ``item_s`` on a clock, without any work.

Batches come as from torch's DataLoader: batch i belongs to worker i modulo ``workers``; each worker
has at most ``prefetch`` batches finished or begun, and begins its next one when the oldest is
taken. Without workers a batch is made when it is requested.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dataprep.reading.read_counter import ReadTotals
from iobench.clock import Clock
from iobench.loaders.null import batch_sizes, placeholder
from iobench.loaders.patterns import by_batch
from iobench.loaders.protocol import Batch, Framework, LoaderSettings, ReadPattern
from iobench.trial import Place


@dataclass(frozen=True, slots=True)
class _Scheduled:
    """A batch that a worker makes from ``begins_s`` until ``ready_s``."""

    samples: int
    begins_s: float
    ready_s: float

    def made(self, now_s: float) -> int:
        """Samples of the batch that are made at the moment ``now_s``."""
        if now_s >= self.ready_s:
            return self.samples
        length_s = self.ready_s - self.begins_s
        return max(0, int(self.samples * (now_s - self.begins_s) / length_s))


class MockLoader:
    """A loader of ``workers / item_s`` samples per second; without workers, of 1 / item_s."""

    framework: Framework = "none"
    reads: str | None = None
    by_rank = True  # Every rank makes samples of its own.

    def __init__(self, place: Place | None, settings: LoaderSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._taken_samples = 0
        self._scheduled: deque[_Scheduled] = deque()
        self.notes: Sequence[str] = (f"emulated: each item takes {settings.item_s * 1e3:g} ms",)

    def epoch(self, number: int) -> Iterator[Batch]:
        """Batches without end; each comes when it is ready."""
        settings, clock = self._settings, self._clock
        sizes = batch_sizes(settings.batch_size)
        workers = max(1, settings.workers)
        free_s = [clock.now_s()] * workers  # when each worker has finished its batches
        self._scheduled.clear()
        requested = 0

        def request() -> None:
            """Let the next worker in turn begin its next batch as soon as it is free."""
            nonlocal requested
            samples = next(sizes, 0)
            if samples:
                worker = requested % workers
                begins_s = max(free_s[worker], clock.now_s())
                free_s[worker] = begins_s + samples * settings.item_s
                self._scheduled.append(_Scheduled(samples, begins_s, free_s[worker]))
                requested += 1

        for _ in range(settings.workers * settings.prefetch):
            request()
        while True:
            if not settings.workers:
                request()
            if not self._scheduled:
                return
            batch = self._scheduled[0]
            clock.sleep(batch.ready_s - clock.now_s())
            self._scheduled.popleft()
            self._taken_samples += batch.samples
            if settings.workers:
                request()
            yield placeholder(batch.samples)

    def read_so_far(self) -> ReadTotals:
        """Samples that are made so far, those of unfinished batches included; no bytes."""
        now_s = self._clock.now_s()
        waiting = sum(batch.made(now_s) for batch in self._scheduled)
        return ReadTotals(self._taken_samples + waiting, 0)

    def read_pattern(self, sample_bytes: float) -> ReadPattern:
        """Each worker makes one batch at a time."""
        return by_batch(self._settings)

    def close(self) -> None:
        """Nothing to end."""
