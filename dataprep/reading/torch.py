"""Readers of a data set for torch: by sample number, as a stream of samples, or in batches.

``dataprep.to_torch`` returns them.
"""

from __future__ import annotations

import math
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import Dataset as TorchDataset
from torch.utils.data import IterableDataset, Sampler, default_collate, get_worker_info

from dataprep.errors import ConfigError
from dataprep.formats.protocol import Buffer
from dataprep.machine.processors import usable_processors
from dataprep.reading.epoch_order import (
    Integers,
    Order,
    mixed_by_buffer,
    samples_of_rank,
    sequence_by_record,
)
from dataprep.reading.frameworks import HOW_TO_RESUME
from dataprep.reading.reusable_memory import reusable_array
from dataprep.reading.saved_state import SavedState, checked_state, require_no_buffer
from dataprep.reading.torch_epochs import (
    DEFAULT_BATCH,
    EpochSamples,
    Items,
    Reading,
    Window,
    worker_number,
)
from dataprep.reading.transforms import Transform, has_write
from dataprep.threaded_map import fed_in_order, in_order

# When this number was chosen, a thread held the interpreter's lock for about one seventh of the
# time in which it prepared a float32 image, and for one fifth with uint8. More than 5 to 7 threads
# were therefore not faster (python -m benchmarks.interpreter_lock; docs/decisions.md).
_MAX_DEFAULT_THREADS = 6

_IMAGES_PER_TASK = 8
"""Images that a thread decodes in one task. The cost of starting a task is divided among them."""


class SampleIndex(int):
    """The number of a sample in the data set, and the epoch in which it is read.

    ``MapRecords.sampler`` yields it. ``MapRecords`` takes it as an index: it stands for the same
    sample on every rank, augmented for its epoch. A plain number counts only the samples of a rank.
    """

    epoch: int

    def __new__(cls, number: int, epoch: int) -> SampleIndex:
        """Combine the number of a sample and an epoch."""
        index = super().__new__(cls, number)
        index.epoch = epoch
        return index

    def __reduce__(self) -> tuple[Any, ...]:
        return SampleIndex, (int(self), self.epoch)


class MapRecords(EpochSamples, TorchDataset[tuple[Any, int]]):
    """Samples by number: ``images[i]`` is (image, label) of sample ``i`` of this rank.

    The numbers refer to a part of the data set that belongs to this rank and is the same in every
    epoch. A single rank has all samples. ``sampler`` is independent of this part: if the order is
    shuffled, it divides all samples anew in each epoch. ``images[i]`` takes one range request.
    ``DataLoader`` asks for a batch at a time. From a remote store, the records of a batch are read
    in parallel.
    """

    def __init__(self, records: Any, transform: Transform | None, order: Order) -> None:
        super().__init__(records, transform, order)
        self._is_random = transform is not None and getattr(transform, "random", True)
        self._numbers = np.arange(len(records))
        if order.world_size > 1:
            unshuffled = replace(self.order, shuffle=False, start=0)
            self._numbers = samples_of_rank(unshuffled, self._numbers, unshuffled.epoch)

    @property
    def sampler(self) -> EpochSampler:
        """This rank's samples in the order of the epoch, for ``DataLoader``."""
        return EpochSampler(self)

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[int]) -> list[tuple[Any, int]]:
        # A ``SampleIndex`` belongs to an epoch of the sampler. Other indices were chosen by the
        # program, and are read outside these epochs.
        numbers, epochs = [], []
        samples_outside_epochs = 0
        current_epoch = self.epoch
        for index in indices:
            if isinstance(index, SampleIndex):
                numbers.append(int(index))
                epochs.append(index.epoch)
                continue
            if not 0 <= index < len(self):
                raise IndexError(f"sample {index} of {len(self)}")
            numbers.append(int(self._numbers[index]))
            epochs.append(current_epoch)
            samples_outside_epochs += 1
        if samples_outside_epochs:
            self._count_outside_epochs(samples_outside_epochs)
        images = self.records.fetch(numbers)
        return [
            self.items.item(image, number, epoch)
            for image, number, epoch in zip(images, numbers, epochs, strict=True)
        ]

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            # The attribute ``state_dict`` is absent, so that StatefulDataLoader does not call it. A
            # program that does call it gets the reason. mypy does not see this method, so that it
            # reports misspelt attributes.
            if name == "state_dict":
                raise _StateUnknown(
                    f"the map style does not know which samples were read: {HOW_TO_RESUME}"
                )
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def samples_of_rank(self, epoch: int) -> Integers:
        """Return the numbers of this rank's samples in the order of the epoch."""
        sequence = sequence_by_record(self.order, len(self.records), epoch)
        return samples_of_rank(self.order, sequence, epoch)

    def order_name(self) -> str:
        """Return the name of the order. A state that was saved in another order is refused."""
        return "by record" if self.order.shuffle else "as stored"

    def state_of_sampler(self, reading: Reading) -> SavedState:
        """Return how much of its epoch an iterator of the sampler has read.

        The state contains the number of samples that this rank has read. It is therefore valid only
        with the same seed, number of ranks and global batch.
        """
        order = self._global_order
        samples = order.start if reading.epoch == order.epoch else 0
        state = self._state_of_rank(reading.epoch, samples)
        state["of_rank"] = reading.yielded
        return state

    def resume_sampler(self, state: Mapping[str, Any]) -> Reading:
        """Continue from ``state_of_sampler``.

        Raises:
            ConfigError: the state does not belong to a sampler, belongs to other samples or another
                order, was saved with another seed, number of ranks or global batch, or is beyond
                the end of the epoch.
        """
        epoch, seed, samples = checked_state(state, self._origin())
        if "of_rank" not in state:
            raise ConfigError(
                "the state does not belong to an iterator of images.sampler: give it to the object "
                "that to_torch returns for the same batch_size and iterable"
            )
        self._require_same_settings(state)
        self._global_order = replace(self._global_order, seed=seed, start=samples, epoch=epoch)
        self.order = self.records.order_on_host(self._global_order)
        numbers = self.samples_of_rank(epoch)
        yielded = state["of_rank"]
        if not 0 <= yielded <= len(numbers):
            raise ConfigError(
                f"the state is beyond the end of an epoch: {yielded:,} of {len(numbers):,} samples"
            )
        self._reading = self.resumed_reading(epoch, numbers, yielded)
        return self._reading

    def _count_outside_epochs(self, samples: int) -> None:
        """Count samples that are read by number, outside the epochs of ``sampler``.

        If the transform is random, and the program reads more samples than there are in an epoch
        without calling ``set_epoch``, warn once.
        """
        if self._is_random and self._counter.count_samples(samples, len(self)):
            warnings.warn(
                f"{len(self):,} samples were read without a call of set_epoch: all further ones "
                f"are augmented as in epoch {self.epoch} again. Call images.set_epoch(epoch) before"
                " each epoch, or use DataLoader(images, sampler=images.sampler)",
                stacklevel=4,  # the program's line, behind __getitem__ and __getitems__
            )


