"""Data sets for torch, TensorFlow and MXNet.

Each framework is imported by the call that needs it. The core imports none of them.
"""

from __future__ import annotations

import importlib
import os
from types import ModuleType
from typing import TYPE_CHECKING, Any

from dataprep.adapters.mxnet_compat import import_mxnet
from dataprep.assign import Order
from dataprep.errors import ConfigError

if TYPE_CHECKING:
    from dataprep.adapters.augment import Augmentation, Transform
    from dataprep.adapters.mxnet import RecordBatches
    from dataprep.dataset import Dataset

__all__ = ["to_mxnet", "to_tf", "to_torch"]

_TITLES = {"torch": "PyTorch", "tensorflow": "TensorFlow", "mxnet": "MXNet"}


def import_framework(name: str) -> ModuleType:
    """Import ``torch``, ``tensorflow`` or ``mxnet``.

    TensorFlow's start-up log shows errors only, unless ``TF_CPP_MIN_LOG_LEVEL`` is set.

    Raises:
        ImportError: it is not installed (the message says how to install it), or it is broken.
    """
    try:
        if name == "mxnet":
            return import_mxnet()
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
        return importlib.import_module(name)
    except Exception as error:  # a broken one raises OSError, AttributeError and others
        problem = f"cannot be imported: {error}"
        if isinstance(error, ModuleNotFoundError) and error.name == name:
            problem = f"is not installed: pip install 'dataprep-iobench[{name}]'"
        raise ImportError(f"{_TITLES[name]} {problem}", name=name) from error


def to_torch(
    dataset: Dataset,
    *,
    iterable: bool = False,
    transform: Transform | None = None,
    batch_size: int | None = None,
    drop_last: bool = False,
    threads: int | None = None,
    prefetch: int = 2,
    shuffle: bool = True,
    shuffle_buffer: int = 0,
    seed: int = 0,
    epoch: int = 0,
    rank: int = 0,
    world_size: int = 1,
) -> Any:
    """Read ``dataset`` in torch: in batches, or as samples for ``torch.utils.data.DataLoader``.

    With ``batch_size`` it gives whole batches, tensors (N, ...) and int64 labels (N,) from 0::

        batches = dataprep.to_torch(
            dataset, transform=Augmentation(), iterable=True, batch_size=64
        )
        for images, labels in batches:

    Threads of this process decode each image into its place in the batch. Decoding releases
    Python's lock. If there are more processors than threads can use, or the transform is Python
    code, let processes make the batches: ``DataLoader(batches, batch_size=None, num_workers=8)``.

    Without ``batch_size`` items are (image, label from 0), which ``DataLoader`` collates. The map
    style reads one record per item and is shuffled by its ``sampler``::

        images = dataprep.to_torch(dataset, transform=Augmentation())
        loader = DataLoader(images, batch_size=64, sampler=images.sampler, num_workers=8)

    The iterable style reads whole shards, one after the other, and shuffles the shards and the
    records within each. Call ``set_epoch`` before each epoch; it reaches persistent workers too.
    Order and randomness depend on seed, epoch and sample, never on threads or workers.

    Args:
        dataset: an open split.
        iterable: read whole shards; otherwise one record at a time in a fully random order.
        transform: a function of an encoded image and a generator, such as
            ``dataprep.Augmentation``; NumPy arrays become tensors. Without one, images are bytes.
        batch_size: samples per batch, the last may be smaller; single samples if not given.
        drop_last: leave out a last batch that is smaller.
        threads: threads that decode for batches, 0 for the caller's own. The default is one per
            processor, at most 8, and 0 in a worker of ``DataLoader``.
        prefetch: how many batches threads are ahead.
        shuffle: whether the order changes with the epoch.
        shuffle_buffer: for the iterable style: the number of encoded images from which each worker
            draws the next one, so that samples of several shards are mixed; 0 for none.
        seed: the seed of order and transform.
        epoch: the number of the first epoch.
        rank: the number of this process among ``world_size``. Each process reads its own part: of
            the samples (map), or of the shards (iterable). Parts may differ by one sample, or one
            shard: distributed training must end an epoch with the smallest part, or use
            ``torch.distributed.algorithms.Join``.
        world_size: how many processes train together.

    Raises:
        TypeError: ``dataset`` is not an open data set, but for example a path.
        ImportError: torch is not installed.
        ConfigError: the rank, the buffer or the batches are out of range.
    """
    _require_open(dataset)
    order = Order(shuffle, seed, rank, world_size)
    if shuffle_buffer < 0 or (shuffle_buffer and not iterable):
        raise ConfigError(
            f"shuffle_buffer {shuffle_buffer}: it is at least 0, and for the iterable style only; "
            "the map style is shuffled by its sampler"
        )
    if (batch_size is not None and batch_size < 1) or prefetch < 0 or (threads or 0) < 0:
        raise ConfigError(
            f"batch_size {batch_size}, threads {threads}, prefetch {prefetch}: batch_size is at "
            "least 1, threads and prefetch are at least 0"
        )
    import_framework("torch")
    from dataprep.adapters.records import Records
    from dataprep.adapters.torch import BatchedRecords, IterableRecords, MapRecords

    samples: Any = MapRecords(Records(dataset), transform, order, epoch)
    if iterable:
        samples = IterableRecords(Records(dataset), transform, order, epoch, shuffle_buffer)
    if batch_size is None:
        return samples
    return BatchedRecords(samples, batch_size, drop_last, threads, prefetch)


