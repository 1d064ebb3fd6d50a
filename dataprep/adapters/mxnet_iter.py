"""A data set as an iterator of MXNet's, over ImageRecordIter."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from dataprep.adapters.frameworks import import_framework
from dataprep.adapters.opened import require_open
from dataprep.augment import Augmentation
from dataprep.dataset import Dataset
from dataprep.errors import ConfigError
from dataprep.stores.local import LocalStore

if TYPE_CHECKING:
    from dataprep.adapters.mxnet_records import RecordBatches

CACHE_BYTES = 1_000_000_000
_NOT_IN_PATHS = set(";#?")


def to_mxnet(
    dataset: Dataset,
    *,
    batch_size: int,
    augmentation: Augmentation | None = None,
    shuffle: bool = True,
    seed: int = 0,
    epoch: int = 0,
    threads: int = 4,
    prefetch: int = 4,
    cache_dir: str | os.PathLike[str] | None = None,
    cache_bytes: int = CACHE_BYTES,
) -> RecordBatches:
    """``dataset``, in its recordio format, as an ``mx.io.DataIter`` of decoded batches.

    Images are float32 (N, 3, size, size), labels float32 (N,) from 0. ``reset`` starts the next
    epoch, ``set_epoch`` any; each has every sample exactly once, in an order that depends on
    seed and epoch, and its last batch may be short. (ImageRecordIter's own ``round_batch``
    fills the last batch from the beginning and then leaves those samples out of the next epoch;
    without it the last batch ends with samples of the one before, and ``pad`` does not say so.)

    ImageRecordIter takes several files but only one index. It is given none, and shuffles
    chunks and the records within each, over files in random order. It cannot open ``s3://``:
    remote shards are copied ahead into files without names, which are gone once they were read
    or this process ends (if it is killed, a folder of dead links stays in ``cache_dir``). Order
    and augmentation depend on seed, epoch and ``threads``.

    Of a sample with several labels the first is given, its class. MXNet's wheel decodes JPEG and
    PNG, not WebP.

    ImageRecordIter uses its memory again: a batch holds what it held until ``prefetch`` more
    were taken.

    Args:
        dataset: an open split with the recordio format.
        batch_size: samples a batch.
        augmentation: what ImageRecordIter does to images, with its own code; its defaults if
            none is given. Without ``normalise`` values are 0 to 255.
        shuffle: whether the order changes with the epoch.
        seed: of order and augmentation.
        epoch: the first.
        threads: that decode.
        prefetch: batches ahead.
        cache_dir: on whose disk remote shards are copied; that of temporary files if not given.
        cache_bytes: what remote shards may take there at a time; two must fit.

    Raises:
        TypeError: no open data set, but a path for instance.
        ImportError: MXNet is not installed.
        ConfigError: the data set has another format, images that MXNet does not decode, or a path
            that it takes for something else, or the cache is too small.
    """
    require_open(dataset, "recordio")
    if dataset.format != "recordio":
        raise ConfigError(
            f"MXNet reads recordio, not {dataset.format}: dataprep.open(..., format='recordio')"
        )
    augmentation = augmentation or Augmentation()
    if augmentation.layout != "CHW":
        raise ConfigError("ImageRecordIter gives channels first: use layout='CHW'")
    if dataset.manifest.encoding == "WEBP":
        raise ConfigError(
            "MXNet does not decode WebP: make the data set with image.encoding jpeg or png, or "
            "read it with dataprep.to_torch"
        )
    store = dataset.store
    if isinstance(store, LocalStore) and (found := set(os.fspath(store.root)) & _NOT_IN_PATHS):
        raise ConfigError(
            f"MXNet gives {min(found)!r} in a path a meaning of its own: rename {store.uri}"
        )
    largest = max((s.bytes for s in dataset.manifest.formats["recordio"].shards), default=0)
    if not isinstance(store, LocalStore) and cache_bytes < 2 * largest:
        raise ConfigError(
            f"cache_bytes of {cache_bytes:,} do not hold two shards of {largest:,} bytes"
        )
    import_framework("mxnet")
    from dataprep.adapters.mxnet_records import Reading, RecordBatches

    reading = Reading(batch_size, augmentation, shuffle, seed, threads, prefetch)
    return RecordBatches(dataset, reading, epoch, cache_dir, cache_bytes)
