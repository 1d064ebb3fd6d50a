"""``mxnet-record``: ``dataprep.to_mxnet``, whose ImageRecordIter reads RecordIO shards."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from dataprep.reading.frameworks import to_mxnet
from iobench.clock import Clock
from iobench.data.data_summary import open_shards
from iobench.errors import Unavailable
from iobench.loaders.capabilities import Capabilities
from iobench.loaders.frameworks import FrameworkLoader
from iobench.loaders.protocol import Batch, FirstBatch, ReadPattern
from iobench.loaders.read_patterns import local_record_files
from iobench.loaders.settings import LoaderSettings, augmentation_of
from iobench.results.trial import Location

if TYPE_CHECKING:
    from dataprep.reading.mxnet import RecordBatches


class MXNetRecordLoader(FrameworkLoader):
    """Threads of MXNet decode images, ``prefetch`` batches ahead.

    There are ``workers`` threads, but fewer than this process has processors. There is always at
    least one thread.
    """

    name = "mxnet-record"
    framework = "mxnet"
    reads = "recordio"
    capabilities: ClassVar = Capabilities(
        record_format="recordio",
        image_types=frozenset({"float32"}),
        read_pattern=local_record_files,
    )

    def __init__(self, location: Location | None, settings: LoaderSettings, clock: Clock) -> None:
        super().__init__(location, settings, clock)
        if not settings.decode:
            raise Unavailable("ImageRecordIter always decodes: take the loader 'raw' instead")
        # MXNet has the same rule in src/io/iter_image_recordio_2.cc, where OpenMP counts the
        # processors of this process.
        max_threads = max(1, len(os.sched_getaffinity(0)) - 1)
        threads = min(max(1, settings.workers), max_threads)
        self.notes = ["records are written to local files of 64 MB, which ImageRecordIter reads"]
        if threads != settings.workers:
            self.notes.append(
                f"ImageRecordIter decodes in 1 to {max_threads} threads here: {settings.workers} "
                f"workers mean {threads}"
            )
        self._batches: RecordBatches | None = None

    def epoch(self, number: int) -> Iterator[Batch]:
        """Yield batches of float32 (N, 3, S, S) images with float32 labels."""
        if self._batches is None:
            begun_s = self.clock.now_s()
            dataset = open_shards(self.location, "recordio")
            self.counter = dataset.count_reads()
            # ImageRecordIter starts, reads and decodes in one call, which cannot be divided.
            self.first_batch_parts = FirstBatch(listing_s=self.clock.now_s() - begun_s)
            settings = self.settings
            self._batches = to_mxnet(
                dataset,
                batch_size=settings.batch_size,
                augmentation=augmentation_of(settings),
                shuffle=settings.shuffle,
                seed=settings.seed,
                rank=0,  # Give all samples, also if the environment names a rank.
                world_size=1,
                threads=max(1, settings.workers),
                prefetch=settings.prefetch,
            )
        self._batches.set_epoch(number)
        for batch in self._batches:
            images, labels = batch.data[0], batch.label[0]
            yield Batch(images, labels, int(labels.shape[0]))

    def read_pattern(self, sample_bytes: float) -> ReadPattern:
        """Return the pattern of one thread that writes local files of many samples."""
        return local_record_files(self.settings, sample_bytes)

    def close(self) -> None:
        """Stop reading, and remove the local files."""
        if self._batches is not None:
            self._batches.close()
        self._batches = None
