"""torch's iterable style: whole shards, one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
from torch.utils.data import IterableDataset, get_worker_info

from dataprep.adapters.records import EncodedImages, Records
from dataprep.adapters.torch_buffer import SampleBuffer
from dataprep.adapters.torch_items import Items, Located, Order
from dataprep.augment import Transform
from dataprep.dataset import Dataset


class IterableRecords(IterableDataset[tuple[Any, int]]):
    """(image, label) of every sample once, over all ranks and their workers.

    Each worker takes whole shards, and holds two: the one it gives samples of, and the next,
    which is read meanwhile. With a ``buffer`` samples go through one, so that those of several
    shards are mixed. ``records`` is what is read: others of as many samples may take its place
    before the first item.
    """

    def __init__(
        self, dataset: Dataset, transform: Transform | None, order: Order, buffer: int = 0
    ) -> None:
        self.records: EncodedImages = Records(dataset)
        self.items = Items(self.records.labels, self.records.name, transform, order.seed)
        self.order = order
        self._buffer = SampleBuffer(buffer, order) if buffer and order.shuffle else None

    @property
    def buffer_bytes(self) -> int:
        """The most that each worker's buffer held so far, added up; 0 without one."""
        return self._buffer.peak_bytes if self._buffer is not None else 0

    def set_epoch(self, epoch: int) -> None:
        """Which epoch the next iteration is."""
        self.order.epoch.set(epoch)

    def samples_by_worker(self, workers: int, epoch: int) -> list[int]:
        """How many samples each of ``workers`` gives in an epoch; 0 workers are this process."""
        shards = self.order.share(len(self.records.shard_keys), epoch)
        counts = np.array([len(self.records.samples_of(int(number))) for number in shards])
        return [int(counts[worker :: workers or 1].sum()) for worker in range(workers or 1)]

    def sequence(self, epoch: int, worker: int = 0, workers: int = 1) -> Iterator[int]:
        """Numbers of the samples of one worker, in the order in which they are read."""
        for number in self._shards_of(epoch, worker, workers):
            yield from self._within(number, epoch)

    def __iter__(self) -> Iterator[tuple[Any, int]]:
        epoch = self.order.epoch.number
        for read, index in self._located(epoch):
            yield self.items.item(read(index), index, epoch)

    def samples_in(self, epoch: int) -> int:
        """How many samples this rank has in an epoch."""
        return sum(self.samples_by_worker(0, epoch))

    def batches(self, size: int, epoch: int) -> Iterator[list[Located]]:
        """Samples of this rank, or of this worker's shards, ``size`` at a time."""
        samples = self._located(epoch)
        while batch := list(islice(samples, size)):
            yield batch

    def _located(self, epoch: int) -> Iterator[Located]:
        samples = self._in_sequence(epoch)
        return samples if self._buffer is None else self._buffer.drawn(samples, epoch)

    def _in_sequence(self, epoch: int) -> Iterator[Located]:
        for number, content in self._one_ahead(self._my_shards(epoch)):
            read = partial(self.records.image_within, memoryview(content))
            for index in self._within(number, epoch):
                yield Located(read, index)

    def _my_shards(self, epoch: int) -> list[int]:
        worker = get_worker_info()
        return self._shards_of(epoch, *((worker.id, worker.num_workers) if worker else (0, 1)))

    def _shards_of(self, epoch: int, worker: int, workers: int) -> list[int]:
        shards = self.order.share(len(self.records.shard_keys), epoch)
        return list(map(int, shards[worker::workers]))

    def _within(self, number: int, epoch: int) -> list[int]:
        samples = self.records.samples_of(number)
        return list(map(int, samples.start + self.order.of(len(samples), epoch, number)))

    def _one_ahead(self, shards: Sequence[int]) -> Iterator[tuple[int, bytes]]:
        if not shards:
            return
        with ThreadPoolExecutor(1) as thread:
            coming = thread.submit(self.records.shard, shards[0])
            for number, following in zip(shards, [*shards[1:], None], strict=True):
                content = coming.result()
                if following is not None:
                    coming = thread.submit(self.records.shard, following)
                yield number, content
