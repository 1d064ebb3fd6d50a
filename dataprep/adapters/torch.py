"""Data sets for torch: by sample number, as a stream of whole shards, or in whole batches."""

from __future__ import annotations

import math
import os
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import Dataset as TorchDataset
from torch.utils.data import IterableDataset, Sampler, default_collate, get_worker_info

from dataprep.adapters.augment import Transform, has_write, sample_rng
from dataprep.assign import Order, epoch_order, mixed, order_within
from dataprep.errors import ImageError
from dataprep.formats.protocol import Buffer
from dataprep.ordered import in_order

_MOST_THREADS = 8  # by default: between images, Python runs one thread at a time
_PART = 8  # images that a thread makes before it takes the next


class Items:
    """Turn encoded images into samples of torch.

    Attributes:
        labels: int64 (samples,), the label of each sample.
        transform: applied to each image; None leaves images as bytes.
    """

    def __init__(self, records: Any, transform: Transform | None, seed: int) -> None:
        """Use ``records.labels``, and ``records.name(number)`` in error messages."""
        self.labels: NDArray[np.int64] = records.labels
        self.transform: Any = transform
        self._name: Callable[[int], str] = records.name
        self._seed = seed

    def item(self, data: Buffer, number: int, epoch: int) -> tuple[Any, int]:
        """(image, label) of sample ``number``, whose encoded image is ``data``.

        Raises:
            ImageError: from the transform, with the name of the sample.
        """
        return self.image(data, number, epoch), int(self.labels[number])

    def image(self, data: Buffer, number: int, epoch: int, out: NDArray[Any] | None = None) -> Any:
        """The image alone, written into ``out`` if it is given; NumPy arrays become tensors."""
        if self.transform is None:
            return bytes(data)
        rng = sample_rng(self._seed, epoch, number)
        try:
            if out is not None:
                return self.transform.write(data, rng, out)
            made = self.transform(data, rng)
        except ImageError as error:
            raise type(error)(f"{self._name(number)}: {error}") from error
        return torch.from_numpy(made) if isinstance(made, np.ndarray) else made


class _Sample(NamedTuple):
    """The number of a sample, and a function that returns its encoded image, on any thread."""

    number: int
    read: Callable[[], Buffer]


class _Samples:
    """What both styles share.

    Attributes:
        records: reads the images, such as ``dataprep.adapters.records.Records``.
        items: turns them into samples.
        order: which samples this rank reads.
    """

    def __init__(
        self, records: Any, transform: Transform | None, order: Order, epoch: int = 0
    ) -> None:
        self.records = records
        self.items = Items(records, transform, order.seed)
        self.order = order
        # In shared memory, so that workers that persist read the current number.
        self._epoch = torch.tensor(epoch).share_memory_()  # type: ignore[no-untyped-call]

    @property
    def epoch(self) -> int:
        """The number of the epoch, from the last ``set_epoch`` in any process."""
        return int(self._epoch)

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch of the next iteration, also for workers that are running."""
        self._epoch.fill_(epoch)


class MapRecords(_Samples, TorchDataset[tuple[Any, int]]):
    """``images[i]`` is (image, label) of sample ``i``, in one ranged read."""

    @property
    def sampler(self) -> EpochSampler:
        """The numbers of this rank's samples in the order of the epoch, for ``DataLoader``."""
        return EpochSampler(self)

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        if not 0 <= index < len(self):
            raise IndexError(f"sample {index} of {len(self)}")
        return self.items.item(self.records.image(index), index, self.epoch)

    def numbers(self) -> list[int]:
        """The numbers of this rank's samples in the order of the epoch."""
        return epoch_order(self.order, len(self), self.epoch)

    def samples_in_epoch(self) -> int:
        """How many samples this rank has."""
        return len(range(self.order.rank, len(self), self.order.world_size))

    def batches(self, size: int) -> Iterator[list[_Sample]]:
        """The samples of this rank in batches; a worker gets its share of the batches.

        ``DataLoader`` takes a batch from each worker in turn, so that their order is the same for
        any number of workers.
        """
        numbers = self.numbers()
        worker, workers = _worker()
        for begin in range(worker * size, len(numbers), workers * size):
            chosen = numbers[begin : begin + size]
            yield [_Sample(number, partial(self.records.image, number)) for number in chosen]


class EpochSampler(Sampler[int]):
    """The sampler of ``MapRecords``."""

    def __init__(self, images: MapRecords) -> None:
        self._images = images

    def __len__(self) -> int:
        return self._images.samples_in_epoch()

    def __iter__(self) -> Iterator[int]:
        return iter(self._images.numbers())


