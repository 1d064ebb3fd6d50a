"""Readers of data sets for torch, TensorFlow and MXNet.

Each function imports its framework when it is called. ``import dataprep`` imports none of them.
"""

from __future__ import annotations

import importlib
import os
from dataclasses import replace
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, overload

from dataprep.errors import ConfigError
from dataprep.machine.processors import usable_processors
from dataprep.reading.epoch_order import Even, Order
from dataprep.reading.mxnet_compat import import_mxnet
from dataprep.reading.ranks import rank_of

if TYPE_CHECKING:
    import tensorflow as tf

    from dataprep.reading.augment import Augmentation
    from dataprep.reading.dataset import Dataset
    from dataprep.reading.mxnet import RecordBatches
    from dataprep.reading.torch import BatchedRecords, IterableRecords, MapRecords
    from dataprep.reading.transforms import AnyTransform

__all__ = ["to_mxnet", "to_tf", "to_torch"]

BUFFER_CANNOT_RESUME = (
    "shuffle_buffer has to be 0 to resume, because the samples in a buffer are not counted"
)
HOW_TO_RESUME = (
    "let torchdata's StatefulDataLoader save and load the state, or count the steps and give "
    "epoch=… and start=steps * global_batch to to_torch"
)
_MAX_DEFAULT_MXNET_THREADS = 4  # the default of ImageRecordIter
_FRAMEWORK_TITLES = {"torch": "PyTorch", "tensorflow": "TensorFlow", "mxnet": "MXNet"}


def import_framework(name: str) -> ModuleType:
    """Import ``torch``, ``tensorflow`` or ``mxnet``, and return the module.

    TensorFlow logs only errors at its start, unless ``TF_CPP_MIN_LOG_LEVEL`` is set.

    Raises:
        ImportError: the framework is not installed or is broken. The message says how to install
            it.
    """
    try:
        if name == "mxnet":
            return import_mxnet()
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # 2 hides information and warnings
        return importlib.import_module(name)
    except Exception as error:  # a broken framework raises OSError, AttributeError and others
        problem = f"cannot be imported: {error}"
        if isinstance(error, ModuleNotFoundError) and error.name == name:
            problem = f"is not installed: pip install 'dataprep-iobench[{name}]'"
        raise ImportError(f"{_FRAMEWORK_TITLES[name]} {problem}", name=name) from error


