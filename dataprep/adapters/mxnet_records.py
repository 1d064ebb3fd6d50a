"""MXNet's ImageRecordIter over many shards, epoch after epoch, each sample once."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dataprep.adapters.frameworks import import_framework
from dataprep.adapters.shard_cache import copied_ahead
from dataprep.augment import IMAGENET_MEAN, IMAGENET_STD, Augmentation
from dataprep.augment.crops import AREA, ASPECT, EVALUATION_SHARE
from dataprep.dataset import Dataset
from dataprep.errors import DatasetError
from dataprep.formats.recordio import label_count
from dataprep.manifest import ShardEntry
from dataprep.stores.local import LocalStore

mx: Any = import_framework("mxnet")

_CHUNK_MB = 64  # shuffled as a whole; an eighth of it is read, and its records shuffled, at once
_RECORD_START_BYTES = 32
_Local = list[tuple[Path, ShardEntry]]


@dataclass(frozen=True)
class Reading:
    """How ImageRecordIter is to read."""

    batch_size: int
    augmentation: Augmentation
    shuffle: bool
    seed: int
    threads: int
    prefetch: int

    def arguments(self, seed: int, labels: int) -> dict[str, Any]:
        """ImageRecordIter's own arguments, files aside, for records of so many labels."""
        size = self.augmentation.size
        arguments: dict[str, Any] = {
            "data_shape": (3, size, size),
            "batch_size": self.batch_size,
            "label_width": labels,
            "preprocess_threads": max(1, self.threads),
            "prefetch_buffer": self.prefetch,
            "round_batch": False,
            "seed": seed,  # of the order; crops and colours have one of their own
            "seed_aug": seed,
            "verbose": False,
            **_augmentation_arguments(self.augmentation),
        }
        if self.shuffle:
            arguments["shuffle"] = True
            arguments["shuffle_chunk_size"] = _CHUNK_MB
            arguments["shuffle_chunk_seed"] = seed
        return arguments


