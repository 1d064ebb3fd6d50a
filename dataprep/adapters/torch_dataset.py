"""A data set as one of torch's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, overload

from dataprep.adapters.frameworks import import_framework
from dataprep.adapters.opened import require_open
from dataprep.augment import Transform
from dataprep.dataset import Dataset
from dataprep.errors import ConfigError

if TYPE_CHECKING:
    from dataprep.adapters.torch_iterable import IterableRecords
    from dataprep.adapters.torch_map import MapRecords


@overload
def to_torch(
    dataset: Dataset,
    *,
    iterable: Literal[False] = False,
    transform: Transform | None = None,
    shuffle: bool = True,
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
    shuffle: bool = True,
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
    shuffle: bool = True,
    seed: int = 0,
    epoch: int = 0,
    rank: int = 0,
    world_size: int = 1,
) -> MapRecords | IterableRecords: ...
def to_torch(
    dataset: Dataset,
    *,
    iterable: bool = False,
    transform: Transform | None = None,
    shuffle: bool = True,
    seed: int = 0,
    epoch: int = 0,
    rank: int = 0,
    world_size: int = 1,
) -> MapRecords | IterableRecords:
    """``dataset`` for ``torch.utils.data.DataLoader``; items are (image, label from 0).

    The map style reads one record an item and is shuffled by its ``sampler``::

        images = dataprep.to_torch(dataset, transform=Augmentation())
        loader = DataLoader(images, batch_size=64, sampler=images.sampler, num_workers=8)

    The iterable style reads whole shards, one after the other, and shuffles shards and the
    records within each. Call ``set_epoch`` before each epoch: order and randomness depend on
    seed, epoch and sample, never on workers; it reaches persistent workers too.

    Args:
        dataset: an open split.
        iterable: which style.
        transform: such as ``dataprep.Augmentation``; NumPy arrays become tensors. Without one
            images stay bytes.
        shuffle: whether the order changes with the epoch.
        seed: of order and transform.
        epoch: the first.
        rank: this process among ``world_size``, each of which gets a part of its own: of the
            samples, by ``sampler`` (map), or of the shards (iterable). Parts may differ by one
            sample, or one shard: distributed training ends an epoch with the least of them, or
            uses ``torch.distributed.algorithms.Join``.
        world_size: how many processes train together.

    Raises:
        TypeError: no open data set, but a path for instance.
        ImportError: torch is not installed.
        ConfigError: no such rank.
    """
    require_open(dataset)
    if not 0 <= rank < world_size:
        raise ConfigError(f"rank {rank} of {world_size}: ranks count from 0")
    import_framework("torch")
    from dataprep.adapters.torch_items import Epoch, Order
    from dataprep.adapters.torch_iterable import IterableRecords
    from dataprep.adapters.torch_map import MapRecords

    style = IterableRecords if iterable else MapRecords
    return style(dataset, transform, Order(shuffle, seed, Epoch(epoch), rank, world_size))
