"""torch's iterable style: whole shards, one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from torch.utils.data import IterableDataset, get_worker_info

from dataprep.adapters.records import Records
from dataprep.adapters.torch_items import Items, Order
from dataprep.augment import Transform
from dataprep.dataset import Dataset


class IterableRecords(IterableDataset[tuple[Any, int]]):
    """(image, label) of every sample once, over all ranks and their workers.

    Each worker takes whole shards, and holds two: the one it gives samples of, and the next,
    which is read meanwhile.
    """

    def __init__(self, dataset: Dataset, transform: Transform | None, order: Order) -> None:
        self._records = Records(dataset)
        self._items = Items(self._records.labels, self._records.name, transform, order.seed)
        self._order = order

    def set_epoch(self, epoch: int) -> None:
        """Which epoch the next iteration is."""
        self._order.epoch.set(epoch)

    def samples_by_worker(self, workers: int, epoch: int) -> list[int]:
        """How many samples each of ``workers`` gives in an epoch; 0 workers are this process."""
        shards = self._order.share(len(self._records.shard_keys), epoch)
        counts = np.array([len(self._records.samples_of(int(number))) for number in shards])
        return [int(counts[worker :: workers or 1].sum()) for worker in range(workers or 1)]

    def __iter__(self) -> Iterator[tuple[Any, int]]:
        epoch = self._order.epoch.number
        for number, content in self._one_ahead(self._my_shards(epoch)):
            view = memoryview(content)
            for index in self._within(number, epoch):
                image = self._records.image_within(view, index)
                yield self._items.item(image, index, epoch)

    def _my_shards(self, epoch: int) -> list[int]:
        shards = self._order.share(len(self._records.shard_keys), epoch)
        worker = get_worker_info()
        return list(map(int, shards[worker.id :: worker.num_workers] if worker else shards))

    def _within(self, number: int, epoch: int) -> list[int]:
        samples = self._records.samples_of(number)
        return list(map(int, samples.start + self._order.of(len(samples), epoch, number)))

    def _one_ahead(self, shards: Sequence[int]) -> Iterator[tuple[int, bytes]]:
        if not shards:
            return
        with ThreadPoolExecutor(1) as thread:
            coming = thread.submit(self._records.shard, shards[0])
            for number, following in zip(shards, [*shards[1:], None], strict=True):
                content = coming.result()
                if following is not None:
                    coming = thread.submit(self._records.shard, following)
                yield number, content
