"""``raw``: read whole shards or files and cut them into records; decode nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import ClassVar, NamedTuple, TypeAlias

import numpy as np

from dataprep.errors import ConfigError
from dataprep.formats import Buffer
from dataprep.reading.read_counter import ReadCounter, ReadTotals
from dataprep.reading.record_reader import Records
from dataprep.sources import open_source
from dataprep.threaded_map import in_order
from iobench.clock import Clock
from iobench.data.data_summary import image_files, open_shards, summarize_data
from iobench.loaders.capabilities import Capabilities
from iobench.loaders.protocol import Batch, FirstBatch, Framework, ReadPattern
from iobench.loaders.read_patterns import shard_by_shard
from iobench.loaders.settings import LoaderSettings
from iobench.results.trial import Location

ReadSamples: TypeAlias = Callable[[Sequence[int], int], Iterator[tuple[Buffer, int]]]
"""A function that yields the images and labels of shards or files. Its arguments are the order of
the shards or files, and a number of threads."""


class _OpenedData(NamedTuple):
    """The number of shards or files, and the function that reads them."""

    objects: int
    read: ReadSamples


class RawLoader:
    """A loader whose threads read whole shards, or files, ahead.

    There are ``workers`` threads; with 0 the calling thread reads. Batches contain lists of
    buffers: ``bytes`` of files, or views of shards, whose framing and checksums are checked. With
    ``shuffle``, shards or files come in random order. The records of a shard always come in the
    order in which they are stored.
    """

    framework: Framework = "none"
    notes: Sequence[str] = ()
    capabilities: ClassVar = Capabilities(
        makes_pixels=False, reads_stored_pixels=True, read_pattern=shard_by_shard
    )

    def __init__(self, location: Location | None, settings: LoaderSettings, clock: Clock) -> None:
        if location is None or location.holds == "empty":
            raise ConfigError("loader 'raw' reads shards or files: give it data")
        self._location, self._settings, self._clock = location, settings, clock
        self.reads: str | None = "files"
        if location.holds != "files":
            self.reads = open_shards(location).format
        self._opened: _OpenedData | None = None
        self._counter: ReadCounter | None = None
        self._first_batch: FirstBatch | None = None

    def epoch(self, number: int) -> Iterator[Batch]:
        """Yield batches of encoded images with int64 labels (N,)."""
        settings, begun_s = self._settings, self._clock.now_s()
        if self._opened is None:
            self._counter = ReadCounter()
            open_data = _open_files if self.reads == "files" else _open_shards
            self._opened = open_data(self._location, self._counter)
        listed_s = self._clock.now_s()
        order = np.arange(self._opened.objects)
        if settings.shuffle:
            order = np.random.default_rng((settings.seed, number)).permutation(order)
        samples = self._opened.read(order.tolist(), settings.workers)
        while batch := list(islice(samples, settings.batch_size)):
            if self._first_batch is None:
                self._first_batch = FirstBatch(
                    listing_s=listed_s - begun_s,
                    worker_start_s=None if settings.workers else 0.0,
                    fetch_s=self._clock.now_s() - listed_s,
                    decode_s=0.0,
                )
            labels = np.array([label for _, label in batch], np.int64)
            yield Batch([image for image, _ in batch], labels, len(batch))

    def read_so_far(self) -> ReadTotals:
        """Return the samples and bytes that have arrived since the data were opened."""
        return self._counter.totals() if self._counter is not None else ReadTotals()

    def read_pattern(self, sample_bytes: float) -> ReadPattern:
        """Return the pattern of threads that read one shard, or one file, at a time."""
        data = summarize_data(self._location, self.reads or "files")
        shard_samples = math.ceil(data.samples / max(1, data.objects))
        return shard_by_shard(self._settings, sample_bytes, shard_samples)

    def first_batch(self) -> FirstBatch | None:
        """Return the parts of the time until the first batch; None before this batch.

        The time in which threads start is not known. It is part of ``fetch_s``.
        """
        return self._first_batch

    def close(self) -> None:
        """Release the data. Threads have ended with their epoch."""
        self._opened = None


def _open_shards(location: Location, counter: ReadCounter) -> _OpenedData:
    """Open shards; ``counter`` counts the samples and bytes that are read."""
    dataset = open_shards(location)
    dataset.read_counter = counter
    records, shards = Records(dataset), dataset.shards()

    def read(order: Sequence[int], threads: int) -> Iterator[tuple[Buffer, int]]:
        samples_of_shards = [shards[number].samples for number in order]
        images_of_shards = in_order(records.fetch, samples_of_shards, threads)
        for samples, images in zip(samples_of_shards, images_of_shards, strict=True):
            yield from zip(images, records.labels[samples].tolist(), strict=True)

    return _OpenedData(len(shards), read)


def _open_files(location: Location, counter: ReadCounter) -> _OpenedData:
    """Open image files; ``counter`` counts the samples and bytes that are read."""
    source = open_source(location.uri, options=location.store)
    files = image_files(source.list(), location.every)

    def read_file(index: int) -> Buffer:
        data = source.read(files.located(index))
        counter.add(1, len(data))
        return data

    def read(order: Sequence[int], threads: int) -> Iterator[tuple[Buffer, int]]:
        images = in_order(read_file, order, threads)
        yield from zip(images, files.labels[order].tolist(), strict=True)

    return _OpenedData(len(files.names), read)
