"""Loaders that read real data and take known times for it, on whatever clock they are given.

A file takes a while to open, a byte a while to decode: so that what resizing and packing bring is
known. Workers are events on the clock, as in ``iobench.loaders.mock``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dataprep.reading.dataset import open_dataset
from dataprep.sources.imagefolder import ImageFolder
from iobench.clock import Clock
from iobench.data.data_summary import image_files
from iobench.loaders import Batch, LoaderSettings
from iobench.results.trial import Place

OPEN_S = 0.002
S_PER_BYTE = 50e-9


class Timed:
    """Batches that come when their workers would have made them."""

    framework = "none"
    reads: str | None = "tfrecord"
    notes: Sequence[str] = ()
    opens_s = 0.0

    def __init__(self, location: Place | None, settings: LoaderSettings, clock: Clock) -> None:
        assert location is not None
        self._settings, self._clock = settings, clock
        self._takes_s = [self.opens_s + S_PER_BYTE * size for size in self.sizes(location)]

    def sizes(self, location: Place) -> list[int]:
        """Bytes of each encoded image."""
        with open_dataset(location.uri, location.split) as dataset:
            return [len(sample.image) for sample in dataset]

    def epoch(self, number: int) -> Iterator[Batch]:
        """All samples once."""
        settings, clock = self._settings, self._clock
        ahead = settings.workers * settings.prefetch
        free_s = [clock.now_s()] * settings.workers
        asked_s = [clock.now_s()] * ahead
        starts = range(0, len(self._takes_s), settings.batch_size)
        for position, start in enumerate(starts):
            takes_s = self._takes_s[start : start + settings.batch_size]
            if ahead:
                worker = position % settings.workers
                begun_s = max(free_s[worker], asked_s[position % ahead])
                free_s[worker] = ready_s = begun_s + sum(takes_s)
            else:
                ready_s = clock.now_s() + sum(takes_s)
            clock.sleep(ready_s - clock.now_s())
            if ahead:
                asked_s[position % ahead] = clock.now_s()
            yield Batch(None, None, len(takes_s))

    def close(self) -> None:
        """Nothing to end."""


class TimedFolder(Timed):
    """A file an image."""

    reads = "files"
    opens_s = OPEN_S

    def sizes(self, location: Place) -> list[int]:
        """As they lie in class folders."""
        return [int(size) for size in image_files(ImageFolder(location.uri).list()).sizes]


ENTRY_POINTS = """[iobench.loaders]
timed-folder = tests.e2e.timed_loaders:TimedFolder
timed-shards = tests.e2e.timed_loaders:Timed
"""
