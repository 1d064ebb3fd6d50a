"""``mxnet-record``: ``dataprep.to_mxnet``, ImageRecordIter over RecordIO shards."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from dataprep.adapters import to_mxnet
from iobench.clock import Clock
from iobench.errors import Unavailable
from iobench.loaders.protocol import (
    Batch,
    FirstBatch,
    Framework,
    LoaderSettings,
    augmentation_of,
    need_framework,
    need_place,
)
from iobench.stored import open_shards
from iobench.trial import Place

if TYPE_CHECKING:
    from dataprep.adapters.mxnet import RecordBatches

_COPIED = "records are written to local files of 64 MB, which ImageRecordIter reads"
_ALWAYS_THREADS = "ImageRecordIter always decodes beside the training loop: 0 workers mean one"
_FEWER_THREADS = "ImageRecordIter leaves one processor alone: {asked} workers are {most} here"


class MXNetRecordLoader:
    """``workers`` threads decode, one fewer than there are processors at most.

    ``prefetch`` batches ahead.
    """

    framework: Framework = "mxnet"
    reads: str | None = "recordio"

    def __init__(self, place: Place | None, settings: LoaderSettings, clock: Clock) -> None:
        self._place = need_place(place, "mxnet-record", "shards")
        if not settings.decode:
            raise Unavailable("ImageRecordIter always decodes: take the loader 'raw' instead")
        self._settings = settings
        self._clock = clock
        # src/io/iter_image_recordio_2.cc; OpenMP counts the processors that this process may use.
        most = max(1, len(os.sched_getaffinity(0)) - 1)
        self.notes: Sequence[str] = [_COPIED]
        if not settings.workers:
            self.notes = [_COPIED, _ALWAYS_THREADS]
        elif settings.workers > most:
            self.notes = [_COPIED, _FEWER_THREADS.format(asked=settings.workers, most=most)]
        need_framework("mxnet")
        self._batches: RecordBatches | None = None
        self._first_batch: FirstBatch | None = None

    def epoch(self, number: int) -> Iterator[Batch]:
        """Batches of float32 (N, 3, S, S) images with float32 labels."""
        if self._batches is None:
            begun_s = self._clock.now_s()
            dataset = open_shards(self._place, "recordio")
            self._first_batch = FirstBatch(listing_s=self._clock.now_s() - begun_s)
            settings = self._settings
            self._batches = to_mxnet(
                dataset,
                batch_size=settings.batch_size,
                augmentation=augmentation_of(settings),
                shuffle=settings.shuffle,
                seed=settings.seed,
                threads=max(1, settings.workers),
                prefetch=settings.prefetch,
            )
        self._batches.set_epoch(number)
        for batch in self._batches:
            images, labels = batch.data[0], batch.label[0]
            yield Batch(images, labels, int(labels.shape[0]))

    def first_batch(self) -> FirstBatch | None:
        """Listing alone: ImageRecordIter starts, reads and decodes within one call."""
        return self._first_batch

    def close(self) -> None:
        """Stop reading; what was copied here is removed."""
        if self._batches is not None:
            self._batches.close()
        self._batches = None
