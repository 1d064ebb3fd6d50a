"""``mock``: each item takes ``item_s`` on a clock, without any work.

Batches come as from torch's DataLoader: batch i belongs to worker i modulo ``workers``; each worker
has at most ``prefetch`` batches finished or begun, and begins its next one when the oldest is
taken. Without workers a batch is made when it is requested.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from iobench.clock import Clock
from iobench.loaders.null import batch_sizes, placeholder
from iobench.loaders.protocol import Batch, Framework, LoaderSettings
from iobench.trial import Place


class MockLoader:
    """A loader of ``workers / item_s`` samples per second; without workers, of 1 / item_s."""

    framework: Framework = "none"
    reads: str | None = None

    def __init__(self, place: Place | None, settings: LoaderSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self.notes: Sequence[str] = (f"emulated: each item takes {settings.item_s * 1e3:g} ms",)

    def epoch(self, number: int) -> Iterator[Batch]:
        """A million samples; each batch comes when it is ready."""
        settings, clock = self._settings, self._clock
        ahead = settings.workers * settings.prefetch
        start_s = clock.now_s()
        free_s = [start_s] * settings.workers  # when each worker has finished its batches
        asked_s = [start_s] * ahead  # when the last ``ahead`` batches were requested, in a ring
        for place, samples in enumerate(batch_sizes(settings.batch_size)):
            if ahead:
                worker = place % settings.workers
                begin_s = max(free_s[worker], asked_s[place % ahead])
                free_s[worker] = ready_s = begin_s + samples * settings.item_s
            else:
                ready_s = clock.now_s() + samples * settings.item_s
            clock.sleep(ready_s - clock.now_s())
            if ahead:
                # Taking this batch requests the one ``ahead`` places later.
                asked_s[place % ahead] = clock.now_s()
            yield placeholder(samples)

    def close(self) -> None:
        """Nothing to end."""
