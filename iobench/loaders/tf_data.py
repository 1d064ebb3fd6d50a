"""``tf-data``: ``dataprep.to_tf``, tf.data over TFRecord shards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dataprep.adapters import to_tf
from iobench.clock import Clock
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

_READER = "records come from dataprep's own reader, 64 at a time through a Python generator"
_SMALLER_CROPS = (
    "TensorFlow's random crops are smaller than those of the other loaders: on average 0.38 of "
    "the image, not 0.44"
)

_BUFFER = 2048


class TFDataLoader:
    """``workers`` threads prepare images, ``prefetch`` batches ahead; 0 for none of either."""

    framework: Framework = "tensorflow"
    reads: str | None = "tfrecord"

    def __init__(self, place: Place | None, settings: LoaderSettings, clock: Clock) -> None:
        self._place = need_place(place, "tf-data", "shards")
        self._settings = settings
        crops = [_SMALLER_CROPS] if settings.decode and settings.augment else []
        self.notes: Sequence[str] = [_READER, *crops]
        self._tf: Any = need_framework("tensorflow")
        self._clock = clock
        self._opened: tuple[Any, Any] | None = None
        self._first_batch: FirstBatch | None = None

    def epoch(self, number: int) -> Iterator[Batch]:
        """Batches of (N, S, S, 3) images, or of strings, with int64 labels."""
        if self._opened is None:
            begun_s = self._clock.now_s()
            dataset = open_shards(self._place, "tfrecord")
            listed_s = self._clock.now_s()
            settings, tf = self._settings, self._tf
            with tf.device("/CPU:0"):
                epoch = tf.Variable(0, dtype=tf.int64, trainable=False)
                batches = to_tf(
                    dataset,
                    batch_size=settings.batch_size,
                    decode=settings.decode,
                    augmentation=augmentation_of(settings, "HWC"),
                    shuffle=settings.shuffle,
                    shuffle_buffer=settings.shuffle_buffer or _BUFFER,
                    seed=settings.seed,
                    epoch=epoch,
                    parallel_calls=settings.workers,
                    prefetch=settings.prefetch,
                )
            self._opened = batches, epoch
            self._first_batch = FirstBatch(listed_s - begun_s, self._clock.now_s() - listed_s)
        batches, epoch = self._opened
        epoch.assign(number)
        for images, labels in batches:
            yield Batch(images, labels, int(labels.shape[0]))

    def first_batch(self) -> FirstBatch | None:
        """Until the pipeline stood; within it TensorFlow tells no reading from decoding."""
        return self._first_batch

    def close(self) -> None:
        """Drop the pipeline; its threads end with it."""
        self._opened = None