class IterableRecords(_Samples, IterableDataset[tuple[Any, int]]):
    """(image, label) of every sample, one whole shard after the other.

    Each worker reads its own shards and keeps two in memory: the current one and the next, which
    it reads ahead. ``buffer`` samples are mixed if it is not 0 and the order is shuffled.
    """

    def __init__(
        self,
        records: Any,
        transform: Transform | None,
        order: Order,
        epoch: int = 0,
        buffer: int = 0,
    ) -> None:
        super().__init__(records, transform, order, epoch)
        self._buffer = buffer if order.shuffle else 0

    def __iter__(self) -> Iterator[tuple[Any, int]]:
        epoch = self.epoch
        for number, read in self._samples(epoch):
            yield self.items.item(read(), number, epoch)

    def sequence(self, epoch: int, worker: int = 0, workers: int = 1) -> Iterator[int]:
        """The numbers of one worker's samples in the order in which they are read."""
        for shard in self._shards(epoch, worker, workers):
            yield from order_within(self.order, self.records.samples_of(shard), epoch, shard)

    def samples_in_epoch(self, worker: int = 0, workers: int = 1) -> int:
        """How many samples this rank, or one of its workers, has in the epoch."""
        shards = self._shards(self.epoch, worker, workers)
        return sum(len(self.records.samples_of(shard)) for shard in shards)

    def batches(self, size: int) -> Iterator[list[_Sample]]:
        """The samples of this rank, or of one of its workers, in batches."""
        samples = self._samples(self.epoch)
        while batch := list(islice(samples, size)):
            yield batch

    def _shards(self, epoch: int, worker: int, workers: int) -> list[int]:
        return epoch_order(self.order, len(self.records.shard_keys), epoch)[worker::workers]

    def _samples(self, epoch: int) -> Iterator[_Sample]:
        worker, workers = _worker()
        samples = self._in_sequence(epoch, self._shards(epoch, worker, workers))
        if not self._buffer:
            return samples
        # Each with an image of its own, which does not keep its shard in memory.
        owned = (_Sample(number, partial(bytes, bytes(read()))) for number, read in samples)
        return mixed(self.order, owned, self._buffer, epoch, worker)

    def _in_sequence(self, epoch: int, shards: list[int]) -> Iterator[_Sample]:
        with closing(in_order(self.records.shard, shards, 1)) as contents:
            for shard, content in zip(shards, contents, strict=True):
                read = partial(self.records.image_within, memoryview(content))
                samples = self.records.samples_of(shard)
                for number in order_within(self.order, samples, epoch, shard):
                    yield _Sample(number, partial(read, number))


def _worker() -> tuple[int, int]:
    """The number of this ``DataLoader`` worker and how many there are; (0, 1) outside."""
    info = get_worker_info()
    return (info.id, info.num_workers) if info else (0, 1)


@dataclass(eq=False)
class BatchedRecords(IterableDataset[tuple[Any, torch.Tensor]]):
    """Batches (images, labels): tensors (N, ...) and int64 (N,).

    Threads decode each image into its place in the batch. The memory of a batch is used again only
    when neither the batch nor a view of it is referenced any more. ``size`` is the ``batch_size``
    of ``dataprep.to_torch``, whose names the other options have.
    """

    samples: MapRecords | IterableRecords
    size: int
    drop_last: bool
    threads: int | None
    prefetch: int

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch of the next iteration, also for workers that are running."""
        self.samples.set_epoch(epoch)

    def __len__(self) -> int:
        """The batches of this rank in the epoch, without worker processes."""
        samples = self.samples.samples_in_epoch()
        return samples // self.size if self.drop_last else -(-samples // self.size)

    def __iter__(self) -> Iterator[tuple[Any, torch.Tensor]]:
        threads = self.threads
        if threads is None:
            cores = len(os.sched_getaffinity(0))
            threads = 0 if get_worker_info() is not None else min(_MOST_THREADS, cores)
        ahead = self.prefetch * -(-self.size // _PART)
        with closing(in_order(_fill, self._parts(), threads, ahead=ahead)) as parts:
            for batch, places in parts:
                if places.stop == len(batch.samples):
                    images = default_collate(batch.made) if batch.images is None else batch.images
                    numbers = [sample.number for sample in batch.samples]
                    yield images, torch.from_numpy(batch.items.labels[numbers])

    def _parts(self) -> Iterator[tuple[_Batch, range]]:
        items, epoch = self.samples.items, self.samples.epoch
        writes = has_write(items.transform)
        free: deque[NDArray[Any]] = deque(maxlen=self.prefetch + 2)
        for samples in self.samples.batches(self.size):
            count = len(samples)
            if count < self.size and self.drop_last:
                continue
            images, made = None, [None] * count
            if writes:
                shape = (self.size, *items.transform.shape)
                images = _lend(shape, items.transform.dtype, free)[:count]
                made = list(images.numpy())
            batch = _Batch(samples, items, epoch, images, made)
            for begin in range(0, count, _PART):
                yield batch, range(count)[begin : begin + _PART]


@dataclass(frozen=True, slots=True)
class _Batch:
    """A batch that threads fill.

    ``made`` are the slots of ``images``; if the transform cannot write, None until it is made.
    """

    samples: list[_Sample]
    items: Items
    epoch: int
    images: torch.Tensor | None
    made: list[Any]


def _fill(part: tuple[_Batch, range]) -> tuple[_Batch, range]:
    batch, places = part
    for place in places:
        number, read = batch.samples[place]
        made = batch.items.image(read(), number, batch.epoch, batch.made[place])
        batch.made[place] = made
    return part


def _lend(shape: tuple[int, ...], dtype: np.dtype[Any], free: deque[NDArray[Any]]) -> torch.Tensor:
    """A tensor in memory from ``free`` if possible, which returns there when it is not used.

    Filling new memory takes a quarter longer.
    """
    if get_worker_info() is not None:
        return empty(shape, torch.from_numpy(np.empty(0, dtype)).dtype)
    try:
        memory = free.pop()
    except IndexError:
        memory = np.empty(shape, dtype)
    lent = memory[:]
    # The tensor keeps ``lent`` alive, and so does every view of the tensor.
    weakref.finalize(lent, free.append, memory).atexit = False
    return torch.from_numpy(lent)


def empty(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """A new tensor; in shared memory in a ``DataLoader`` worker, as torch's own collate does."""
    if get_worker_info() is None:
        return torch.empty(shape, dtype=dtype)
    size = math.prod(shape) * dtype.itemsize
    storage = torch.UntypedStorage._new_shared(size)  # type: ignore[no-untyped-call]
    return torch.tensor([], dtype=dtype).set_(storage).view(shape)