class RecordBatches(mx.io.DataIter):  # type: ignore[misc]  # MXNet has no types
    """Batches of an epoch; see ``dataprep.to_mxnet``. ``close`` removes what was copied."""

    def __init__(
        self,
        dataset: Dataset,
        reading: Reading,
        epoch: int,
        cache_dir: str | os.PathLike[str] | None,
        cache_bytes: int,
    ) -> None:
        super().__init__(reading.batch_size)
        self._store, self._snapshot = dataset.store, dataset.snapshot
        self._entry = dataset.manifest.formats[dataset.format]
        self._reading, self._epoch = reading, epoch
        self._cache = cache_dir, cache_bytes
        self._batches: Generator[tuple[Any, Any], None, None] | None = None

    @property
    def provide_data(self) -> list[Any]:
        """The shape of a whole batch's images."""
        size = self._reading.augmentation.size
        return [mx.io.DataDesc("data", (self.batch_size, 3, size, size), np.float32)]

    @property
    def provide_label(self) -> list[Any]:
        """The shape of a whole batch's labels."""
        return [mx.io.DataDesc("softmax_label", (self.batch_size,), np.float32)]

    def set_epoch(self, epoch: int) -> None:
        """Begin that epoch."""
        self.close()
        self._epoch = epoch

    def reset(self) -> None:
        """Begin the next epoch."""
        self.set_epoch(self._epoch + 1)

    def next(self) -> Any:
        """The next batch as an ``mx.io.DataBatch``."""
        if self._batches is None:
            self._batches = self._of_epoch()
        images, labels = next(self._batches)
        return mx.io.DataBatch([images], [labels], pad=0)

    def close(self) -> None:
        """Stop reading and remove what was copied."""
        if self._batches is not None:
            self._batches.close()
        self._batches = None

    def _of_epoch(self) -> Generator[tuple[Any, Any], None, None]:
        rng = np.random.default_rng((self._reading.seed, self._epoch))
        shards = list(self._entry.shards)
        if self._reading.shuffle:
            shards = [shards[place] for place in rng.permutation(len(shards))]
        seeds = iter(rng.integers(1, 2**31 - 1, len(shards) + 1).tolist())
        if not shards:
            return
        if isinstance(self._store, LocalStore):
            root = self._store.root
            files = [(root / shard.key, shard) for shard in shards]
            with self._snapshot.unchanged():
                for batch in self._of_group(files, next(seeds)):
                    self._snapshot.check()  # what was read for it was read before
                    yield batch
            return
        groups = copied_ahead(self._snapshot, shards, *self._cache)
        # Closed from the inside: ImageRecordIter opens files while it lives, and a number of a
        # closed one may be another's by then.
        with (
            contextlib.closing(groups),
            contextlib.closing(self._of_groups(groups, seeds)) as batches,
        ):
            yield from _refilled(batches, self.batch_size)

    def _of_groups(
        self, groups: Iterator[_Local], seeds: Iterator[int]
    ) -> Generator[tuple[Any, Any], None, None]:
        for group in groups:
            yield from self._of_group(group, next(seeds))

    def _of_group(self, group: _Local, seed: int) -> Iterator[tuple[Any, Any]]:
        """Batches of files on this machine, of which the last may be short.

        Raises:
            ObjectNotFound: a file is missing. ImageRecordIter would pass over it in silence,
            DatasetError: or has another size. ImageRecordIter would end the process.
        """
        for path, shard in group:
            self._check(path, shard)
        paths = [os.fspath(path) for path, _ in group]
        width = _label_count(group[0][0])
        arguments = self._reading.arguments(seed, width)
        source = mx.io.ImageRecordIter(path_imgrec=";".join(paths), **arguments)
        left = sum(shard.records for _, shard in group)
        for batch in source:
            images, labels = batch.data[0], batch.label[0]
            if width > 1:
                labels = labels[:, 0]  # the class stands first
            if left < self.batch_size:
                images, labels = images[:left], labels[:left]
            left -= self.batch_size
            if self._entry.label_offset:
                labels = labels - self._entry.label_offset
            yield images, labels
        if left > 0:
            raise DatasetError(f"{left:,} samples are missing from {', '.join(paths)}")

    def _check(self, path: Path, shard: ShardEntry) -> None:
        try:
            found = path.stat().st_size
        except FileNotFoundError:
            found = self._store.head(shard.key).bytes  # raises what the store says to it
        if found != shard.bytes:
            raise DatasetError(
                f"{shard.key} has {found:,} bytes, not the {shard.bytes:,} of the manifest: "
                "fetch or make it again"
            )


def _label_count(path: Path) -> int:
    """How many labels the records of a shard have; the same for all of a data set."""
    with path.open("rb") as file:
        return label_count(file.read(_RECORD_START_BYTES))


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
        # Copied, since ImageRecordIter uses a batch's memory again. An empty array has no shape.
        kept = (images.copy(), labels.copy()) if len(images) else None
    if kept is not None:
        yield kept


def _augmentation_arguments(augmentation: Augmentation) -> dict[str, Any]:
    """ImageRecordIter's names for the same; values there run from 0 to 255."""
    arguments: dict[str, Any] = {}
    if augmentation.random:
        arguments |= {"random_resized_crop": True, "rand_mirror": True}
        arguments |= {"min_random_area": AREA[0], "max_random_area": AREA[1]}
        arguments |= {"min_aspect_ratio": ASPECT[0], "max_aspect_ratio": ASPECT[1]}
        if augmentation.jitter:
            kinds = ("brightness", "contrast", "saturation")
            arguments |= dict.fromkeys(kinds, augmentation.jitter)
        if augmentation.noise:
            arguments["pca_noise"] = augmentation.noise
    else:
        arguments["resize"] = round(augmentation.size / EVALUATION_SHARE)
    if augmentation.normalise:
        for name, mean, deviation in zip("rgb", IMAGENET_MEAN, IMAGENET_STD, strict=True):
            arguments |= {f"mean_{name}": 255 * mean, f"std_{name}": 255 * deviation}
    return arguments
