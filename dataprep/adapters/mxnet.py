"""A data set as an iterator of MXNet, over ImageRecordIter."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from dataprep.adapters import import_framework
from dataprep.adapters.augment import (
    AREA,
    ASPECT,
    EVALUATION_SHARE,
    IMAGENET_MEAN,
    IMAGENET_STD,
    Augmentation,
)
from dataprep.assign import Order, epoch_order, framework_seed
from dataprep.dataset import Dataset
from dataprep.errors import DatasetError
from dataprep.formats.recordio import label_count
from dataprep.manifest import ShardEntry
from dataprep.ordered import in_order
from dataprep.stores.local import LocalStore

mx: Any = import_framework("mxnet")

_CHUNK_MB = 64  # shuffled as a whole; an eighth of it is read, and its records shuffled, at once
_RECORD_START_BYTES = 32
_Batches = Generator[tuple[Any, Any], None, None]


class RecordBatches(mx.io.DataIter):  # type: ignore[misc]  # MXNet has no types
    """The batches of one epoch after the other; see ``dataprep.to_mxnet``.

    Attributes:
        provide_data, provide_label: shapes of the images and the labels of a whole batch.
    """

    def __init__(
        self,
        dataset: Dataset,
        order: Order,
        augmentation: Augmentation,
        *,
        batch_size: int,
        epoch: int,
        threads: int,
        prefetch: int,
        cache_dir: str | os.PathLike[str] | None,
    ) -> None:
        super().__init__(batch_size)
        self._store, self._snapshot = dataset.store, dataset.snapshot
        self._entry = dataset.manifest.formats[dataset.format]
        self._order, self._epoch, self._cache_dir = order, epoch, cache_dir
        shape = (3, augmentation.size, augmentation.size)
        self.provide_data = [mx.io.DataDesc("data", (batch_size, *shape), np.float32)]
        self.provide_label = [mx.io.DataDesc("softmax_label", (batch_size,), np.float32)]
        self._arguments = {
            "data_shape": shape,
            "batch_size": batch_size,
            "preprocess_threads": max(1, threads),
            "prefetch_buffer": prefetch,
            "round_batch": False,
            "verbose": False,
            **_augmentation_arguments(augmentation),
        }
        if order.shuffle:
            self._arguments |= {"shuffle": True, "shuffle_chunk_size": _CHUNK_MB}
        self._batches = self._of_epoch(epoch)

    def set_epoch(self, epoch: int) -> None:
        """Begin an epoch."""
        self.close()
        self._epoch = epoch
        self._batches = self._of_epoch(epoch)

    def reset(self) -> None:
        """Begin the next epoch."""
        self.set_epoch(self._epoch + 1)

    def next(self) -> Any:
        """The next batch as an ``mx.io.DataBatch``."""
        images, labels = next(self._batches)
        return mx.io.DataBatch([images], [labels], pad=0)

    def close(self) -> None:
        """Stop reading and remove copies of remote shards."""
        self._batches.close()

    def _of_epoch(self, epoch: int) -> _Batches:
        numbers = epoch_order(self._order, len(self._entry.shards), epoch)
        shards = [self._entry.shards[number] for number in numbers]
        if not isinstance(self._store, LocalStore):
            # Closed from the inside out: ImageRecordIter keeps files open while it exists.
            with closing(self._of_copies(shards)) as batches:
                yield from _refilled(batches, self.batch_size)
        elif shards:
            files = [self._store.root / shard.key for shard in shards]
            with self._snapshot.unchanged():
                for batch in self._of_files(files, shards, 0):
                    self._snapshot.check()  # confirms what was read before
                    yield batch

    def _of_copies(self, shards: Sequence[ShardEntry]) -> _Batches:
        """Copy one shard after the other to ``cache_dir``; the next one is copied meanwhile."""
        # Not a TemporaryDirectory, which warns if the iterator is dropped.
        folder = Path(tempfile.mkdtemp(prefix="dataprep-", dir=self._cache_dir))

        def copy(number: int) -> Path:
            # ImageRecordIter looks at everything beside its file: each file gets its own folder.
            path = folder / str(number) / "shard.rec"
            path.parent.mkdir()
            path.write_bytes(self._snapshot.get(shards[number].key))
            return path

        try:
            with closing(in_order(copy, range(len(shards)), 1)) as copies:
                for number, path in enumerate(copies):
                    yield from self._of_files([path], [shards[number]], number)
                    path.unlink()
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _of_files(
        self, files: Sequence[Path], shards: Sequence[ShardEntry], part: int
    ) -> Iterator[tuple[Any, Any]]:
        """The batches of files on this machine; the last one may be short.

        Raises:
            ObjectNotFound: a file is missing; ImageRecordIter would skip it silently.
            DatasetError: a file has another size; ImageRecordIter would end the process.
        """
        for shard in shards:
            found = self._store.head(shard.key).bytes
            if found != shard.bytes:
                raise DatasetError(
                    f"{shard.key} has {found:,} bytes, the manifest says {shard.bytes:,}: fetch or "
                    "make it again"
                )
        with files[0].open("rb") as file:  # all records have the same number of labels
            width = label_count(file.read(_RECORD_START_BYTES))
        # One seed for the order of chunks, one for that of records, one for crops and colours.
        seed = framework_seed(self._order, self._epoch, part)
        source = mx.io.ImageRecordIter(
            path_imgrec=";".join(map(os.fspath, files)),
            label_width=width,
            seed=seed,
            seed_aug=seed,
            shuffle_chunk_seed=seed,
            **self._arguments,
        )
        left = sum(shard.records for shard in shards)
        for batch in source:
            images, labels = batch.data[0], batch.label[0]
            if width > 1:
                labels = labels[:, 0]  # the class is the first
            if left < self.batch_size:
                images, labels = images[:left], labels[:left]
            left -= self.batch_size
            yield images, labels - self._entry.label_offset
        if left > 0:
            raise DatasetError(f"{left:,} samples are missing from {shards[0].key} or later shards")


def _refilled(batches: Iterator[tuple[Any, Any]], size: int) -> Iterator[tuple[Any, Any]]:
    """The same samples in whole batches; only the last may be short."""
    kept: tuple[Any, Any] | None = None
    for images, labels in batches:
        if kept is not None:
            images = mx.nd.concat(kept[0], images, dim=0)
            labels = mx.nd.concat(kept[1], labels, dim=0)
        if len(images) >= size:
            yield images[:size], labels[:size]
            images, labels = images[size:], labels[size:]
        # Copied, because ImageRecordIter overwrites its batches. An empty array has no shape.
        kept = (images.copy(), labels.copy()) if len(images) else None
    if kept is not None:
        yield kept


def _augmentation_arguments(augmentation: Augmentation) -> dict[str, Any]:
    """ImageRecordIter's arguments; its values are from 0 to 255."""
    arguments: dict[str, Any] = {"resize": round(augmentation.size / EVALUATION_SHARE)}
    if augmentation.random:
        arguments = {
            "random_resized_crop": True,
            "rand_mirror": True,
            "min_random_area": AREA[0],
            "max_random_area": AREA[1],
            "min_aspect_ratio": ASPECT[0],
            "max_aspect_ratio": ASPECT[1],
            "brightness": augmentation.jitter,
            "contrast": augmentation.jitter,
            "saturation": augmentation.jitter,
            "pca_noise": augmentation.noise,
        }
    if augmentation.normalise:
        for name, mean, deviation in zip("rgb", IMAGENET_MEAN, IMAGENET_STD, strict=True):
            arguments |= {f"mean_{name}": 255 * mean, f"std_{name}": 255 * deviation}
    return arguments