class _StateUnknown(ConfigError, AttributeError):
    """The error for ``state_dict``, which the map style lacks.

    It is an AttributeError, so that ``hasattr`` returns False.
    """


class EpochSampler(Sampler[int]):
    """The sampler of ``MapRecords``: yields a ``SampleIndex`` for each sample of this rank.

    Each iteration is the next epoch.
    """

    def __init__(self, images: MapRecords) -> None:
        self._images = images

    def __len__(self) -> int:
        return self._images.samples_in_epoch()

    def __iter__(self) -> Iterator[int]:
        return _SamplerIterator(self._images)

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch of the next iteration. Training frameworks call this if it exists."""
        self._images.set_epoch(epoch)


class _SamplerIterator(Iterator[int]):
    """One iteration of a sampler, with the state that torchdata's StatefulDataLoader saves."""

    def __init__(self, images: MapRecords) -> None:
        self._images = images
        self._use(images.begin())

    def _use(self, reading: Reading) -> None:
        """Iterate over the samples of ``reading`` from now on."""
        self._reading = reading
        # The numbers are taken at the first sample, because ``note_first_sample`` may change them.
        self._numbers: Iterator[int] = iter(())
        reading.iterator = weakref.ref(self)

    def __next__(self) -> int:
        if not self._reading.has_begun:
            self._images.note_first_sample(self._reading)
            self._numbers = iter(self._reading.numbers.tolist())
        for number in self._numbers:
            self._reading.yielded += 1
            return SampleIndex(number, self._reading.epoch)
        self._reading.has_ended = True
        raise StopIteration

    def state_dict(self) -> dict[str, Any]:
        """Return how much of the epoch was read; see ``MapRecords.state_of_sampler``."""
        return {**self._images.state_of_sampler(self._reading)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state; see ``MapRecords.resume_sampler``."""
        self._use(self._images.resume_sampler(state))


class IterableRecords(EpochSamples, IterableDataset[tuple[Any, int]]):
    """A stream of (image, label), one shard after the other.

    If the order is shuffled, a buffer of ``buffer`` encoded images mixes samples, also of several
    shards. If ``buffer`` is 0, or the order is not shuffled, there is no buffer.
    """

    def __init__(
        self, records: Any, transform: Transform | None, order: Order, buffer: int = 0
    ) -> None:
        super().__init__(records, transform, order)
        self._buffer = buffer if order.shuffle else 0

    def __iter__(self) -> Iterator[tuple[Any, int]]:
        # This is not a generator function. The body of one would run when the first sample is
        # requested, but an iteration must claim its epoch when it is created.
        reading = self.begin()
        iterator = self._read(reading)
        reading.iterator = weakref.ref(iterator)
        return iterator

    def _read(self, reading: Reading) -> Iterator[tuple[Any, int]]:
        """Yield the samples of one iteration, and note its first sample and its end."""
        self.note_first_sample(reading)
        try:
            for number, image in self._encoded_samples(reading):
                reading.yielded += 1
                yield self.items.item(image, number, reading.epoch)
            reading.has_ended = True
        finally:
            self.note_end(reading)

    def samples_of_rank(self, epoch: int) -> Integers:
        """Return the numbers of this rank's samples in the order of the epoch."""
        numbers: Integers = self.records.samples_of_rank(self.order, epoch)
        return numbers

    def order_name(self) -> str:
        """Return the name of the order. A state that was saved in another order is refused."""
        name: str = self.records.order_name(self.order)
        return name

    def state_dict(self) -> dict[str, Any]:
        """Return how much of the epoch was read; see ``dataprep.to_torch``.

        Raises:
            ConfigError: a buffer mixes the samples, or workers of a ``DataLoader`` read them.
        """
        return {**self.state()}

    def state(self) -> SavedState:
        """Return how much of the epoch was read. The errors are those of ``state_dict``."""
        require_no_buffer(self._buffer)
        return super().state()

    def batches(self, reading: Reading, size: int) -> Iterator[Window]:
        """Yield the samples of this rank, or of one of its workers, in batches.

        The images are None if the threads that decode a local batch also read it.
        """
        if not self._buffer and not self.records.is_remote:
            yield from super().batches(reading, size)
            return
        samples = self._encoded_samples(reading)
        while batch := list(islice(samples, size)):
            yield [number for number, _ in batch], [image for _, image in batch]

    def _encoded_samples(self, reading: Reading) -> Iterator[tuple[int, Buffer]]:
        """Yield the number and the encoded image of each sample."""
        batch = self.order.rank_batch or DEFAULT_BATCH
        samples: Iterator[tuple[int, Buffer]] = self.records.stream(reading.numbers, batch)
        if not self._buffer:
            return samples
        # The buffer has copies. A view would keep all images that were read together in memory.
        copies = ((number, bytes(image)) for number, image in samples)
        worker, _ = worker_number()
        return mixed_by_buffer(self.order, copies, self._buffer, reading.epoch, worker)


@dataclass(eq=False)
class BatchedRecords(IterableDataset[tuple[Any, torch.Tensor]]):
    """Batches (images, labels): tensors of shape (N, ...), and int64 of shape (N,).

    Threads decode each image into its slot of the batch. The memory of a batch is used again only
    when the program refers neither to the batch nor to a view of it. If the transform cannot write
    into a slot, torch's ``default_collate`` makes the images of a batch from its results.

    Attributes:
        samples: the samples of this rank.
        size: samples in a batch.
        drop_last: whether a last batch that is smaller is left out.
        threads: threads that decode; 0 to decode in the thread that takes the batches; None for the
            default of ``dataprep.to_torch``.
        prefetch: batches that are prepared ahead.
    """

    samples: MapRecords | IterableRecords
    size: int
    drop_last: bool
    threads: int | None
    prefetch: int

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch of the next iteration, also for workers that are running."""
        self.samples.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """Return how much of the epoch was read; see ``dataprep.to_torch``.

        Raises:
            ConfigError: a buffer mixes the samples, or workers of a ``DataLoader`` read them.
        """
        return {**self.samples.state()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``, also with another number of ranks.

        Raises:
            ConfigError: the state cannot be used; see ``EpochSamples.load_state_dict``.
        """
        self.samples.load_state_dict(state)

    def __len__(self) -> int:
        """Return the number of batches of this rank in the current or next epoch.

        If worker processes divide the samples, each of them may have a last batch that is smaller,
        and the number can differ.
        """
        samples = self.samples.samples_in_epoch()
        if self.drop_last:
            return samples // self.size
        return -(-samples // self.size)

    def __iter__(self) -> Iterator[tuple[Any, torch.Tensor]]:
        # This is not a generator function. The body of one would run when the first sample is
        # requested, but an iteration must claim its epoch when it is created.
        reading = self.samples.begin()
        iterator = self._read(reading)
        reading.iterator = weakref.ref(iterator)
        return iterator

    def _read(self, reading: Reading) -> Iterator[tuple[Any, torch.Tensor]]:
        """Yield the batches of one iteration, and note its first sample and its end."""
        self.samples.note_first_sample(reading)
        tasks_ahead = self.prefetch * -(-self.size // _IMAGES_PER_TASK)
        # A remote store may deliver the samples of a batch long before those of the next batch.
        # ``in_order`` would return the finished batch only when the next samples have arrived.
        run_in_order = fed_in_order if self.samples.records.is_remote else in_order
        try:
            finished = run_in_order(
                _decode, self._tasks(reading), self._thread_count(), ahead=tasks_ahead
            )
            with closing(finished) as tasks:
                for batch, slots in tasks:
                    if slots.stop < len(batch.numbers):
                        continue  # This is not the last task of the batch.
                    images: Any = batch.images
                    if images is None:
                        images = default_collate(batch.slots)
                    reading.yielded += len(batch.numbers)
                    yield images, torch.from_numpy(batch.items.labels[batch.numbers])
            reading.has_ended = True
        finally:
            self.samples.note_end(reading)

    def _thread_count(self) -> int:
        """Return the number of threads that decode; 0 for the caller's own thread."""
        if self.threads is not None:
            return self.threads
        # Workers of a ``DataLoader`` already decode in parallel.
        if get_worker_info() is not None:
            return 0
        return min(_MAX_DEFAULT_THREADS, usable_processors())

    def _tasks(self, reading: Reading) -> Generator[tuple[_Batch, range], None, None]:
        """Yield the tasks of all batches: a batch, and the range of its slots to fill."""
        items, fetch = self.samples.items, self.samples.records.fetch
        can_write = has_write(items.transform)
        # Beside the batches that are prepared ahead, one is being filled, and the program has one.
        free_memory: deque[NDArray[Any]] = deque(maxlen=self.prefetch + 2)
        for numbers, data in self.samples.batches(reading, self.size):
            count = len(numbers)
            if count < self.size and self.drop_last:
                continue
            images: torch.Tensor | None = None
            slots: list[Any] = [None] * count
            if can_write:
                # A smaller last batch also gets memory for a full batch, which fits any batch.
                shape = (self.size, *items.transform.shape)
                images = _reusable_tensor(shape, items.transform.dtype, free_memory)[:count]
                slots = list(images.numpy())
            batch = _Batch(numbers, data, fetch, items, reading.epoch, images, slots)
            for start in range(0, count, _IMAGES_PER_TASK):
                yield batch, range(start, min(start + _IMAGES_PER_TASK, count))


@dataclass(frozen=True, slots=True)
class _Batch:
    """A batch that threads fill.

    Attributes:
        numbers: the numbers of its samples.
        data: their encoded images; None if each task fetches its own images.
        fetch: returns the encoded images of samples, given by their numbers.
        items: decodes images.
        epoch: the epoch that is read.
        images: the tensor of all images; None if the transform cannot write into an array.
        slots: the result for each sample. If ``images`` is a tensor, a slot is first the array
            within ``images`` into which the transform writes, and then None. A slot without an
            array is first None, and then the image that the transform returned.
    """

    numbers: list[int]
    data: list[Buffer] | None
    fetch: Callable[[Sequence[int]], list[Buffer]]
    items: Items
    epoch: int
    images: torch.Tensor | None
    slots: list[Any]


def _decode(task: tuple[_Batch, range]) -> tuple[_Batch, range]:
    """Decode the images of a task into their slots of the batch, and return the task.

    Raises:
        ImageError: an image cannot be decoded.
    """
    batch, slots = task
    numbers = batch.numbers[slots.start : slots.stop]
    encoded = batch.data[slots.start : slots.stop] if batch.data else batch.fetch(numbers)
    for slot, number, data in zip(slots, numbers, encoded, strict=True):
        batch.slots[slot] = batch.items.image(data, number, batch.epoch, batch.slots[slot])
    return task


def _reusable_tensor(
    shape: tuple[int, ...], dtype: np.dtype[Any], free_memory: deque[NDArray[Any]]
) -> torch.Tensor:
    """Return a tensor whose memory returns to ``free_memory`` when nothing refers to the tensor.

    In a ``DataLoader`` worker, return a new tensor in shared memory instead.
    """
    if get_worker_info() is not None:
        # torch has no public function that converts a dtype of NumPy. Therefore an empty array is
        # converted, and the dtype of the resulting tensor is used.
        return empty_tensor(shape, torch.from_numpy(np.empty(0, dtype)).dtype)
    return torch.from_numpy(reusable_array(shape, dtype, free_memory))


def empty_tensor(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Return a new tensor, whose values are not set. In a ``DataLoader`` worker, share its memory.

    A worker sends its batches to the training process through shared memory. A tensor that is there
    already need not be copied. torch's ``default_collate`` does the same.
    """
    if get_worker_info() is None:
        return torch.empty(shape, dtype=dtype)
    size_bytes = math.prod(shape) * dtype.itemsize
    storage = torch.UntypedStorage._new_shared(size_bytes)  # type: ignore[no-untyped-call]
    return torch.tensor([], dtype=dtype).set_(storage).view(shape)
