"""A data set as an iterator of MXNet, over ImageRecordIter."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from dataprep.adapters import import_framework
from dataprep.adapters.augment import AREA, ASPECT, EVALUATION_SHARE, Augmentation
from dataprep.adapters.normalisation import IMAGENET_MEAN, IMAGENET_STD
from dataprep.adapters.records import LOCAL_FILE_BYTES, Records, windows
from dataprep.assign import Order, framework_seed, resumed
from dataprep.errors import DatasetError
from dataprep.formats.recordio import label_count
from dataprep.ordered import in_order

mx: Any = import_framework("mxnet")

_RECORD_START_BYTES = 32
_Batches = Generator[tuple[Any, Any], None, None]


class RecordBatches(mx.io.DataIter):  # type: ignore[misc]  # MXNet has no types
    """The batches of one epoch after the other; see ``dataprep.to_mxnet``.

    Attributes:
        provide_data, provide_label: shapes of the images and the labels of a whole batch.
    """

    def __init__(
        self,
        records: Records,
        label_offset: int,
        order: Order,
        augmentation: Augmentation,
        *,
        batch_size: int,
        threads: int,
        prefetch: int,
        cache_dir: str | os.PathLike[str] | None,
    ) -> None:
        super().__init__(batch_size)
        self._records, self._label_offset = records, label_offset
        self._order = records.local(order)  # first, because it refuses ranks that do not fit
        following = resumed(order, records.shares(order))
        if following is not order:
            self._order = records.local(following)
        self._epoch, self._cache_dir = following.epoch, cache_dir
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
        self._has_begun = False
        self._batches = self._of_epoch(self._epoch)

    def __iter__(self) -> Iterator[Any]:
        """The batches of the next epoch; of the first one, or after ``set_epoch``, of this one.

        An iterator cannot go on when another one has begun, because only one epoch is read at a
        time.
        """
        self.reset()
        self._has_begun = True
        return self._of_iteration(self._batches)

    def set_epoch(self, epoch: int) -> None:
        """Begin an epoch."""
        self.close()
        self._epoch, self._has_begun = epoch, False
        self._batches = self._of_epoch(epoch)

    def reset(self) -> None:
        """Begin the next epoch, unless nothing was read of this one."""
        if self._has_begun:
            self.set_epoch(self._epoch + 1)

    def next(self) -> Any:
        """The next batch as an ``mx.io.DataBatch``."""
        self._has_begun = True
        images, labels = next(self._batches)
        return mx.io.DataBatch([images], [labels], pad=0)

    def close(self) -> None:
        """Stop reading and remove what was written."""
        self._batches.close()

    def _of_iteration(self, batches: _Batches) -> Iterator[Any]:
        """The batches of an iteration."""
        while batches is self._batches:
            try:
                batch = self.next()
            except StopIteration:
                return
            yield batch
        raise DatasetError("another epoch of this iterator has begun: only one is read at a time")

    def _of_epoch(self, epoch: int) -> _Batches:
        """Write one file after the other to ``cache_dir``; the next is written meanwhile."""
        numbers = self._records.part(self._order, epoch)
        batches = max(1, LOCAL_FILE_BYTES // (self._records.mean_bytes * self.batch_size))
        # Not a TemporaryDirectory, which warns if the iterator is dropped.
        folder = Path(tempfile.mkdtemp(prefix="dataprep-", dir=self._cache_dir))

        def write(part: tuple[int, list[int]]) -> tuple[Path, int]:
            # ImageRecordIter looks at everything beside its file: each file gets its own folder.
            path = folder / str(part[0]) / "shard.rec"
            path.parent.mkdir()
            with path.open("wb") as file:
                for window in windows(np.array(part[1]), self._records.window_samples):
                    file.writelines(self._records.encoded(window))
            return path, len(part[1])

        try:
            parts = enumerate(windows(numbers, batches * self.batch_size))
            with closing(in_order(write, parts, 1)) as written:
                for number, (path, count) in enumerate(written):
                    yield from self._of_file(path, count, number)
                    path.unlink()
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _of_file(self, path: Path, count: int, part: int) -> Iterator[tuple[Any, Any]]:
        """The batches of a file of ``count`` samples; the last one may be short."""
        with path.open("rb") as file:  # all records have the same number of labels
            width = label_count(file.read(_RECORD_START_BYTES))
        seed = framework_seed(self._order, self._epoch, part)
        source = mx.io.ImageRecordIter(
            path_imgrec=os.fspath(path),
            label_width=width,
            seed=seed,
            seed_aug=seed,
            **self._arguments,
        )
        left = count
        for batch in source:
            images, labels = batch.data[0], batch.label[0]
            if width > 1:
                labels = labels[:, 0]  # the class is the first
            if left < self.batch_size:
                images, labels = images[:left], labels[:left]
            left -= self.batch_size
            yield images, labels - self._label_offset
        if left > 0:
            raise DatasetError(f"MXNet's reader left out {left:,} samples")


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