class TorchOptions(TypedDict, total=False):
    """The options of ``to_torch`` on which the type of its result does not depend."""

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
    """Read a data set in torch: in batches, or as samples for ``torch.utils.data.DataLoader``.

    **Batches.** With ``batch_size``, the result yields batches: a tensor of shape (N, ...), and
    int64 labels of shape (N,) that count from 0. Threads of this process decode each image into its
    slot of the batch. Decoding releases Python's interpreter lock. Use worker processes instead if
    the machine has more processors than threads can use, or if the transform is Python code:
    ``DataLoader(batches, batch_size=None, num_workers=8)``. Batches of
    ``Augmentation(normalise=False)`` are uint8, with a quarter of the bytes of float32.
    ``dataprep.normalise`` then converts them to float32 on the device.

    **Samples.** Without ``batch_size``, the result yields samples (image, label), which
    ``DataLoader`` collates. There are two styles:

    - The map style (``iterable=False``) returns a sample by its number, and its ``sampler``
      shuffles. From a remote store, the records of a batch are read in parallel.
    - The iterable style (``iterable=True``) reads shard after shard. It shuffles the shards, the
      runs of neighbouring records in each shard, and the records of each run. A run is read at
      once.

    **Epochs.** Each iteration is the next epoch, also in workers. ``set_epoch`` chooses another
    epoch. The order and the random numbers depend on the seed, the epoch and the sample, but not on
    threads or workers. If you use another sampler than ``images.sampler``, the map style augments
    samples for the epoch of the last ``set_epoch``. If the transform is random, and the program
    reads more samples than there are in an epoch without calling ``set_epoch``, the map style warns
    once.

    **Several processes.** Processes that train together give ``rank`` and ``world_size``, and
    ``even`` if they need equal numbers of steps. Each process then reads its own samples.
    ``len(images)`` and ``images[i]`` of the map style count the samples of the rank. If the data
    set is a host's share that ``dataprep stage`` copied, the ranks of that host divide it, and the
    number of ranks cannot change.

    **Resuming.** If training ended within an epoch, ``start`` continues from there. The number of
    ranks may change if the global batch stays the same. Batches and the iterable style also have
    ``state_dict`` and ``load_state_dict``, which ``StatefulDataLoader`` of torchdata calls. States
    that ``StatefulDataLoader`` saves for workers and for ``images.sampler`` need the same number of
    ranks. ``state_dict`` raises an error if workers of a plain ``DataLoader`` read the samples. The
    map style itself has no ``state_dict``, because it does not know which samples were read.

    Args:
        dataset: an open split, from ``dataprep.open``.
        iterable: whether to read shard after shard. Otherwise the order is fully random.
        transform: a function of an encoded image and a ``numpy.random.Generator``, such as
            ``dataprep.Augmentation``. NumPy arrays become tensors. A function of one argument, such
            as a transform of torchvision, gets a Pillow image; see ``dataprep.PillowTransform``.
            Without a transform, images are bytes.
        batch_size: samples in a batch. The last batch may be smaller. None yields single samples.
        drop_last: whether to leave out a last batch that is smaller.
        threads: threads that decode for batches; 0 decodes in the caller's own thread. The default
            is one thread for each processor that affinity and control group allow, at most 6. In a
            worker of ``DataLoader`` the default is 0.
        prefetch: batches that threads prepare ahead.
        shuffle: whether the order changes with the epoch. Otherwise samples keep the order of the
            data set.
        shuffle_buffer: for the iterable style, the number of encoded images from which each worker
            draws the next image, so that samples of several shards are mixed; 0 for no buffer.
        seed: the seed of the order and of the random numbers for the transform.
        epoch: the number of the first epoch.
        rank: the number of this process among ``world_size`` processes. If neither is given,
            batches and the iterable style take both from torch.distributed if it is initialised,
            and log this. The map style then reads all samples, and warns if there are several
            processes. Give ``rank=0, world_size=1`` to read all samples without a warning.
        world_size: the number of processes that train together.
        even: ``"keep"`` yields each sample once, so that ranks may have different numbers of
            batches. ``"drop"`` and ``"pad"`` give all ranks the same number, as
            DistributedDataParallel needs it: they leave out less than one global batch, or repeat
            less than one from the beginning of the epoch. If the hosts have shares, the smallest or
            the largest share determines the number, so that more samples are left out or repeated.
        global_batch: the samples of all ranks in a step; ``batch_size * world_size`` by default. If
            the ranks cannot divide it equally, give ``batch_size=dataprep.per_rank_batch(...)``.
        start: the samples of the first epoch that all ranks together have read before. With worker
            processes, count the steps: ``start = steps * global_batch``. A start at the end of an
            epoch begins the next epoch.
        check: whether to compare each record with its checksum in the table of samples, if its
            format has no checksums of its own.

    Returns:
        With ``batch_size``, a ``dataprep.reading.torch.BatchedRecords``, which is an
        ``IterableDataset`` of batches. Without it, an ``IterableRecords`` or a ``MapRecords`` of
        the same module, whose items are samples.

    Raises:
        TypeError: ``dataset`` is not an open data set, but for example a path.
        ImportError: torch is not installed.
        ConfigError: the rank, the seed, the start, the buffer, a batch size, ``threads`` or
            ``prefetch`` is out of range; the ranks do not fit the share; ``even="drop"`` leaves no
            step in an epoch; or the transform takes neither one argument nor two.
        DatasetError: the table of samples is missing, damaged, or belongs to another split.

    Example:
        >>> dataset = dataprep.open("out")
        >>> augmentation = dataprep.Augmentation(size=64)
        >>> batches = dataprep.to_torch(
        ...     dataset, transform=augmentation, iterable=True, batch_size=8
        ... )
        >>> images, labels = next(iter(batches))
        >>> images.shape, labels.dtype
        (torch.Size([8, 3, 64, 64]), torch.int64)

        The map style is read through ``DataLoader``:

        >>> from torch.utils.data import DataLoader
        >>> samples = dataprep.to_torch(dataset, transform=augmentation)
        >>> loader = DataLoader(samples, batch_size=8, sampler=samples.sampler)
        >>> images, labels = next(iter(loader))
    """
    _require_open(dataset)
    _require_valid_buffer(shuffle_buffer, start, iterable=iterable)
    if (batch_size is not None and batch_size < 1) or prefetch < 0 or (threads or 0) < 0:
        raise ConfigError(
            f"batch_size {batch_size}, threads {threads}, prefetch {prefetch}: batch_size is at "
            "least 1, threads and prefetch are at least 0"
        )
    import_framework("torch")
    # A DistributedSampler of the program may divide the samples of the map style. The samples of
    # the other styles are divided only here.
    is_divided_here = iterable or batch_size is not None
    ranks = rank_of(rank, world_size, "to_torch", from_torch=is_divided_here)
    order = Order(shuffle, seed, *ranks, even, start=start, epoch=epoch)
    order = _with_global_batch(order, batch_size, global_batch)
    from dataprep.reading.record_reader import Records
    from dataprep.reading.torch import BatchedRecords, IterableRecords, MapRecords
    from dataprep.reading.transforms import as_transform

    records = Records(dataset, check=check)
    image_transform = None if transform is None else as_transform(transform)
    samples: MapRecords | IterableRecords
    if iterable:
        samples = IterableRecords(records, image_transform, order, shuffle_buffer)
    else:
        samples = MapRecords(records, image_transform, order)
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
    """Read a data set as a ``tf.data.Dataset`` of (image, label).

    This package reads the records, from every store and in every format, and hands them to
    TensorFlow 64 at a time through ``from_generator``. The order is that of ``to_torch`` with
    ``iterable=True``. TensorFlow augments the images. Its random crops cover 0.38 of the image on
    average, and those of ``to_torch`` and ``to_mxnet`` cover 0.44. The order and the augmentation
    depend on the seed, the epoch and the sample, but not on timing.

    JPEG images are decoded by TensorFlow, which decodes only the crop. PNG and WebP images are
    decoded by this package, which decodes the whole image.

    Args:
        dataset: an open split, from ``dataprep.open``.
        batch_size: samples in a batch. The last batch may be smaller. None yields single samples.
        decode: whether to decode images. Otherwise they are strings with the encoded images.
        augmentation: how to augment the images; ``Augmentation()`` by default. The result always
            has the channels last.
        shuffle: whether the order changes with the epoch. Otherwise samples keep the order of the
            data set.
        shuffle_buffer: the number of encoded images in a buffer that mixes samples in addition; 0
            for no buffer.
        seed: the seed of the order and of the augmentation.
        epoch: the number of the first epoch. Each further iteration is the next epoch, as
            ``model.fit`` needs it. An integer ``tf.Variable`` chooses the epoch of each iteration:
            assign it before the iteration begins.
        rank: the number of this process among ``world_size`` processes. If neither is given, all
            samples are read, with a warning if there are several processes.
        world_size: the number of processes that train together.
        even: ``"keep"``, ``"drop"`` or ``"pad"``, as in ``to_torch``.
        global_batch: the samples of all ranks in a step; ``batch_size * world_size`` by default.
        start: the samples of the first epoch, or of the epoch in the variable, that all ranks
            together have read before.
        check: whether to compare each record with its checksum in the table of samples, if its
            format has no checksums of its own.
        parallel_calls: images that are prepared at the same time, which is also the number of
            threads; 0 prepares images on demand, one after the other. By default tf.data tunes it.
        prefetch: batches that are prepared ahead. By default tf.data tunes it.

    Returns:
        A ``tf.data.Dataset``. Images have the shape (size, size, 3), or (N, size, size, 3) in
        batches, in float32 or uint8. Labels are int64 and count from 0. Its ``len`` is known
        unless ``start`` is given.

    Raises:
        TypeError: ``dataset`` is not an open data set, but for example a path.
        ImportError: TensorFlow is not installed.
        ConfigError: the rank, the seed, the start, the buffer or a batch size is out of range; the
            ranks do not fit the share; ``start`` is given with a buffer; or ``even="drop"`` leaves
            no step in an epoch.
        DatasetError: the table of samples is missing, damaged, or belongs to another split.

    Example:
        >>> dataset = dataprep.open("out")
        >>> batches = dataprep.to_tf(dataset, batch_size=8)                   # doctest: +SKIP
        >>> images, labels = next(iter(batches))                              # doctest: +SKIP
    """
    _require_open(dataset)
    _require_valid_buffer(shuffle_buffer, start, iterable=True)
    import_framework("tensorflow")
    from dataprep.reading.augment import Augmentation
    from dataprep.reading.record_reader import Records
    from dataprep.reading.tensorflow import pipeline

    ranks = rank_of(rank, world_size, "to_tf")
    order = Order(shuffle, seed, *ranks, even, start=start, epoch=int(epoch))
    return pipeline(
        Records(dataset, check=check),
        dataset.manifest.encoding,
        _with_global_batch(order, batch_size, global_batch),
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
    """Read a data set in the recordio format as an ``mx.io.DataIter`` of decoded batches.

    Each iteration is the next epoch. ``reset`` also begins the next epoch, unless the current one
    has not begun. ``set_epoch`` begins any epoch. The last batch of an epoch may be smaller.
    (The option ``round_batch`` of ImageRecordIter would fill it with samples from the beginning,
    and leave these samples out of the next epoch.)

    This package reads the records in the order of ``to_torch`` with ``iterable=True``, and compares
    them with their checksums. It writes them to files of about 64 MB in ``cache_dir``, which
    ImageRecordIter reads one after the other. The next file is written meanwhile, so that two files
    exist at a time. ``close`` ends the reading and removes them. The augmentation depends on the
    seed, the epoch, the start and ``threads``.

    ImageRecordIter reuses its memory: a batch is overwritten after ``prefetch`` more batches have
    been taken. The wheel of MXNet decodes JPEG and PNG, but not WebP.

    Args:
        dataset: an open split with ``format="recordio"``.
        batch_size: samples in a batch.
        augmentation: the augmentation that ImageRecordIter applies with its own code;
            ``Augmentation()`` by default. If ``normalise`` is False, values are from 0 to 255.
        shuffle: whether the order changes with the epoch. Otherwise samples keep the order of the
            data set.
        seed: the seed of the order and of the augmentation.
        epoch: the number of the first epoch.
        rank: the number of this process among ``world_size`` processes. If neither is given, all
            samples are read, with a warning if there are several processes.
        world_size: the number of processes that train together.
        even: ``"keep"``, ``"drop"`` or ``"pad"``, as in ``to_torch``.
        global_batch: the samples of all ranks in a step; ``batch_size * world_size`` by default.
        start: the samples of the first epoch that all ranks together have read before.
        threads: threads that decode, at least 1. The default is one thread for each processor that
            affinity and control group allow, at most 4.
        prefetch: batches that are prepared ahead.
        cache_dir: the folder for the files with records; by default the folder for temporary files.

    Returns:
        A ``dataprep.reading.mxnet.RecordBatches``. Images are float32 of shape (N, 3, size, size).
        Labels are float32 of shape (N,) and count from 0. If a sample has several labels, it is the
        first one, which is its class.

    Raises:
        TypeError: ``dataset`` is not an open data set, but for example a path.
        ImportError: MXNet is not installed.
        ConfigError: the data set has another format or images that MXNet cannot decode; the
            augmentation has the channels last; the rank, the seed, the start or a batch size is out
            of range; the ranks do not fit the share; or ``even="drop"`` leaves no step in an epoch.
        DatasetError: the table of samples is missing, damaged, or belongs to another split.

    Example:
        >>> dataset = dataprep.open("out", format="recordio")                 # doctest: +SKIP
        >>> for batch in dataprep.to_mxnet(dataset, batch_size=8):            # doctest: +SKIP
        ...     images, labels = batch.data[0], batch.label[0]
    """
    _require_open(dataset, "recordio")
    from dataprep.reading.augment import Augmentation

    augmentation = augmentation or Augmentation()
    if augmentation.layout != "CHW":
        raise ConfigError("to_mxnet returns images with the channels first: use layout='CHW'")
    if dataset.manifest.encoding == "WEBP":
        raise ConfigError(
            "MXNet does not decode WebP: make the data set with image.encoding jpeg or png, or "
            "read it with dataprep.to_torch"
        )
    if threads is None:
        threads = min(_MAX_DEFAULT_MXNET_THREADS, usable_processors())
    ranks = rank_of(rank, world_size, "to_mxnet")
    order = Order(shuffle, seed, *ranks, even, start=start, epoch=epoch)
    order = _with_global_batch(order, batch_size, global_batch)
    import_framework("mxnet")
    from dataprep.reading.mxnet import RecordBatches
    from dataprep.reading.record_reader import Records

    return RecordBatches(
        Records(dataset),
        dataset.manifest.formats[dataset.format].label_offset,
        order,
        augmentation,
        batch_size=batch_size,
        threads=threads,
        prefetch=prefetch,
        cache_dir=cache_dir,
    )


def _require_valid_buffer(shuffle_buffer: int, start: int, *, iterable: bool) -> None:
    """Raise ConfigError for a shuffle buffer of ``to_torch`` or ``to_tf`` that cannot be used."""
    if shuffle_buffer and start:
        raise ConfigError(BUFFER_CANNOT_RESUME)
    if shuffle_buffer < 0:
        raise ConfigError(
            f"shuffle_buffer {shuffle_buffer}: give 0 for no buffer, or a number of images"
        )
    if shuffle_buffer and not iterable:
        raise ConfigError(
            f"shuffle_buffer {shuffle_buffer}: it is for the iterable style only; the sampler "
            "shuffles the map style"
        )


def _with_global_batch(order: Order, batch_size: int | None, global_batch: int | None) -> Order:
    """Return the order with its global batch.

    If the global batch is not given, it is the batch size times the number of ranks.

    Raises:
        ConfigError: the batch size is not this rank's slice of the global batch, or the global
            batch has less than one sample for each rank.
    """
    if global_batch is None and batch_size is not None:
        global_batch = batch_size * order.world_size
    order = replace(order, global_batch=global_batch)
    if batch_size is not None and order.rank_batch != batch_size:
        raise ConfigError(
            f"batch_size {batch_size}: rank {order.rank} of {order.world_size} has "
            f"{order.rank_batch} samples of a global batch of {global_batch}"
        )
    return order


def _require_open(dataset: object, format: str = "") -> None:
    """Require an open data set. If ``format`` is not empty, the data set must have this format.

    Raises:
        TypeError: ``dataset`` is not an open data set.
        ConfigError: the data set has another format.
    """
    from dataprep.reading.dataset import Dataset

    format_argument = f", format={format!r}" if format else ""
    if not isinstance(dataset, Dataset):
        raise TypeError(
            f"expected an open data set, not {type(dataset).__name__}: "
            f"dataprep.open(path, 'train'{format_argument})"
        )
    if format and dataset.format != format:
        raise ConfigError(
            f"this adapter reads {format}, not {dataset.format}: "
            f"dataprep.open(...{format_argument})"
        )
