"""torch's map style: any sample by its number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from torch.utils.data import Dataset as TorchDataset
from torch.utils.data import Sampler

from dataprep.adapters.records import Records
from dataprep.adapters.torch_items import Epoch, Items
from dataprep.augment import Transform
from dataprep.dataset import Dataset


class MapRecords(TorchDataset[tuple[Any, int]]):
    """``images[i]`` is (image, label) of ``dataset[i]``: one ranged read.

    ``sampler`` gives the numbers of this rank in the order of the epoch.
    """

    def __init__(
        self,
        dataset: Dataset,
        transform: Transform | None,
        shuffle: bool,
        seed: int,
        epoch: int,
        share: tuple[int, int],
    ) -> None:
        self._records = Records(dataset)
        self._items = Items(self._records.labels, self._records.name, transform, seed)
        self._epoch = Epoch(epoch)
        self.sampler = EpochSampler(len(self._records), shuffle, seed, self._epoch, share)

    def __len__(self) -> int:
        return len(self._records)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        if not 0 <= index < len(self):
            raise IndexError(f"sample {index} of {len(self)}")
        return self._items.item(self._records.image(index), index, self._epoch.number)

    def set_epoch(self, epoch: int) -> None:
        """Which epoch the next iteration is."""
        self._epoch.set(epoch)


class EpochSampler(Sampler[int]):
    """Numbers of samples in an order that depends on seed and epoch; ``share`` is (rank, of)."""

    def __init__(
        self, samples: int, shuffle: bool, seed: int, epoch: Epoch, share: tuple[int, int]
    ) -> None:
        self._samples, self._shuffle, self._seed = samples, shuffle, seed
        self._epoch = epoch
        self._rank, self._world_size = share

    def __len__(self) -> int:
        return len(range(self._rank, self._samples, self._world_size))

    def __iter__(self) -> Iterator[int]:
        order = np.arange(self._samples)
        if self._shuffle:
            order = np.random.default_rng((self._seed, self._epoch.number)).permutation(order)
        yield from order[self._rank :: self._world_size].tolist()
