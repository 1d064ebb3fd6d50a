"""``raw``: whole shards or files, read and cut into records, nothing decoded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import numpy as np

from dataprep.adapters.records import Records
from dataprep.dataset import open_dataset
from dataprep.errors import ConfigError
from dataprep.formats import Buffer
from dataprep.ordered import in_order
from dataprep.sources import open_source
from iobench.clock import Clock
from iobench.image_files import image_files
from iobench.loaders.protocol import Batch, FirstBatch, Framework, LoaderSettings
from iobench.trial import Place

_Order = Callable[[int], Sequence[int]]
_Read = Callable[[_Order], Iterator[tuple[Buffer, int]]]


class RawLoader:
    """``workers`` threads read whole shards, or files, ahead; 0 for none beside the caller's.

    Batches hold lists of buffers: of files ``bytes``, of shards views of what was read, their
    framing and checksums checked. Shards come in random order, the records of each as they lie.
    """

    framework: Framework = "none"
    notes: Sequence[str] = ()

    def __init__(self, place: Place | None, settings: LoaderSettings, clock: Clock) -> None:
        if place is None or place.holds == "empty":
            raise ConfigError("loader 'raw' reads shards or files: give it data")
        self._place = place
        self._settings = settings
        self._clock = clock
        self.reads: str | None = "files"
        if place.holds != "files":
            self.reads = open_dataset(place.uri, place.split, options=place.store).format
        self._read: _Read | None = None
        self._first_batch: FirstBatch | None = None

    def epoch(self, number: int) -> Iterator[Batch]:
        """Batches of encoded images with int64 labels (N,)."""
        is_first, begun_s = self._read is None, self._clock.now_s()
        if self._read is None:
            self._read = self._of_files() if self.reads == "files" else self._of_shards()
        listed_s = self._clock.now_s()

        def order(count: int) -> Sequence[int]:
            places = np.arange(count)
            if self._settings.shuffle:
                places = np.random.default_rng((self._settings.seed, number)).permutation(places)
            found: list[int] = places.tolist()
            return found

        samples = self._read(order)
        batch = self._taken(samples)
        if batch and is_first:
            self._first_batch = self._split(begun_s, listed_s)
        while batch:
            labels = np.array([label for _, label in batch], np.int64)
            yield Batch([image for image, _ in batch], labels, len(batch))
            batch = self._taken(samples)

    def first_batch(self) -> FirstBatch | None:
        """Threads start with the first reads, from which they are not told apart."""
        return self._first_batch

    def close(self) -> None:
        """Forget what was opened; threads end with their epoch."""
        self._read = None

    def _taken(self, samples: Iterator[tuple[Buffer, int]]) -> list[tuple[Buffer, int]]:
        return list(islice(samples, self._settings.batch_size))

    def _split(self, begun_s: float, listed_s: float) -> FirstBatch:
        """The parts of a batch that is there now."""
        return FirstBatch(
            listing_s=listed_s - begun_s,
            worker_start_s=None if self._settings.workers else 0.0,
            fetch_s=self._clock.now_s() - listed_s,
            decode_s=0.0,
        )

    def _of_shards(self) -> _Read:
        place = self._place
        dataset = open_dataset(place.uri, place.split, options=place.store)
        records, shards = Records(dataset), dataset.shards()

        def read(order: _Order) -> Iterator[tuple[Buffer, int]]:
            chosen = [shards[number].samples for number in order(len(shards))]
            contents = in_order(records.fetch, chosen, self._settings.workers)
            for samples, images in zip(chosen, contents, strict=True):
                yield from zip(images, records.labels[samples].tolist(), strict=True)

        return read

    def _of_files(self) -> _Read:
        source = open_source(self._place.uri, options=self._place.store)
        files = image_files(source.list())

        def read(order: _Order) -> Iterator[tuple[Buffer, int]]:
            chosen = order(len(files.names))
            contents = in_order(
                lambda index: source.read(files.located(index)), chosen, self._settings.workers
            )
            for index, content in zip(chosen, contents, strict=True):
                yield content, int(files.labels[index])

        return read
