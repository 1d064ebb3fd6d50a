"""Data sets for torch: by sample number, as a stream of whole shards, or in whole batches."""

from __future__ import annotations

import math
import weakref
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import Dataset as TorchDataset
from torch.utils.data import IterableDataset, Sampler, default_collate, get_worker_info

from dataprep.adapters import UNCOUNTED
from dataprep.adapters.augment import Transform, has_write, sample_rng
from dataprep.adapters.records import windows
from dataprep.assign import Integers, Order, by_record, mixed, of_worker, own
from dataprep.errors import ConfigError, ImageError
from dataprep.formats.protocol import Buffer
from dataprep.ordered import in_order
from dataprep.processors import usable_processors

_MOST_THREADS = 8  # by default: between images, Python runs one thread at a time
_PART = 8  # images that a thread makes before it takes the next
_BLOCK = 64  # samples that a worker takes at a time, if the batch is not known

_Window: TypeAlias = tuple[list[int], list[Buffer] | None]
"""The numbers of some samples, and their encoded images if these were read ahead."""


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
        self.seed = seed

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
        rng = sample_rng(self.seed, epoch, number)
        try:
            if out is not None:
                return self.transform.write(data, rng, out)
            made = self.transform(data, rng)
        except ImageError as error:
            raise type(error)(f"{self._name(number)}: {error}") from error
        return torch.from_numpy(made) if isinstance(made, np.ndarray) else made


class _Samples:
    """What both styles share.

    Attributes:
        records: reads the images, such as ``dataprep.adapters.records.Records``.
        items: turns them into samples.
        order: which samples this rank reads.
        given: how many samples of the epoch this process has handed out.
    """

    def __init__(
        self, records: Any, transform: Transform | None, order: Order, epoch: int = 0
    ) -> None:
        self.records = records
        self.items = Items(records, transform, order.seed)
        self._asked, self.order = order, records.local(order)
        self.given = self._skipped = 0
        # In shared memory, so that workers that persist read the current number.
        self._epoch = torch.tensor(epoch).share_memory_()  # type: ignore[no-untyped-call]

    @abstractmethod
    def own(self, epoch: int) -> Integers:
        """The numbers of this rank's samples in the order of the epoch."""

    @property
    def epoch(self) -> int:
        """The number of the epoch, from the last ``set_epoch`` in any process."""
        return int(self._epoch)

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch of the next iteration, also for workers that are running."""
        self._epoch.fill_(epoch)
        self.given = 0

    def state_dict(self) -> dict[str, int]:
        """How far the epoch is: its number, the seed, the samples that all ranks have read.

        A worker process of ``DataLoader`` knows its own samples only. Their number is added, so
        that as many workers go on with it.
        """
        asked, epoch, given = self._asked, self.epoch, self.given
        samples = asked.start if epoch == asked.epoch else 0
        state = {"epoch": epoch, "seed": asked.seed}
        if get_worker_info() is not None:
            return {**state, "samples": samples, "of_worker": given}
        steps = -(-given // (self.order.batch or 1))
        samples += steps * asked.whole
        if asked.even == "keep":  # whose last batch is smaller
            samples = min(samples, self.records.total)
        return {**state, "samples": samples}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Go on from ``state_dict``, also with another number of ranks."""
        epoch, seed = state["epoch"], state["seed"]
        asked = replace(self._asked, seed=seed, start=state["samples"], epoch=epoch)
        self._asked, self.order = asked, self.records.local(asked)
        self.items.seed = seed
        self.set_epoch(epoch)
        self._skipped = state.get("of_worker", 0)

    def samples_in_epoch(self, worker: int = 0, workers: int = 1) -> int:
        """How many samples this rank, or one of its workers, has in the epoch."""
        return len(self.sequence(self.epoch, worker, workers))

    def sequence(self, epoch: int, worker: int = 0, workers: int = 1) -> Integers:
        """The numbers of one worker's samples in the order in which they are read."""
        return of_worker(self.own(epoch), self.order.batch or _BLOCK, worker, workers)

    def begin(self) -> Integers:
        """Begin an epoch: the numbers that this rank, or this worker, has to read."""
        self.given, self._skipped = self._skipped, 0
        return self.sequence(self.epoch, *_worker())[self.given :]

    def batches(self, size: int) -> Iterator[_Window]:
        """The samples of this rank in batches; a worker gets its share of the batches.

        ``DataLoader`` takes a batch from each worker in turn, so that their order is the same for
        any number of workers. Images of a remote store are read ahead.
        """
        numbers = self.begin()
        if self.records.is_remote:
            yield from self.records.windows(numbers, size)
        else:
            for window in windows(numbers, size):
                yield window, None


