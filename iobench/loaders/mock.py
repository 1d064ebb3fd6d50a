"""``mock``: each item takes ``item_s``, by arithmetic on a clock instead of by work.

As torch's DataLoader does it: batch i belongs to worker i modulo ``workers``; each worker has
at most ``prefetch`` batches made or in the making, and starts its next once the oldest of them
is taken. Without workers a batch is made when it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from iobench.clock import Clock
from iobench.loaders.null import batch_sizes, placeholder
from iobench.loaders.protocol import Batch, Framework, LoaderSettings
from iobench.trial import Place


class MockLoader:
    """``workers`` of them supply ``workers / item_s`` samples a second; without any, 1 / item_s."""

    framework: Framework = "none"
    reads: str | None = None

    def __init__(self, place: Place | None, settings: LoaderSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self.notes: Sequence[str] = (f"emulated: each item takes {settings.item_s * 1e3:g} ms",)

    def epoch(self, number: int) -> Iterator[Batch]:
        """A million samples, each batch when it is ready."""
        settings, clock = self._settings, self._clock
        ahead = settings.workers * settings.prefetch
        start_s = clock.now_s()
        free_s = [start_s] * settings.workers  # when each worker has made what it was asked for
        asked_s = [start_s] * ahead  # when the last ``ahead`` batches were asked for, in a ring
        for place, samples in enumerate(batch_sizes(settings.batch_size)):
            if ahead:
                worker = place % settings.workers
                begin_s = max(free_s[worker], asked_s[place % ahead])
                free_s[worker] = ready_s = begin_s + samples * settings.item_s
            else:
                ready_s = clock.now_s() + samples * settings.item_s
            clock.sleep(ready_s - clock.now_s())
            if ahead:
                # Taking this batch is what asks for the one ``ahead`` places later.
                asked_s[place % ahead] = clock.now_s()
            yield placeholder(samples)

    def close(self) -> None:
        """Nothing to end."""
