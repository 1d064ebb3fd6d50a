"""``mxnet-record``: ``dataprep.to_mxnet``, in which ImageRecordIter reads RecordIO shards."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dataprep.adapters import to_mxnet
from iobench.clock import Clock
from iobench.errors import Unavailable
from iobench.loaders.patterns import of_mxnet_record
from iobench.loaders.protocol import (
    Batch,
    FirstBatch,
    LoaderSettings,
    PlacedLoader,
    ReadPattern,
    augmentation_of,
)
from iobench.stored import open_shards
from iobench.trial import Place

if TYPE_CHECKING:
    from dataprep.adapters.mxnet import RecordBatches


class MXNetRecordLoader(PlacedLoader):
    """``workers`` threads decode, ``prefetch`` batches ahead.

    There is at most one thread fewer than processors.
    """

    name = "mxnet-record"
    framework = "mxnet"
    reads = "recordio"

    def __init__(self, place: Place | None, settings: LoaderSettings, clock: Clock) -> None:
        super().__init__(place, settings, clock)
        if not settings.decode:
            raise Unavailable("ImageRecordIter always decodes: take the loader 'raw' instead")
        # As in src/io/iter_image_recordio_2.cc; OpenMP counts the processors of this process.
        most = max(1, len(os.sched_getaffinity(0)) - 1)
        threads = min(max(1, settings.workers), most)
        self.notes = ["records are written to local files of 64 MB, which ImageRecordIter reads"]
        if threads != settings.workers:
            self.notes.append(
                f"ImageRecordIter decodes in 1 to {most} threads here: {settings.workers} workers "
                f"mean {threads}"
            )
        self._batches: RecordBatches | None = None

    def epoch(self, number: int) -> Iterator[Batch]:
        """Batches of float32 (N, 3, S, S) images with float32 labels."""
        if self._batches is None:
            begun_s = self.clock.now_s()
            dataset = open_shards(self.place, "recordio")
            self.counter = dataset.count_reads()
            # ImageRecordIter starts, reads and decodes in one call, which cannot be divided.
            self.parts = FirstBatch(listing_s=self.clock.now_s() - begun_s)
            settings = self.settings
            self._batches = to_mxnet(
                dataset,
                batch_size=settings.batch_size,
                augmentation=augmentation_of(settings),
                shuffle=settings.shuffle,
                seed=settings.seed,
                rank=0,  # not ``by_rank``: all samples, whatever the environment says
                world_size=1,
                threads=max(1, settings.workers),
                prefetch=settings.prefetch,
            )
        self._batches.set_epoch(number)
        for batch in self._batches:
            images, labels = batch.data[0], batch.label[0]
            yield Batch(images, labels, int(labels.shape[0]))

    def read_pattern(self, sample_bytes: float) -> ReadPattern:
        """One thread writes local files, each of many samples, for ImageRecordIter."""
        return of_mxnet_record(sample_bytes)

    def close(self) -> None:
        """Stop reading, and remove the copies."""
        if self._batches is not None:
            self._batches.close()
        self._batches = None
