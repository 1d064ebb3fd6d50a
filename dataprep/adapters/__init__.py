"""Data sets for torch, TensorFlow and MXNet.

Each framework is imported by the call that needs it. The core imports none of them.
"""

from __future__ import annotations

import importlib
import os
from dataclasses import replace
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, overload

from dataprep.adapters.mxnet_compat import import_mxnet
from dataprep.adapters.ranks import rank_of
from dataprep.assign import Even, Order
from dataprep.errors import ConfigError
from dataprep.processors import usable_processors

if TYPE_CHECKING:
    import tensorflow as tf

    from dataprep.adapters.augment import AnyTransform, Augmentation
    from dataprep.adapters.mxnet import RecordBatches
    from dataprep.adapters.torch import BatchedRecords, IterableRecords, MapRecords
    from dataprep.dataset import Dataset

__all__ = ["to_mxnet", "to_tf", "to_torch"]

UNCOUNTED = "shuffle_buffer: samples in a buffer are not counted: to resume it has to be 0"
CURES = (
    "let torchdata's StatefulDataLoader save and load the state, or count the steps and give "
    "epoch=… and start=steps * global_batch to to_torch"
)
_MXNET_THREADS = 4  # by default
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


class TorchOptions(TypedDict, total=False):
    """The options of ``to_torch`` that do not decide what it returns."""

    transform: AnyTransform | None
    drop_last: bool
    threads: int | None
    prefetch: int
    shuffle: bool
    shuffle_buffer: int
    seed: int
    epoch: int
    rank: int
    world_size: int
    even: Even
    global_batch: int | None
    start: int
    check: bool


