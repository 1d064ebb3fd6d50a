"""``mock``: each sample takes ``item_s`` seconds on a clock, without any work.

Batches are made as in torch's DataLoader. Worker ``i % workers`` makes batch ``i``. Each worker has
at most ``prefetch`` batches that are begun or finished, and begins its next batch when its oldest
batch is taken. Without workers, a batch is made when it is requested.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from dataprep.reading.read_counter import ReadTotals
from iobench.clock import Clock
from iobench.loaders.capabilities import Capabilities
from iobench.loaders.null import batch_sizes, placeholder
from iobench.loaders.protocol import Batch, Framework, ReadPattern
from iobench.loaders.read_patterns import batch_by_batch
from iobench.loaders.settings import LoaderSettings
from iobench.results.trial import Location


@dataclass(frozen=True, slots=True)
class _ScheduledBatch:
    """A batch that a worker makes from ``begins_s`` until ``ready_s``."""

    samples: int
    begins_s: float
    ready_s: float

    def finished_samples(self, now_s: float) -> int:
        """Return how many of its samples are finished at the moment ``now_s``."""
        if now_s >= self.ready_s:
            return self.samples
        length_s = self.ready_s - self.begins_s
        return max(0, int(self.samples * (now_s - self.begins_s) / length_s))


class MockLoader:
    """A loader that makes at most ``workers`` / ``item_s`` samples per second.

    Without workers, a batch takes ``item_s`` seconds for each sample from when it is requested.
    """

    framework: Framework = "none"
    reads: str | None = None
    by_rank = True  # Every rank makes samples of its own.
    capabilities: ClassVar = Capabilities(
        reads_data=False, makes_pixels=False, read_pattern=batch_by_batch
    )

    def __init__(self, location: Location | None, settings: LoaderSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._taken_samples = 0
        self._scheduled: deque[_ScheduledBatch] = deque()
        self.notes: Sequence[str] = (f"emulated: each item takes {settings.item_s * 1e3:g} ms",)

    def epoch(self, number: int) -> Iterator[Batch]:
        """Yield empty batches, each when it is ready. The epoch is longer than any trial."""
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
                self._scheduled.append(_ScheduledBatch(samples, begins_s, free_s[worker]))
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
        """Return the samples that are finished so far, also those in unfinished batches.

        The number of bytes is 0.
        """
        now_s = self._clock.now_s()
        waiting_samples = sum(batch.finished_samples(now_s) for batch in self._scheduled)
        return ReadTotals(self._taken_samples + waiting_samples, 0)

    def read_pattern(self, sample_bytes: float) -> ReadPattern:
        """Return the pattern of workers that make one batch at a time."""
        return batch_by_batch(self._settings)

    def close(self) -> None:
        """Do nothing: there is nothing to end."""
