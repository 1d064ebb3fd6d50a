"""torch's map style: any sample by its number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch.utils.data import Dataset as TorchDataset
from torch.utils.data import Sampler

from dataprep.adapters.records import Records
from dataprep.adapters.torch_items import Items, Order
from dataprep.augment import Transform
from dataprep.dataset import Dataset


class MapRecords(TorchDataset[tuple[Any, int]]):
    """``images[i]`` is (image, label) of ``dataset[i]``: one ranged read.

    ``sampler`` gives the numbers of this rank in the order of the epoch.
    """

    def __init__(self, dataset: Dataset, transform: Transform | None, order: Order) -> None:
        self._records = Records(dataset)
        self._items = Items(self._records.labels, self._records.name, transform, order.seed)
        self._order = order
        self.sampler = EpochSampler(len(self._records), order)

    def set_epoch(self, epoch: int) -> None:
        """Which epoch the next iteration is."""
        self._order.epoch.set(epoch)

    def __len__(self) -> int:
        return len(self._records)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        if not 0 <= index < len(self):
            raise IndexError(f"sample {index} of {len(self)}")
        return self._items.item(self._records.image(index), index, self._order.epoch.number)


class EpochSampler(Sampler[int]):
    """Numbers of samples in the order of the epoch."""

    def __init__(self, samples: int, order: Order) -> None:
        self._samples, self._order = samples, order

    def __len__(self) -> int:
        return len(range(self._order.rank, self._samples, self._order.world_size))

    def __iter__(self) -> Iterator[int]:
        yield from self._order.share(self._samples, self._order.epoch.number).tolist()
