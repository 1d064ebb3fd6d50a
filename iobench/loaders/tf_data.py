"""``tf-data``: ``dataprep.to_tf``, a tf.data pipeline over shards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

from dataprep.reading.frameworks import to_tf
from iobench.clock import Clock
from iobench.data.data_summary import open_shards
from iobench.loaders.capabilities import Capabilities
from iobench.loaders.frameworks import FrameworkLoader
from iobench.loaders.protocol import Batch, FirstBatch, ReadPattern
from iobench.loaders.read_patterns import TF_SHUFFLE_BUFFER, windows_of_one_generator
from iobench.loaders.settings import LoaderSettings, augmentation_of
from iobench.results.trial import Location


class _OpenedData(NamedTuple):
    """A pipeline of batches, and the variable that has the number of its epoch."""

    batches: Any
    epoch: Any


class TFDataLoader(FrameworkLoader):
    """Threads of TensorFlow decode and augment images, ``prefetch`` batches ahead.

    There are ``workers`` threads. With ``workers`` 0 images are prepared one after the other, and
    no batch is made ahead.
    """

    name = "tf-data"
    framework = "tensorflow"
    capabilities: ClassVar = Capabilities(
        image_types=frozenset({"uint8", "float32"}),
        access_modes=frozenset({"pipe"}),
        read_pattern=windows_of_one_generator,
    )

    def __init__(self, location: Location | None, settings: LoaderSettings, clock: Clock) -> None:
        super().__init__(location, settings, clock)
        self.notes.append(
            "records come from dataprep's own reader, 64 at a time through a Python generator"
        )
        if settings.decode and settings.augment:
            self.notes.append(
                "TensorFlow's random crops are smaller than those of the other loaders: on average "
                "0.38 of the image, not 0.44"
            )
        self._opened: _OpenedData | None = None

    def epoch(self, number: int) -> Iterator[Batch]:
        """Yield batches of (N, S, S, 3) images, or of encoded images, with int64 labels."""
        if self._opened is None:
            self._opened = self._open()
        self._opened.epoch.assign(number)
        for images, labels in self._opened.batches:
            yield Batch(images, labels, int(labels.shape[0]))

    def _open(self) -> _OpenedData:
        """Open the data, and build the pipeline that reads them."""
        begun_s = self.clock.now_s()
        dataset = open_shards(self.location)
        self.counter = dataset.count_reads()
        listed_s = self.clock.now_s()
        settings, tf = self.settings, self.module
        with tf.device("/CPU:0"):
            epoch = tf.Variable(0, dtype=tf.int64, trainable=False)
            batches = to_tf(
                dataset,
                batch_size=settings.batch_size,
                decode=settings.decode,
                augmentation=augmentation_of(settings, "HWC"),
                shuffle=settings.shuffle,
                shuffle_buffer=settings.shuffle_buffer or TF_SHUFFLE_BUFFER,
                seed=settings.seed,
                rank=0,  # Give all samples, also if the environment names a rank.
                world_size=1,
                epoch=epoch,
                parallel_calls=settings.workers,
                prefetch=settings.prefetch,
            )
        # TensorFlow does not say how long the pipeline reads and how long it decodes.
        self.first_batch_parts = FirstBatch(
            listing_s=listed_s - begun_s, worker_start_s=self.clock.now_s() - listed_s
        )
        return _OpenedData(batches, epoch)

    def read_pattern(self, sample_bytes: float) -> ReadPattern:
        """Return the pattern of one generator that reads windows of many samples."""
        return windows_of_one_generator(self.settings, sample_bytes)

    def close(self) -> None:
        """Drop the pipeline; its threads end with it."""
        self._opened = None