@overload
def to_torch(
    dataset: Dataset, *, iterable: bool = ..., batch_size: int, **options: Unpack[TorchOptions]
) -> BatchedRecords: ...
@overload
def to_torch(
    dataset: Dataset,
    *,
    iterable: Literal[True],
    batch_size: None = ...,
    **options: Unpack[TorchOptions],
) -> IterableRecords: ...
@overload
def to_torch(
    dataset: Dataset,
    *,
    iterable: Literal[False] = ...,
    batch_size: None = ...,
    **options: Unpack[TorchOptions],
) -> MapRecords: ...
@overload
def to_torch(
    dataset: Dataset,
    *,
    iterable: bool = ...,
    batch_size: int | None = ...,
    **options: Unpack[TorchOptions],
) -> MapRecords | IterableRecords | BatchedRecords: ...
def to_torch(
    dataset: Dataset,
    *,
    iterable: bool = False,
    transform: AnyTransform | None = None,
    batch_size: int | None = None,
    drop_last: bool = False,
    threads: int | None = None,
    prefetch: int = 2,
    shuffle: bool = True,
    shuffle_buffer: int = 0,
    seed: int = 0,
    epoch: int = 0,
    rank: int | None = None,
    world_size: int | None = None,
    even: Even = "keep",
    global_batch: int | None = None,
    start: int = 0,
    check: bool = True,
) -> MapRecords | IterableRecords | BatchedRecords:
    """Read ``dataset`` in torch: in batches, or as samples for ``torch.utils.data.DataLoader``.

    With ``batch_size`` it gives whole batches, tensors (N, ...) and int64 labels (N,) from 0::

        batches = dataprep.to_torch(
            dataset, transform=Augmentation(), iterable=True, batch_size=64
        )
        for images, labels in batches:

    Batches of ``Augmentation(normalise=False)`` are uint8, a quarter of the bytes; then
    ``dataprep.normalise`` makes float32 of them on the device.

    Threads of this process decode each image into its place in the batch. Decoding releases
    Python's lock. If there are more processors than threads can use, or the transform is Python
    code, let processes make the batches: ``DataLoader(batches, batch_size=None, num_workers=8)``.

    Without ``batch_size`` items are (image, label from 0), which ``DataLoader`` collates. The map
    style is shuffled by its ``sampler``, and the records of a batch are read side by side::

        images = dataprep.to_torch(dataset, transform=Augmentation())
        loader = DataLoader(images, batch_size=64, sampler=images.sampler, num_workers=8)

    The iterable style goes from shard to shard. It shuffles the shards, the runs of neighbouring
    records in each, and the records of a run; a run is read at once.

    Each iteration is the next epoch, also in workers; ``set_epoch`` chooses another one. Order and
    randomness depend on seed, epoch and sample, never on threads or workers. With other samplers
    than ``images.sampler`` the map style augments as in the epoch of ``set_epoch``, and warns once
    if more than ``len`` samples were read without it.

    Several processes that train together give ``rank`` and ``world_size``, and ``even`` for equal
    numbers of steps. ``len(images)`` and ``images[i]`` of the map style are those of a part that
    belongs to the rank. Where training ended within an epoch, ``start`` goes on from there, also
    with another number of ranks, as long as the global batch is the same. The iterable style and
    batches also have ``state_dict`` and ``load_state_dict``, as ``StatefulDataLoader`` of torchdata
    calls them; what it saves of workers and of ``images.sampler`` goes on with the same number of
    ranks. ``state_dict`` is an error where a plain ``DataLoader`` reads through workers, and for
    the plain map style.
    If ``dataset`` is a share that ``dataprep stage`` copied, its host's ranks divide it, and the
    number of ranks stays the same.

    Args:
        dataset: an open split.
        iterable: go from shard to shard; otherwise the order is fully random.
        transform: a function of an encoded image and a generator, such as
            ``dataprep.Augmentation``; NumPy arrays become tensors. A function of one argument, such
            as a transform of torchvision, gets a Pillow image (``dataprep.PillowTransform``).
            Without one, images are bytes.
        batch_size: samples per batch, the last may be smaller; single samples if not given.
        drop_last: leave out a last batch that is smaller.
        threads: threads that decode for batches, 0 for the caller's own. The default is one per
            processor that affinity and control group allow, at most 6, and 0 in a worker of
            ``DataLoader``.
        prefetch: how many batches threads are ahead.
        shuffle: whether the order changes with the epoch.
        shuffle_buffer: for the iterable style: the number of encoded images from which each worker
            draws the next one, so that samples of several shards are mixed; 0 for none.
        seed: the seed of order and transform.
        epoch: the number of the first epoch.
        rank: the number of this process among ``world_size``. Each reads its own part. Without
            both, batches and the iterable style take them from torch.distributed, if that is
            initialised, and log one line; the map style reads everything and warns if there are
            several processes. ``rank=0, world_size=1`` reads everything.
        world_size: how many processes train together.
        even: ``keep`` gives each sample once, so that ranks may have different numbers of batches.
            ``drop`` and ``pad`` give all as many, as DistributedDataParallel needs it: they leave
            out less than one global batch, or repeat it from the beginning of the epoch.
        global_batch: the samples of all ranks in a step, by default ``batch_size * world_size``.
            If it cannot be divided equally, ``batch_size`` is ``dataprep.per_rank_batch(...)``.
        start: how many samples of the first epoch all ranks have read before. With worker
            processes, count the steps: ``start = steps * global_batch``. At the end of the epoch
            the next one follows.
        check: compare each record with its checksum in the table of samples, if its format has none
            of its own.

    Returns:
        With ``batch_size`` ``dataprep.adapters.torch.BatchedRecords``, an ``IterableDataset`` of
        batches; without it ``IterableRecords`` or ``MapRecords`` of the same module, whose items
        are samples.

    Raises:
        TypeError: ``dataset`` is not an open data set, but for example a path.
        ImportError: torch is not installed.
        ConfigError: the rank, the start, the buffer or the batches are out of range, the ranks do
            not fit the share, ``even="drop"`` leaves no step in an epoch, or the transform takes
            neither one argument nor two.
    """
    _require_open(dataset)
    if shuffle_buffer and start:
        raise ConfigError(UNCOUNTED)
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
    # Samples of the map style may be divided by a DistributedSampler, anything else only here.
    ranks = rank_of(rank, world_size, "to_torch", from_torch=iterable or batch_size is not None)
    order = Order(shuffle, seed, *ranks, even, start=start, epoch=epoch)
    order = _in_batches(order, batch_size, global_batch)
    from dataprep.adapters.augment import as_transform
    from dataprep.adapters.records import Records
    from dataprep.adapters.torch import BatchedRecords, IterableRecords, MapRecords

    records = Records(dataset, check=check)
    prepare = None if transform is None else as_transform(transform)
    samples: MapRecords | IterableRecords
    if iterable:
        samples = IterableRecords(records, prepare, order, shuffle_buffer)
    else:
        samples = MapRecords(records, prepare, order)
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
    shuffle_buffer: int = 0,
    seed: int = 0,
    epoch: Any = 0,
    rank: int | None = None,
    world_size: int | None = None,
    even: Even = "keep",
    global_batch: int | None = None,
    start: int = 0,
    check: bool = True,
    parallel_calls: int | None = None,
    prefetch: int | None = None,
) -> tf.data.Dataset:
    """Read ``dataset`` as a ``tf.data.Dataset`` of (image, label from 0).

    This package reads the records, in both formats and from every store, 64 at a time through
    ``from_generator``; the order is that of ``to_torch`` with ``iterable=True``. TensorFlow decodes
    and augments: its random crops have 0.38 of the image on average, those of torch and MXNet 0.44.
    Order and augmentation depend on seed, epoch and sample, not on timing. ``len`` is known, unless
    ``start`` is given.

    Of JPEGs only the part that is needed is decoded. PNG and WebP are decoded in full by this
    package.

    Args:
        dataset: an open split.
        batch_size: samples per batch, the last may be smaller; single samples if not given.
        decode: give images (size, size, 3), float32 or uint8; otherwise encoded images as strings.
        augmentation: what to do to images; the default is ``Augmentation()``. Channels are last.
        shuffle: whether the order changes with the epoch. Otherwise it is that of the data set.
        shuffle_buffer: the number of encoded images that are mixed in addition; 0 for none.
        seed: the seed of order and augmentation.
        epoch: the number of the first iteration; each further one is the next epoch (as
            ``model.fit`` needs). Or an integer ``tf.Variable`` that is assigned before each.
        rank, world_size, even, global_batch, start, check: as in ``to_torch``. Without a rank all
            is read, with a warning if there are several processes. ``start`` is that of the first
            epoch, or of the variable's present value.
        parallel_calls: how many images are prepared at a time, in a pool of as many threads; 0 for
            one after the other on demand. By default tf.data tunes it.
        prefetch: how many batches to prepare ahead. By default tf.data tunes it.

    Raises:
        TypeError: ``dataset`` is not an open data set, but for example a path.
        ImportError: TensorFlow is not installed.
        ConfigError: the rank, the start, the buffer or the batches are out of range, or the ranks
            do not fit the share.
    """
    _require_open(dataset)
    if shuffle_buffer and start:
        raise ConfigError(UNCOUNTED)
    import_framework("tensorflow")
    from dataprep.adapters.augment import Augmentation
    from dataprep.adapters.records import Records
    from dataprep.adapters.tensorflow import pipeline

    ranks = rank_of(rank, world_size, "to_tf")
    order = Order(shuffle, seed, *ranks, even, start=start, epoch=int(epoch))
    return pipeline(
        Records(dataset, check=check),
        dataset.manifest.encoding,
        _in_batches(order, batch_size, global_batch),
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
    rank: int | None = None,
    world_size: int | None = None,
    even: Even = "keep",
    global_batch: int | None = None,
    start: int = 0,
    threads: int | None = None,
    prefetch: int = 4,
    cache_dir: str | os.PathLike[str] | None = None,
) -> RecordBatches:
    """Read ``dataset``, in its recordio format, as an ``mx.io.DataIter`` of decoded batches.

    Images are float32 (N, 3, size, size), labels float32 (N,) from 0. Each iteration is the next
    epoch; ``reset`` also begins it, unless nothing was read of the present one, and ``set_epoch``
    begins any. The last batch of an epoch may be short. (ImageRecordIter's own
    ``round_batch`` fills it from the beginning and leaves those samples out of the next epoch.)

    This package reads the records in the order of ``to_torch`` with ``iterable=True``, compares
    them with their checksums, and writes them to files of some 64 MB in ``cache_dir``, which
    ImageRecordIter reads one after the other. The next file is written meanwhile; two exist at a
    time. ``close`` ends reading and removes them. Augmentation depends on seed, epoch, start and
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
        rank, world_size, even, global_batch, start: as in ``to_torch``. Without a rank all is read,
            with a warning if there are several processes.
        threads: threads that decode. The default is one per processor that affinity and control
            group allow, at most 6.
        prefetch: how many batches to prepare ahead.
        cache_dir: where records are written; by default the folder for temporary files.

    Raises:
        TypeError: ``dataset`` is not an open data set, but for example a path.
        ImportError: MXNet is not installed.
        ConfigError: the data set has another format or images that MXNet does not decode, the
            rank or the start is out of range, or the ranks do not fit the share.
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
    ranks = rank_of(rank, world_size, "to_mxnet")
    order = Order(shuffle, seed, *ranks, even, start=start, epoch=epoch)
    order = _in_batches(order, batch_size, global_batch)
    import_framework("mxnet")
    from dataprep.adapters.mxnet import RecordBatches
    from dataprep.adapters.records import Records

    return RecordBatches(
        Records(dataset),
        dataset.manifest.formats[dataset.format].label_offset,
        order,
        augmentation,
        batch_size=batch_size,
        threads=min(_MXNET_THREADS, usable_processors()) if threads is None else threads,
        prefetch=prefetch,
        cache_dir=cache_dir,
    )


def _in_batches(order: Order, batch_size: int | None, global_batch: int | None) -> Order:
    """The order with its global batch.

    Raises:
        ConfigError: batch and global batch do not agree.
    """
    if global_batch is None and batch_size is not None:
        global_batch = batch_size * order.world_size
    order = replace(order, global_batch=global_batch)
    if batch_size is not None and order.batch != batch_size:
        raise ConfigError(
            f"batch_size {batch_size}: rank {order.rank} of {order.world_size} has {order.batch} "
            f"samples of a global batch of {global_batch}"
        )
    return order


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
