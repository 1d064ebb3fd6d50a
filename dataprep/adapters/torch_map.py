"""torch's map style: any sample by its number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch.utils.data import Dataset as TorchDataset
from torch.utils.data import Sampler, get_worker_info

from dataprep.adapters.records import EncodedImages, Records
from dataprep.adapters.torch_items import Items, Located, Order
from dataprep.augment import Transform
from dataprep.dataset import Dataset


class MapRecords(TorchDataset[tuple[Any, int]]):
    """``images[i]`` is (image, label) of ``dataset[i]``: one ranged read.

    ``sampler`` gives the numbers of this rank in the order of the epoch. ``records`` is what is
    read: others of as many samples may take its place before the first item.
    """

    def __init__(self, dataset: Dataset, transform: Transform | None, order: Order) -> None:
        self.records: EncodedImages = Records(dataset)
        self.items = Items(self.records.labels, self.records.name, transform, order.seed)
        self.order = order
        self.sampler = EpochSampler(len(self.records), order)

    def set_epoch(self, epoch: int) -> None:
        """Which epoch the next iteration is."""
        self.order.epoch.set(epoch)

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        if not 0 <= index < len(self):
            raise IndexError(f"sample {index} of {len(self)}")
        return self.items.item(self.records.image(index), index, self.order.epoch.number)

    def samples_in(self, epoch: int) -> int:
        """How many samples this rank has."""
        return len(self.sampler)

    def batches(self, size: int, epoch: int) -> Iterator[list[Located]]:
        """Samples of this rank, ``size`` at a time; a worker is given its part of the batches.

        DataLoader takes a batch of each worker in turn, so that they come in the same order
        whatever the number of workers.
        """
        numbers = self.order.share(len(self), epoch)
        worker = get_worker_info()
        first, step = (worker.id, worker.num_workers) if worker else (0, 1)
        for begin in range(first * size, len(numbers), step * size):
            batch = numbers[begin : begin + size].tolist()
            yield [Located(self.records.image, index) for index in batch]


class EpochSampler(Sampler[int]):
    """Numbers of samples in the order of the epoch."""

    def __init__(self, samples: int, order: Order) -> None:
        self._samples, self._order = samples, order

    def __len__(self) -> int:
        return len(range(self._order.rank, self._samples, self._order.world_size))

    def __iter__(self) -> Iterator[int]:
        yield from self._order.share(self._samples, self._order.epoch.number).tolist()
