"""Whole batches for torch: threads write images where they lie in the batch."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import IterableDataset, default_collate, get_worker_info

from dataprep.adapters.torch_items import Items, Located
from dataprep.adapters.torch_iterable import IterableRecords
from dataprep.adapters.torch_map import MapRecords
from dataprep.adapters.torch_memory import Lender, empty
from dataprep.augment import ArrayTransform
from dataprep.augment.transform import array_transform
from dataprep.ordered import in_order

_MOST_THREADS = 8  # of those that are taken unasked: Python runs one at a time between images
_PART = 8  # images that a thread makes before it takes the next


@dataclass(frozen=True, slots=True)
class Batching:
    """How samples become batches.

    Attributes:
        size: samples a batch.
        drop_last: whether a last batch that is smaller is left out.
        threads: that decode; None for one a processor, at most 8.
        prefetch: batches ahead of the one that is taken.
    """

    size: int
    drop_last: bool = False
    threads: int | None = None
    prefetch: int = 2


class BatchedRecords(IterableDataset[tuple[Any, torch.Tensor]]):
    """(images, labels) of each batch: tensors (N, ...) and int64 (N,).

    Each image is decoded into its place in the batch. A batch is the caller's for as long as it,
    or a view of it, is held; its memory is then used again.
    """

    def __init__(self, records: MapRecords | IterableRecords, batching: Batching) -> None:
        self._records = records
        self._batching = batching
        self._lender: Lender | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_lender": None}

    def set_epoch(self, epoch: int) -> None:
        """Which epoch the next iteration is."""
        self._records.set_epoch(epoch)

    def __len__(self) -> int:
        """Batches of this rank in the epoch that was set, made without worker processes."""
        samples = self._records.samples_in(self._records.order.epoch.number)
        size = self._batching.size
        return samples // size if self._batching.drop_last else -(-samples // size)

    def __iter__(self) -> Iterator[tuple[Any, torch.Tensor]]:
        batching = self._batching
        ahead = batching.prefetch * -(-batching.size // _PART)
        parts = self._parts(self._records.order.epoch.number)
        with closing(in_order(_make, parts, self._threads(), ahead=ahead)) as made:
            for part in made:
                if part.last:
                    yield part.batch.finished()

    def _threads(self) -> int:
        """Of this process: a DataLoader's worker is a thread itself, and is asked ahead."""
        if self._batching.threads is not None:
            return self._batching.threads
        if get_worker_info() is not None:
            return 0
        return min(_MOST_THREADS, len(os.sched_getaffinity(0)))

    def _parts(self, epoch: int) -> Iterator[_Part]:
        size = self._batching.size
        for samples in self._records.batches(size, epoch):
            if len(samples) < size and self._batching.drop_last:
                continue
            batch = self._batch(samples, epoch)
            for begin in range(0, len(samples), _PART):
                chosen = range(begin, min(begin + _PART, len(samples)))
                yield _Part(batch, chosen, chosen.stop == len(samples))

    def _batch(self, samples: Sequence[Located], epoch: int) -> _Batch:
        items = self._records.items
        transform = array_transform(items.transform)
        if transform is None:
            return _Collated(samples, items, epoch)
        return _Written(samples, items, epoch, transform, self._images(len(samples), transform))

    def _images(self, count: int, transform: ArrayTransform) -> torch.Tensor:
        shape, dtype = (count, *transform.shape), transform.dtype
        if get_worker_info() is not None:
            return empty(shape, torch.from_numpy(np.empty(0, dtype)).dtype)
        if self._lender is None:
            self._lender = Lender(spare=self._batching.prefetch + 2)
        return torch.from_numpy(self._lender.lend(shape, dtype))


class _Batch(Protocol):
    """A batch that is being made, by several threads."""

    def make(self, number: int) -> None:
        """Sample ``number`` of it."""
        ...

    def finished(self) -> tuple[Any, torch.Tensor]:
        """What the caller gets, once all were made."""
        ...


class _Part(NamedTuple):
    batch: _Batch
    samples: range
    last: bool


def _make(part: _Part) -> _Part:
    for number in part.samples:
        part.batch.make(number)
    return part


class _Written:
    """Images of one shape, each written into its place."""

    def __init__(
        self,
        samples: Sequence[Located],
        items: Items,
        epoch: int,
        transform: ArrayTransform,
        images: torch.Tensor,
    ) -> None:
        self._samples, self._items, self._epoch = samples, items, epoch
        self._transform = transform
        self._images = images
        self._slots: NDArray[Any] = images.numpy()

    def make(self, number: int) -> None:
        sample = self._samples[number]
        self._items.write(self._transform, sample, self._epoch, self._slots[number])

    def finished(self) -> tuple[torch.Tensor, torch.Tensor]:
        numbers = [sample.number for sample in self._samples]
        return self._images, torch.from_numpy(self._items.labels[numbers])


class _Collated:
    """Whatever a transform makes, put together as a DataLoader does it."""

    def __init__(self, samples: Sequence[Located], items: Items, epoch: int) -> None:
        self._samples, self._items, self._epoch = samples, items, epoch
        self._made: list[Any] = [None] * len(samples)

    def make(self, number: int) -> None:
        read, index = self._samples[number]
        self._made[number] = self._items.item(read(index), index, self._epoch)

    def finished(self) -> tuple[Any, torch.Tensor]:
        images, labels = zip(*self._made, strict=True)
        return default_collate(list(images)), torch.tensor(labels)