class MapRecords(_Samples, TorchDataset[tuple[Any, int]]):
    """``images[i]`` is (image, label) of sample ``i``, in one ranged read.

    ``DataLoader`` asks for a whole batch, whose records are read side by side.
    """

    @property
    def sampler(self) -> EpochSampler:
        """The numbers of this rank's samples in the order of the epoch, for ``DataLoader``."""
        return EpochSampler(self)

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        return self.__getitems__([index])[0]

    def __getitems__(self, numbers: Sequence[int]) -> list[tuple[Any, int]]:
        for number in numbers:
            if not 0 <= number < len(self):
                raise IndexError(f"sample {number} of {len(self)}")
        epoch, images = self.epoch, self.records.fetch(numbers)
        return [self.items.item(*each, epoch) for each in zip(images, numbers, strict=True)]

    def own(self, epoch: int) -> Integers:
        """The numbers of this rank's samples in the order of the epoch."""
        return own(self.order, by_record(self.order, len(self), epoch), epoch)


class EpochSampler(Sampler[int]):
    """The sampler of ``MapRecords``."""

    def __init__(self, images: MapRecords) -> None:
        self._images = images

    def __len__(self) -> int:
        return self._images.samples_in_epoch()

    def __iter__(self) -> Iterator[int]:
        return iter(self._images.own(self._images.epoch).tolist())


class IterableRecords(_Samples, IterableDataset[tuple[Any, int]]):
    """(image, label) of every sample, one shard after the other.

    ``buffer`` samples are mixed if it is not 0 and the order is shuffled.
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
        for number, image in self._samples(self.begin(), epoch):
            self.given += 1
            yield self.items.item(image, number, epoch)

    def own(self, epoch: int) -> Integers:
        """The numbers of this rank's samples in the order of the epoch."""
        found: Integers = self.records.part(self.order, epoch)
        return found

    def state_dict(self) -> dict[str, int]:
        """How far the epoch is. Raises ConfigError where a buffer mixes the samples."""
        if self._buffer:
            raise ConfigError(UNCOUNTED)
        return super().state_dict()

    def batches(self, size: int) -> Iterator[_Window]:
        """The samples of this rank, or of one of its workers, in batches."""
        if not self._buffer and not self.records.is_remote:
            yield from super().batches(size)
            return
        samples = self._samples(self.begin(), self.epoch)
        while batch := list(islice(samples, size)):
            yield [number for number, _ in batch], [image for _, image in batch]

    def _samples(self, numbers: Integers, epoch: int) -> Iterator[tuple[int, Buffer]]:
        samples: Iterator[tuple[int, Buffer]] = self.records.stream(numbers)
        if not self._buffer:
            return samples
        # Each with an image of its own, which does not keep others in memory.
        owned = ((number, bytes(image)) for number, image in samples)
        return mixed(self.order, owned, self._buffer, epoch, _worker()[0])


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

    def state_dict(self) -> dict[str, int]:
        """How far the epoch is; see ``dataprep.to_torch``."""
        return self.samples.state_dict()

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Go on from ``state_dict``, also with another number of ranks."""
        self.samples.load_state_dict(state)

    def __len__(self) -> int:
        """The batches of this rank in the epoch, without worker processes."""
        samples = self.samples.samples_in_epoch()
        return samples // self.size if self.drop_last else -(-samples // self.size)

    def __iter__(self) -> Iterator[tuple[Any, torch.Tensor]]:
        threads = self.threads
        if threads is None:
            most = min(_MOST_THREADS, usable_processors())
            threads = 0 if get_worker_info() is not None else most
        ahead = self.prefetch * -(-self.size // _PART)
        with closing(in_order(_fill, self._parts(), threads, ahead=ahead)) as parts:
            for batch, places in parts:
                if places.stop == len(batch.numbers):
                    images = default_collate(batch.made) if batch.images is None else batch.images
                    self.samples.given += len(batch.numbers)
                    yield images, torch.from_numpy(batch.items.labels[batch.numbers])

    def _parts(self) -> Iterator[tuple[_Batch, range]]:
        items, fetch, epoch = self.samples.items, self.samples.records.fetch, self.samples.epoch
        writes = has_write(items.transform)
        free: deque[NDArray[Any]] = deque(maxlen=self.prefetch + 2)
        for numbers, data in self.samples.batches(self.size):
            count = len(numbers)
            if count < self.size and self.drop_last:
                continue
            images, made = None, [None] * count
            if writes:
                shape = (self.size, *items.transform.shape)
                images = _lend(shape, items.transform.dtype, free)[:count]
                made = list(images.numpy())
            batch = _Batch(numbers, data, fetch, items, epoch, images, made)
            for begin in range(0, count, _PART):
                yield batch, range(count)[begin : begin + _PART]


@dataclass(frozen=True, slots=True)
class _Batch:
    """A batch that threads fill.

    ``made`` are the slots of ``images``; if the transform cannot write, None until it is made.
    """

    numbers: list[int]
    data: list[Buffer] | None
    fetch: Callable[[Sequence[int]], list[Buffer]]
    items: Items
    epoch: int
    images: torch.Tensor | None
    made: list[Any]


def _fill(part: tuple[_Batch, range]) -> tuple[_Batch, range]:
    batch, places = part
    numbers = batch.numbers[places.start : places.stop]
    found = batch.data[places.start : places.stop] if batch.data else batch.fetch(numbers)
    for place, number, data in zip(places, numbers, found, strict=True):
        batch.made[place] = batch.items.image(data, number, batch.epoch, batch.made[place])
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
