"""Read a data set as an iterator of MXNet, which decodes the images with ImageRecordIter."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from dataprep.errors import DatasetError
from dataprep.formats.recordio import label_count
from dataprep.reading.augment import AREA, ASPECT, EVALUATION_SHARE, Augmentation
from dataprep.reading.epoch_order import Order, framework_seed, order_from_start
from dataprep.reading.frameworks import import_framework
from dataprep.reading.normalisation import IMAGENET_MEAN, IMAGENET_STD
from dataprep.reading.record_reader import LOCAL_FILE_BYTES, Records, in_windows
from dataprep.threaded_map import in_order

mx: Any = import_framework("mxnet")

_RECORD_START_BYTES = 32
"""Size of the beginning of a record that contains its number of labels."""

_Batches = Generator[tuple[Any, Any], None, None]
"""Images and labels of each batch of an epoch."""


class RecordBatches(mx.io.DataIter):  # type: ignore[misc]  # MXNet has no types
    """Yields the batches of one epoch after the other; see ``dataprep.to_mxnet``.

    Attributes:
        provide_data: the name, shape and type of the images of a full batch, as MXNet needs them.
        provide_label: the name, shape and type of the labels of a full batch.
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
        self._records = records
        self._label_offset = label_offset
        self._cache_dir = cache_dir
        # This call comes before ``order_from_start``, because it refuses ranks that do not fit the
        # shares.
        self._order = records.order_on_host(order)
        global_order = order_from_start(order, records.samples_by_share(order))
        if global_order is not order:
            self._order = records.order_on_host(global_order)
        self._epoch = global_order.epoch
        shape = (3, augmentation.size, augmentation.size)
        self.provide_data = [mx.io.DataDesc("data", (batch_size, *shape), np.float32)]
        self.provide_label = [mx.io.DataDesc("softmax_label", (batch_size,), np.float32)]
        self._reader_arguments = {
            "data_shape": shape,
            "batch_size": batch_size,
            "preprocess_threads": max(1, threads),
            "prefetch_buffer": prefetch,
            "round_batch": False,
            "verbose": False,
            **_augmentation_arguments(augmentation),
        }
        self._has_begun = False
        self._batches = self._batches_of_epoch(self._epoch)

    def __iter__(self) -> Iterator[Any]:
        """Return an iterator over the batches of the next epoch.

        The first iteration, and the first one after ``set_epoch``, reads the current epoch. An
        iterator raises DatasetError when another one has begun, because only one epoch is read at
        a time.
        """
        self.reset()
        self._has_begun = True
        return self._iteration(self._batches)

    def set_epoch(self, epoch: int) -> None:
        """Begin the epoch with this number. Reading of another epoch ends."""
        self.close()
        self._epoch, self._has_begun = epoch, False
        self._batches = self._batches_of_epoch(epoch)

    def reset(self) -> None:
        """Begin the next epoch, unless the current one has not begun."""
        if self._has_begun:
            self.set_epoch(self._epoch + 1)

    def next(self) -> Any:
        """Return the next batch as an ``mx.io.DataBatch``. Raise StopIteration after the last."""
        self._has_begun = True
        images, labels = next(self._batches)
        return mx.io.DataBatch([images], [labels], pad=0)

    def close(self) -> None:
        """Stop reading, and remove the files in ``cache_dir``."""
        self._batches.close()

    def _iteration(self, batches: _Batches) -> Iterator[Any]:
        """Yield the batches of an epoch, as long as no other epoch has begun."""
        while batches is self._batches:
            try:
                batch = self.next()
            except StopIteration:
                return
            yield batch
        raise DatasetError("another epoch of this iterator has begun: only one is read at a time")

    def _batches_of_epoch(self, epoch: int) -> _Batches:
        """Write the records of an epoch to files in ``cache_dir``, and yield their batches.

        The next file is written while the batches of a file are read.
        """
        numbers = self._records.samples_of_rank(self._order, epoch)
        batch_bytes = self._records.mean_bytes * self.batch_size
        batches_per_file = max(1, LOCAL_FILE_BYTES // batch_bytes)
        # A TemporaryDirectory would warn if the program drops the iterator.
        folder = Path(tempfile.mkdtemp(prefix="dataprep-", dir=self._cache_dir))

        def write(numbered_file: tuple[int, list[int]]) -> tuple[Path, int]:
            """Write the records of samples to a file. Return its path and the number of samples."""
            file_number, samples = numbered_file
            # ImageRecordIter also reads the files beside its file, so each file has its own folder.
            path = folder / str(file_number) / "shard.rec"
            path.parent.mkdir()
            with path.open("wb") as file:
                for window in in_windows(np.array(samples), self._records.window_samples):
                    file.writelines(self._records.encoded(window))
            return path, len(samples)

        try:
            numbered_files = enumerate(in_windows(numbers, batches_per_file * self.batch_size))
            with closing(in_order(write, numbered_files, 1)) as files:
                for file_number, (path, samples) in enumerate(files):
                    yield from self._batches_of_file(path, samples, file_number)
                    path.unlink()
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _batches_of_file(
        self, path: Path, samples: int, file_number: int
    ) -> Iterator[tuple[Any, Any]]:
        """Yield images and labels of the batches of a file. The last batch may be smaller.

        Args:
            path: the file, which contains records only.
            samples: the number of its records.
            file_number: the number of the file in the epoch, on which its random numbers depend.

        Raises:
            DatasetError: MXNet returned fewer samples.
        """
        with path.open("rb") as file:
            # All records have the same number of labels.
            labels_per_record = label_count(file.read(_RECORD_START_BYTES))
        seed = framework_seed(self._order, self._epoch, file_number)
        source = mx.io.ImageRecordIter(
            path_imgrec=os.fspath(path),
            label_width=labels_per_record,
            seed=seed,
            seed_aug=seed,
            **self._reader_arguments,
        )
        remaining = samples
        for batch in source:
            images, labels = batch.data[0], batch.label[0]
            if labels_per_record > 1:
                labels = labels[:, 0]  # the first label is the class
            # MXNet returns a full array also for a smaller last batch.
            if remaining < self.batch_size:
                images, labels = images[:remaining], labels[:remaining]
            remaining -= self.batch_size
            yield images, labels - self._label_offset
        if remaining > 0:
            raise DatasetError(f"MXNet's reader left out {remaining:,} samples of {path}")


def _augmentation_arguments(augmentation: Augmentation) -> dict[str, object]:
    """Return the arguments of ImageRecordIter for an augmentation.

    ImageRecordIter normalises pixels with values from 0 to 255.
    """
    arguments: dict[str, object] = {"resize": round(augmentation.size / EVALUATION_SHARE)}
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
