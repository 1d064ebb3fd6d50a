"""``raw``: read whole shards or files and cut them into records; decode nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import numpy as np

from dataprep.adapters.records import Records
from dataprep.errors import ConfigError
from dataprep.formats import Buffer
from dataprep.ordered import in_order
from dataprep.reading.read_counter import ReadCounter, ReadTotals
from dataprep.sources import open_source
from iobench.clock import Clock
from iobench.loaders.patterns import by_object
from iobench.loaders.protocol import Batch, FirstBatch, Framework, LoaderSettings, ReadPattern
from iobench.stored import image_files, open_shards, summarize_data
from iobench.trial import Place

_Read = Callable[[Sequence[int], int], Iterator[tuple[Buffer, int]]]
"""Read shards or files, given their order and a number of threads; yields images and labels."""


class RawLoader:
    """``workers`` threads read whole shards, or files, ahead; with 0 the calling thread reads.

    Batches contain lists of buffers: ``bytes`` of files, or views of shards, whose framing and
    checksums are checked. Shards come in random order, their records in stored order.
    """

    framework: Framework = "none"
    notes: Sequence[str] = ()

    def __init__(self, place: Place | None, settings: LoaderSettings, clock: Clock) -> None:
        if place is None or place.holds == "empty":
            raise ConfigError("loader 'raw' reads shards or files: give it data")
        self._place, self._settings, self._clock = place, settings, clock
        self.reads: str | None = "files"
        if place.holds != "files":
            self.reads = open_shards(place).format
        self._opened: tuple[int, _Read] | None = None
        self._counter: ReadCounter | None = None
        self._first_batch: FirstBatch | None = None

    def epoch(self, number: int) -> Iterator[Batch]:
        """Batches of encoded images with int64 labels (N,)."""
        settings, begun_s = self._settings, self._clock.now_s()
        if self._opened is None:
            self._counter = ReadCounter()
            open_data = _files if self.reads == "files" else _shards
            self._opened = open_data(self._place, self._counter)
        listed_s = self._clock.now_s()
        count, read = self._opened
        order = np.arange(count)
        if settings.shuffle:
            order = np.random.default_rng((settings.seed, number)).permutation(order)
        samples = read(order.tolist(), settings.workers)
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
        """Samples and bytes that have arrived since the data were opened."""
        return self._counter.totals() if self._counter is not None else ReadTotals()

    def read_pattern(self, sample_bytes: float) -> ReadPattern:
        """Each thread reads one shard, or one file, at a time."""
        data = summarize_data(self._place, self.reads or "files")
        shard_samples = math.ceil(data.samples / max(1, data.objects))
        return by_object(self._settings, shard_samples)

    def first_batch(self) -> FirstBatch | None:
        """The parts; the start of threads is part of the first reads."""
        return self._first_batch

    def close(self) -> None:
        """Release the data; threads end with their epoch."""
        self._opened = None


def _shards(place: Place, counter: ReadCounter) -> tuple[int, _Read]:
    dataset = open_shards(place)
    dataset.read_counter = counter
    records, shards = Records(dataset), dataset.shards()

    def read(order: Sequence[int], threads: int) -> Iterator[tuple[Buffer, int]]:
        chosen = [shards[number].samples for number in order]
        contents = in_order(records.fetch, chosen, threads)
        for samples, images in zip(chosen, contents, strict=True):
            yield from zip(images, records.labels[samples].tolist(), strict=True)

    return len(shards), read


def _files(place: Place, counter: ReadCounter) -> tuple[int, _Read]:
    source = open_source(place.uri, options=place.store)
    files = image_files(source.list(), place.every)

    def read_file(index: int) -> Buffer:
        data = source.read(files.located(index))
        counter.add(1, len(data))
        return data

    def read(order: Sequence[int], threads: int) -> Iterator[tuple[Buffer, int]]:
        contents = in_order(read_file, order, threads)
        yield from zip(contents, files.labels[order].tolist(), strict=True)

    return len(files.names), read
