"""A data set as one of torch's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, overload

from dataprep.adapters.frameworks import import_framework
from dataprep.adapters.opened import require_open
from dataprep.augment import Transform
from dataprep.dataset import Dataset
from dataprep.errors import ConfigError

if TYPE_CHECKING:
    from dataprep.adapters.torch_batches import BatchedRecords
    from dataprep.adapters.torch_iterable import IterableRecords
    from dataprep.adapters.torch_map import MapRecords


@overload
def to_torch(
    dataset: Dataset,
    *,
    iterable: Literal[False] = False,
    transform: Transform | None = None,
    batch_size: None = None,
    drop_last: bool = False,
    threads: int | None = None,
    prefetch: int = 2,
    shuffle: bool = True,
    shuffle_buffer: int = 0,
    seed: int = 0,
    epoch: int = 0,
    rank: int = 0,
    world_size: int = 1,
) -> MapRecords: ...
@overload
def to_torch(
    dataset: Dataset,
    *,
    iterable: Literal[True],
    transform: Transform | None = None,
    batch_size: None = None,
    drop_last: bool = False,
    threads: int | None = None,
    prefetch: int = 2,
    shuffle: bool = True,
    shuffle_buffer: int = 0,
    seed: int = 0,
    epoch: int = 0,
    rank: int = 0,
    world_size: int = 1,
) -> IterableRecords: ...
@overload
def to_torch(
    dataset: Dataset,
    *,
    iterable: bool,
    transform: Transform | None = None,
    batch_size: None = None,
    drop_last: bool = False,
    threads: int | None = None,
    prefetch: int = 2,
    shuffle: bool = True,
    shuffle_buffer: int = 0,
    seed: int = 0,
    epoch: int = 0,
    rank: int = 0,
    world_size: int = 1,
) -> MapRecords | IterableRecords: ...
@overload
def to_torch(
    dataset: Dataset,
    *,
    iterable: bool = False,
    transform: Transform | None = None,
    batch_size: int,
    drop_last: bool = False,
    threads: int | None = None,
    prefetch: int = 2,
    shuffle: bool = True,
    shuffle_buffer: int = 0,
    seed: int = 0,
    epoch: int = 0,
    rank: int = 0,
    world_size: int = 1,
) -> BatchedRecords: ...
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
) -> MapRecords | IterableRecords | BatchedRecords:
    """``dataset`` for torch: batches, or samples for ``torch.utils.data.DataLoader``.

    With ``batch_size`` it gives whole batches, tensors (N, ...) and int64 labels (N,) from 0::

        batches = dataprep.to_torch(
            dataset, transform=Augmentation(), iterable=True, batch_size=64
        )
        for images, labels in batches:

    Threads of this process decode each image into its place in the batch: decoding does not hold
    Python's lock. For more processors than threads can use, or a transform in Python,
    ``DataLoader(batches, batch_size=None, num_workers=8)`` has processes make the batches.

    Without, items are (image, label from 0), which ``DataLoader`` puts together. The map style
    reads one record an item and is shuffled by its ``sampler``::

        images = dataprep.to_torch(dataset, transform=Augmentation())
        loader = DataLoader(images, batch_size=64, sampler=images.sampler, num_workers=8)

    The iterable style reads whole shards, one after the other, and shuffles shards and the
    records within each. Call ``set_epoch`` before each epoch: order and randomness depend on
    seed, epoch and sample, never on threads or workers; it reaches persistent workers too.

    Args:
        dataset: an open split.
        iterable: which style: whole shards, or a read a record, in a fully random order.
        transform: such as ``dataprep.Augmentation``; NumPy arrays become tensors. Without one
            images stay bytes.
        batch_size: samples a batch, the last may be smaller; single samples if not given.
        drop_last: leave out a last batch that is smaller.
        threads: that decode for batches, 0 for the caller's own; by default one a processor, at
            most 8, and 0 in a worker of ``DataLoader``.
        prefetch: batches ahead, where threads make them.
        shuffle: whether the order changes with the epoch.
        shuffle_buffer: of the iterable style: encoded images that each worker holds, of which it
            draws the next, so that samples of several shards are mixed; 0 for none.
        seed: of order and transform.
        epoch: the first.
        rank: this process among ``world_size``, each of which gets a part of its own: of the
            samples (map), or of the shards (iterable). Parts may differ by one sample, or one
            shard: distributed training ends an epoch with the least of them, or uses
            ``torch.distributed.algorithms.Join``.
        world_size: how many processes train together.

    Raises:
        TypeError: no open data set, but a path for instance.
        ImportError: torch is not installed.
        ConfigError: no such rank, or batches that cannot be.
    """
    require_open(dataset)
    if not 0 <= rank < world_size:
        raise ConfigError(f"rank {rank} of {world_size}: ranks count from 0")
    if shuffle_buffer < 0 or (shuffle_buffer and not iterable):
        raise ConfigError(
            f"shuffle_buffer {shuffle_buffer}: samples, from 0 on, of the iterable style; "
            "the map style is shuffled by its sampler"
        )
    if (batch_size is not None and batch_size < 1) or prefetch < 0 or (threads or 0) < 0:
        raise ConfigError(
            f"batch_size {batch_size}, threads {threads}, prefetch {prefetch}: batches hold at "
            "least one sample, threads and prefetch are at least 0"
        )
    import_framework("torch")
    from dataprep.adapters.torch_batches import BatchedRecords, Batching
    from dataprep.adapters.torch_items import Epoch, Order
    from dataprep.adapters.torch_iterable import IterableRecords
    from dataprep.adapters.torch_map import MapRecords

    order = Order(shuffle, seed, Epoch(epoch), rank, world_size)
    records: MapRecords | IterableRecords
    if iterable:
        records = IterableRecords(dataset, transform, order, shuffle_buffer)
    else:
        records = MapRecords(dataset, transform, order)
    if batch_size is None:
        return records
    return BatchedRecords(records, Batching(batch_size, drop_last, threads, prefetch))
