"""Loaders that read real data and take known times on the clock that they are given.

A file takes a time to open and a byte a time to decode, so that the gains of resizing and of shards
are known. Workers are events on the clock, as in ``iobench.loaders.mock``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dataprep.reading.dataset import open_dataset
from dataprep.sources.imagefolder import ImageFolder
from iobench.clock import Clock
from iobench.data.data_summary import image_files
from iobench.loaders import Batch, LoaderSettings
from iobench.results.trial import Location

OPEN_S = 0.002
S_PER_BYTE = 50e-9


class Timed:
    """Batches arrive at the times at which their workers would have made them."""

    framework = "none"
    reads: str | None = "tfrecord"
    notes: Sequence[str] = ()
    opens_s = 0.0

    def __init__(self, location: Location | None, settings: LoaderSettings, clock: Clock) -> None:
        assert location is not None
        self._settings, self._clock = settings, clock
        self._takes_s = [self.opens_s + S_PER_BYTE * size for size in self.sizes(location)]

    def sizes(self, location: Location) -> list[int]:
        """The size of each encoded image, in bytes."""
        with open_dataset(location.uri, location.split) as dataset:
            return [len(sample.image) for sample in dataset]

    def epoch(self, number: int) -> Iterator[Batch]:
        """All samples once."""
        settings, clock = self._settings, self._clock
        ahead = settings.workers * settings.prefetch
        free_s = [clock.now_s()] * settings.workers
        asked_s = [clock.now_s()] * ahead
        starts = range(0, len(self._takes_s), settings.batch_size)
        for location, start in enumerate(starts):
            takes_s = self._takes_s[start : start + settings.batch_size]
            if ahead:
                worker = location % settings.workers
                begun_s = max(free_s[worker], asked_s[location % ahead])
                free_s[worker] = ready_s = begun_s + sum(takes_s)
            else:
                ready_s = clock.now_s() + sum(takes_s)
            clock.sleep(ready_s - clock.now_s())
            if ahead:
                asked_s[location % ahead] = clock.now_s()
            yield Batch(None, None, len(takes_s))

    def close(self) -> None:
        """Do nothing: there are no resources."""


class TimedFolder(Timed):
    """Reads one image from each file."""

    reads = "files"
    opens_s = OPEN_S

    def sizes(self, location: Location) -> list[int]:
        """The sizes of the files in class folders."""
        return [int(size) for size in image_files(ImageFolder(location.uri).list()).sizes]


ENTRY_POINTS = """[iobench.loaders]
timed-folder = tests.e2e.timed_loaders:TimedFolder
timed-shards = tests.e2e.timed_loaders:Timed
"""