def to_tf(
    dataset: Dataset,
    *,
    batch_size: int | None = None,
    decode: bool = True,
    augmentation: Augmentation | None = None,
    shuffle: bool = True,
    shuffle_buffer: int = 2048,
    seed: int = 0,
    epoch: Any = 0,
    parallel_calls: int | None = None,
    prefetch: int | None = None,
) -> Any:
    """Read ``dataset``, in its tfrecord format, as a ``tf.data.Dataset`` of (image, label from 0).

    ``tf.data.TFRecordDataset`` reads local shards, several at a time. TensorFlow's wheel cannot
    open ``s3://`` and other remote stores: this package reads their shards and passes the records
    on through ``from_generator``. TensorFlow does everything else in both cases, also augmentation:
    its random crops have 0.38 of the image on average, those of torch and MXNet 0.44. Order and
    augmentation depend on seed and epoch, not on timing. ``len`` is known.

    Of JPEGs only the part that is needed is decoded. PNG and WebP are decoded in full by this
    package.

    Args:
        dataset: an open split with the tfrecord format.
        batch_size: samples per batch, the last may be smaller; single samples if not given.
        decode: give images (size, size, 3), float32 or uint8; otherwise encoded images as strings.
        augmentation: what to do to images; the default is ``Augmentation()``. Channels are last.
        shuffle: shuffle shards, of which several are read at a time, and records within a buffer.
            Otherwise samples come in the order of the data set.
        shuffle_buffer: the number of encoded images in that buffer.
        seed: the seed of order and augmentation.
        epoch: the number of the first iteration; each further one is the next epoch (as
            ``model.fit`` needs). Or an integer ``tf.Variable`` that is assigned before each.
        parallel_calls: how many images are prepared at a time, in a pool of as many threads; 0 for
            one after the other on demand. By default tf.data tunes it.
        prefetch: how many batches to prepare ahead. By default tf.data tunes it.

    Raises:
        TypeError: ``dataset`` is not an open data set, but for example a path.
        ImportError: TensorFlow is not installed.
        ConfigError: the data set has another format.
    """
    _require_open(dataset, "tfrecord")
    import_framework("tensorflow")
    from dataprep.adapters.augment import Augmentation
    from dataprep.adapters.tensorflow import pipeline

    return pipeline(
        dataset,
        Order(shuffle, seed),
        (augmentation or Augmentation()) if decode else None,
        epoch=epoch,
        shuffle_buffer=shuffle_buffer,
        batch_size=batch_size,
        parallel_calls=parallel_calls,
        prefetch=prefetch,
    )


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
) -> RecordBatches:
    """Read ``dataset``, in its recordio format, as an ``mx.io.DataIter`` of decoded batches.

    Images are float32 (N, 3, size, size), labels float32 (N,) from 0. ``reset`` begins the next
    epoch, ``set_epoch`` any. Each epoch has every sample exactly once, in an order that depends on
    seed and epoch, and its last batch may be short. (ImageRecordIter's own ``round_batch`` fills
    the last batch from the beginning and leaves those samples out of the next epoch.)

    ImageRecordIter shuffles chunks of shards and the records within each. It cannot open ``s3://``:
    a remote shard is copied to ``cache_dir`` while the one before is read, and removed afterwards.
    ``close`` ends reading and removes copies. Order and augmentation depend on seed, epoch and
    ``threads``.

    A sample with several labels has the first one, its class. MXNet's wheel decodes JPEG and PNG,
    not WebP. ImageRecordIter uses its memory again: a batch is overwritten when ``prefetch`` more
    were taken.

    Args:
        dataset: an open split with the recordio format.
        batch_size: samples per batch.
        augmentation: what ImageRecordIter does to images, with its own code; the default is
            ``Augmentation()``. Without ``normalise`` values are 0 to 255.
        shuffle: whether the order changes with the epoch.
        seed: the seed of order and augmentation.
        epoch: the number of the first epoch.
        threads: threads that decode.
        prefetch: how many batches to prepare ahead.
        cache_dir: where remote shards are copied, two at a time; by default the folder for
            temporary files.

    Raises:
        TypeError: ``dataset`` is not an open data set, but for example a path.
        ImportError: MXNet is not installed.
        ConfigError: the data set has another format or images that MXNet does not decode.
    """
    _require_open(dataset, "recordio")
    from dataprep.adapters.augment import Augmentation

    augmentation = augmentation or Augmentation()
    if augmentation.layout != "CHW":
        raise ConfigError("ImageRecordIter gives channels first: use layout='CHW'")
    if dataset.manifest.encoding == "WEBP":
        raise ConfigError(
            "MXNet does not decode WebP: make the data set with image.encoding jpeg or png, or "
            "read it with dataprep.to_torch"
        )
    import_framework("mxnet")
    from dataprep.adapters.mxnet import RecordBatches

    return RecordBatches(
        dataset,
        Order(shuffle, seed),
        augmentation,
        batch_size=batch_size,
        epoch=epoch,
        threads=threads,
        prefetch=prefetch,
        cache_dir=cache_dir,
    )


def _require_open(dataset: object, format: str = "") -> None:
    """Require an open data set, in ``format`` if that is given."""
    from dataprep.dataset import Dataset

    chosen = f", format={format!r}" if format else ""
    if not isinstance(dataset, Dataset):
        raise TypeError(
            f"expected an open data set, not {type(dataset).__name__}: "
            f"dataprep.open(path, 'train'{chosen})"
        )
    if format and dataset.format != format:
        raise ConfigError(
            f"this adapter reads {format}, not {dataset.format}: dataprep.open(...{chosen})"
        )
