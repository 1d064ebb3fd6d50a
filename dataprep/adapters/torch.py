"""Data sets for torch: by sample number, as a stream of whole shards, or in whole batches."""

from __future__ import annotations

import math
import multiprocessing
import operator
import warnings
import weakref
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import Dataset as TorchDataset
from torch.utils.data import IterableDataset, Sampler, default_collate, get_worker_info

from dataprep.adapters import CURES, UNCOUNTED
from dataprep.adapters.augment import Transform, has_write, sample_rng
from dataprep.adapters.lending import lend
from dataprep.adapters.records import windows
from dataprep.assign import (
    Integers,
    Order,
    by_record,
    end_of_epoch,
    mixed,
    of_worker,
    own,
    resumed,
)
from dataprep.errors import ConfigError, ImageError
from dataprep.formats.protocol import Buffer
from dataprep.ordered import fed_in_order, in_order
from dataprep.processors import usable_processors
from dataprep.reading.epoch_counter import EpochCounter, Iteration, LoaderWorker

# By default: a tenth (float32) to a seventh (uint8) of a photo's time holds Python's lock, so that
# more than 10 or 7 threads gain nothing (python -m benchmarks.interpreter_lock).
_MOST_THREADS = 6
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


@dataclass(eq=False)
class _Epoch:
    """An epoch that is read once, although two iterators may have been made for it.

    Attributes:
        is_taken: whether one of them was asked for a sample.
    """

    is_taken: bool = False


@dataclass(eq=False)
class _Reading:
    """One iteration.

    Attributes:
        claim: the iteration in the ``EpochCounter``.
        numbers: the samples that this rank, or this worker, still has to read.
        given: how many samples of the epoch have been handed out, also before a resume.
        shared: the epoch, which the iterator may share with another one.
        begun: whether the iterator was asked for a sample.
        ended: whether the iterator has handed out everything.
        iterator: the iterator, as long as the program has it.
    """

    claim: Iteration
    numbers: Integers
    given: int
    shared: _Epoch
    begun: bool = False
    ended: bool = False
    iterator: Callable[[], object] = lambda: None

    @property
    def epoch(self) -> int:
        """The number of the epoch that is read."""
        return self.claim.epoch

    @property
    def is_live(self) -> bool:
        """Whether the program can still take samples from the iterator."""
        return not self.ended and self.iterator() is not None


@dataclass(frozen=True, slots=True)
class _Origin:
    """What a state belongs to.

    Attributes:
        identity: a name of the samples.
        subset: the name of the subset; None if the samples are those of no subset.
        order: a name of the order of an epoch.
    """

    identity: str
    subset: str | None
    order: str

    def entries(self) -> dict[str, str]:
        """The entries of a state. Without a subset they are those of earlier versions."""
        entries = {"dataset": self.identity, "order": self.order}
        return entries if self.subset is None else {**entries, "subset": self.subset}


class _Samples:
    """What both styles share.

    Attributes:
        records: reads the images, such as ``dataprep.adapters.records.Records``.
        items: turns them into samples.
        order: which samples this rank reads.
    """

    def __init__(self, records: Any, transform: Transform | None, order: Order) -> None:
        self.records = records
        self.items = Items(records, transform, order.seed)
        local = records.local(order)  # first, because it refuses ranks that do not fit the share
        self._asked = resumed(order, records.shares(order))
        self.order = local if self._asked is order else records.local(self._asked)
        self._counter = EpochCounter(self._asked.epoch)
        self._reading: _Reading | None = None
        # What ``load_state_dict`` left for the next iteration: its epoch, samples to skip, and
        # whether that is the beginning of an epoch.
        self._resumed_epoch: int | None = None
        self._skipped = 0
        self._is_at_start = False

    def __getstate__(self) -> dict[str, Any]:
        # An iterator belongs to its process.
        return {**self.__dict__, "_reading": None}

    @abstractmethod
    def own(self, epoch: int) -> Integers:
        """The numbers of this rank's samples in the order of the epoch."""

    @abstractmethod
    def order_name(self) -> str:
        """A name of the order of an epoch, which a state is compared with."""

    @property
    def epoch(self) -> int:
        """The number of the epoch that began last in any process, or that was set after it."""
        return self._counter.current

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch of the next iteration, also for workers that are running."""
        self._counter.set(epoch, _loader_worker())
        self._reading = None
        self._is_at_start = False

    def state(self) -> dict[str, Any]:
        """How far the epoch is: its number, the seed, the samples that all ranks have read.

        A worker process of ``DataLoader`` knows its own samples only. Their number is added, with
        the settings that it depends on, so that as many workers of the same rank go on with it.

        Raises:
            ConfigError: workers of a ``DataLoader`` read, so that this process knows nothing.
        """
        asked, reading = self._asked, self._reading
        in_worker = get_worker_info() is not None
        if not in_worker and self._is_read_by_workers():
            raise ConfigError(f"worker processes of a DataLoader read these samples: {CURES}")
        epoch = reading.epoch if reading else self._counter.following()
        samples = asked.start if epoch == asked.epoch else 0
        state = {
            "epoch": epoch,
            "seed": asked.seed,
            "samples": samples,
            **self._origin().entries(),
        }
        if reading is None:
            return state
        if in_worker:
            return {**state, **self._counted_with(), "of_worker": reading.given}
        shares = self.records.shares(asked)
        end = end_of_epoch(asked, shares)
        # A step that some samples were taken from counts as read.
        samples += -(-reading.given // (self.order.batch or 1)) * asked.whole
        if len(shares) == 1:
            samples = min(samples, end)  # the last step may be smaller
        if reading.ended and asked.even == "keep":
            samples = end
        return {**state, "samples": samples}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from ``state_dict``, also with another number of ranks.

        The state of a worker needs the seed, the number of ranks and the batch that it was saved
        with.

        Raises:
            ConfigError: the state belongs to other samples, or is beyond the end of their epoch; or
                it belongs to a worker, and was saved with other settings.
        """
        epoch, seed, samples = checked_state(state, self._origin())
        in_worker = get_worker_info() is not None
        if "of_worker" in state and not in_worker:
            raise ConfigError(
                "the state belongs to a worker of torchdata's StatefulDataLoader: give it to "
                "StatefulDataLoader.load_state_dict"
            )
        if in_worker:
            # The epochs after this one have the seed of the process that trains.
            self._require_counted_alike(state)
        asked = replace(self._asked, seed=seed, start=samples, epoch=epoch)
        self._asked = resumed(asked, self.records.shares(asked))
        self.order = self.records.local(self._asked)
        self.items.seed = seed
        self._reading = None
        if not in_worker:
            self._counter.set(self._asked.epoch)
            self._is_at_start = self._asked.start == 0
            return
        # The other workers of the loader load the same epoch: it is set by the first iteration.
        self._resumed_epoch, self._skipped = self._asked.epoch, state.get("of_worker", 0)
        own_samples = len(self.sequence(epoch, *_worker()))
        if not 0 <= self._skipped <= own_samples:
            raise ConfigError(
                f"the state is beyond the end of an epoch: {self._skipped:,} samples of a worker "
                f"that has {own_samples:,}"
            )

    def samples_in_epoch(self, worker: int = 0, workers: int = 1) -> int:
        """How many samples this rank, or one of its workers, has in the epoch.

        It is the epoch that is being read; if none is, the next one.
        """
        return len(self.sequence(self._epoch_to_measure(), worker, workers))

    def sequence(self, epoch: int, worker: int = 0, workers: int = 1) -> Integers:
        """The numbers of one worker's samples in the order in which they are read."""
        return of_worker(self.own(epoch), self.order.batch or _BLOCK, worker, workers)

    def begin(self) -> _Reading:
        """Begin an epoch with the numbers that this rank, or this worker, has to read."""
        worker = _loader_worker()
        epoch, self._resumed_epoch = self._resumed_epoch, None
        reading, shared = self._reading, _Epoch()
        if worker is None and self._is_at_start and reading is not None:
            self._is_at_start = False
            if not reading.begun:
                # StatefulDataLoader makes an iterator when it loads the state of an epoch that has
                # ended, and does not use it. If the program reads both, ``start`` tells them apart.
                epoch, shared = reading.epoch, reading.shared
        claim = self._counter.claim(worker, epoch)
        skipped, self._skipped = self._skipped, 0
        numbers = self.sequence(claim.epoch, *_worker())[skipped:]
        self._reading = _Reading(claim, numbers, skipped, shared)
        return self._reading

    def start(self, reading: _Reading) -> None:
        """Note that the iterator of ``reading`` is asked for its first sample.

        If another iterator reads the same epoch already, this one gets the next epoch.
        """
        if reading.shared.is_taken:
            reading.claim, reading.shared = self._counter.claim(), _Epoch()
            reading.numbers = self.sequence(reading.epoch)
            self._reading = reading
        elif self._reading is not None and self._reading.shared is reading.shared:
            self._reading = reading
        reading.begun = reading.shared.is_taken = True

    def finish(self, reading: _Reading) -> None:
        """Note that the iterator of ``reading`` has ended, or was given up."""
        if get_worker_info() is not None:
            self._counter.end(reading.claim)

    def batches(self, reading: _Reading, size: int) -> Iterator[_Window]:
        """The samples of this rank in batches; a worker gets its share of the batches.

        ``DataLoader`` takes a batch from each worker in turn, so that their order is the same for
        any number of workers. Images of a remote store are read ahead.
        """
        if self.records.is_remote:
            yield from self.records.windows(reading.numbers, size)
        else:
            for window in windows(reading.numbers, size):
                yield window, None

    def _origin(self) -> _Origin:
        """The samples and the order that a state belongs to."""
        identity = self.records.identity(self._asked)
        return _Origin(identity, self.records.subset_name(self._asked), self.order_name())

    def _counted_with(self) -> dict[str, Any]:
        """Settings without which a number of samples of one rank or worker means nothing."""
        return {
            "seed": self._asked.seed,
            "world_size": self._asked.world_size,
            "global_batch": self._asked.global_batch,
            "rank_batch": self.order.batch,
        }

    def _require_counted_alike(self, state: Mapping[str, Any]) -> None:
        """Raise ConfigError if a state of one rank or worker was saved with other settings.

        States of earlier versions have the seed alone.
        """
        settings = self._counted_with()
        rank_batch = settings.pop("rank_batch")
        for key, setting in settings.items():
            if state.get(key, setting) != setting:
                raise ConfigError(
                    f"the state was saved with {key} {state[key]}, not {setting}: make the data "
                    f"set with {key}={state[key]}, or give start=steps * global_batch"
                )
        if state.get("rank_batch", rank_batch) != rank_batch:
            raise ConfigError(
                f"the state belongs to a rank that takes {state['rank_batch']} samples of a global "
                f"batch, this one takes {rank_batch}: load the state that this rank saved"
            )

    def _is_read_by_workers(self) -> bool:
        """Whether workers of a ``DataLoader`` read, or have read after this process did."""
        latest = self._reading.claim.number if self._reading else -1
        return any(
            iteration.workers and (iteration.number > latest or iteration.is_being_read)
            for iteration in self._counter.iterations()
        )

    def _epoch_to_measure(self) -> int:
        """The epoch that is being read; if none is, the next one."""
        if self._reading is not None and self._reading.is_live:
            return self._reading.epoch
        iterations = self._counter.iterations()
        if iterations and iterations[0].is_being_read:
            return iterations[0].epoch
        return self._counter.following()


class SampleIndex(int):
    """The number of a sample in the whole split, and the epoch in which it is read.

    ``MapRecords.sampler`` gives it. ``images[index]`` is this sample on every rank, augmented for
    its epoch.
    """

    epoch: int

    def __new__(cls, number: int, epoch: int) -> SampleIndex:
        """Combine both."""
        index = super().__new__(cls, number)
        index.epoch = epoch
        return index

    def __reduce__(self) -> tuple[Any, ...]:
        return SampleIndex, (int(self), self.epoch)


class MapRecords(_Samples, TorchDataset[tuple[Any, int]]):
    """``images[i]`` is (image, label) of sample ``i`` of this rank, in one ranged read.

    The samples are a part of the split that belongs to this rank and that is the same in every
    epoch; of a lone rank all of them. ``DataLoader`` asks for a whole batch, whose records are read
    side by side.
    """

    def __init__(self, records: Any, transform: Transform | None, order: Order) -> None:
        super().__init__(records, transform, order)
        self._is_random = transform is not None and getattr(transform, "random", True)
        self._partition = np.arange(len(records))
        if order.world_size > 1:
            unshuffled = replace(self.order, shuffle=False, start=0)
            self._partition = own(unshuffled, self._partition, unshuffled.epoch)

    @property
    def sampler(self) -> EpochSampler:
        """This rank's samples in the order of the epoch, for ``DataLoader``."""
        return EpochSampler(self)

    def __len__(self) -> int:
        return len(self._partition)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[int]) -> list[tuple[Any, int]]:
        numbers, epochs = [], []
        outside_epochs = 0
        present_epoch = self.epoch
        for index in indices:
            if isinstance(index, SampleIndex):
                numbers.append(int(index))
                epochs.append(index.epoch)
                continue
            if not 0 <= index < len(self):
                raise IndexError(f"sample {index} of {len(self)}")
            numbers.append(int(self._partition[index]))
            epochs.append(present_epoch)
            outside_epochs += 1
        if outside_epochs:
            self._count(outside_epochs)
        images = self.records.fetch(numbers)
        return [self.items.item(*each) for each in zip(images, numbers, epochs, strict=True)]

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            # An attribute that is absent, so that StatefulDataLoader does not ask for it.
            if name == "state_dict":
                raise _StateUnknown(f"the map style does not know which samples were read: {CURES}")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def own(self, epoch: int) -> Integers:
        """The numbers of this rank's samples in the order of the epoch."""
        return own(self.order, by_record(self.order, len(self.records), epoch), epoch)

    def order_name(self) -> str:
        """A name of the order of an epoch, which a state is compared with."""
        return "by record" if self.order.shuffle else "as stored"

    def state_of_sampler(self, reading: _Reading) -> dict[str, Any]:
        """How far the iterator of a sampler is, for the same number of ranks and global batch."""
        return {
            "epoch": reading.epoch,
            "samples": self._asked.start if reading.epoch == self._asked.epoch else 0,
            **self._origin().entries(),
            **self._counted_with(),
            "of_rank": reading.given,
        }

    def resume_sampler(self, state: Mapping[str, Any]) -> _Reading:
        """Go on from ``state_of_sampler``.

        Raises:
            ConfigError: the state belongs to other samples, another seed, number of ranks or global
                batch, or to no sampler.
        """
        epoch, seed, samples = checked_state(state, self._origin())
        if "of_rank" not in state:
            raise ConfigError(
                "the state does not belong to an iterator of images.sampler: give it to the object "
                "that to_torch returns for the same batch_size and iterable"
            )
        self._require_counted_alike(state)
        self._asked = replace(self._asked, seed=seed, start=samples, epoch=epoch)
        self.order = self.records.local(self._asked)
        numbers = self.own(epoch)
        given = state["of_rank"]
        if not 0 <= given <= len(numbers):
            raise ConfigError(
                f"the state is beyond the end of an epoch: {given:,} of {len(numbers):,} samples"
            )
        self._reading = _Reading(self._counter.claim(None, epoch), numbers[given:], given, _Epoch())
        return self._reading

    def _count(self, samples: int) -> None:
        """Count samples that are read outside the epochs of ``sampler``.

        A warning comes once when an epoch of them was read and ``set_epoch`` was not called.
        """
        if self._is_random and self._counter.count_samples(samples, len(self)):
            warnings.warn(
                f"{len(self):,} samples were read without a call of set_epoch: all further ones "
                f"are augmented as in epoch {self.epoch} again. Call images.set_epoch(epoch) before"
                " each epoch, or use DataLoader(images, sampler=images.sampler)",
                stacklevel=4,
            )


class _StateUnknown(ConfigError, AttributeError):
    """There is no ``state_dict``; as an AttributeError, because the attribute is absent."""


class EpochSampler(Sampler[int]):
    """The sampler of ``MapRecords``. Each iteration is the next epoch."""

    def __init__(self, images: MapRecords) -> None:
        self._images = images

    def __len__(self) -> int:
        return self._images.samples_in_epoch()

    def __iter__(self) -> Iterator[int]:
        return _EpochOfSampler(self._images)

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch of the next iteration. Training frameworks call this if it is there."""
        self._images.set_epoch(epoch)


class _EpochOfSampler(Iterator[int]):
    """One iteration of a sampler, with the state that torchdata's StatefulDataLoader saves."""

    def __init__(self, images: MapRecords) -> None:
        self._images = images
        self._begin(images.begin())

    def _begin(self, reading: _Reading) -> None:
        self._reading = reading
        self._numbers: Iterator[int] = iter(())
        reading.iterator = weakref.ref(self)

    def __next__(self) -> int:
        if not self._reading.begun:
            self._images.start(self._reading)
            self._numbers = iter(self._reading.numbers.tolist())
        for number in self._numbers:
            self._reading.given += 1
            return SampleIndex(number, self._reading.epoch)
        self._reading.ended = True
        raise StopIteration

    def state_dict(self) -> dict[str, Any]:
        """How far the epoch is."""
        return self._images.state_of_sampler(self._reading)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from ``state_dict`` with the same number of ranks and global batch."""
        self._begin(self._images.resume_sampler(state))


class IterableRecords(_Samples, IterableDataset[tuple[Any, int]]):
    """(image, label) of every sample, one shard after the other.

    ``buffer`` samples are mixed if it is not 0 and the order is shuffled.
    """

    def __init__(
        self, records: Any, transform: Transform | None, order: Order, buffer: int = 0
    ) -> None:
        super().__init__(records, transform, order)
        self._buffer = buffer if order.shuffle else 0

    def __iter__(self) -> Iterator[tuple[Any, int]]:
        # Not a generator function, because an iteration claims its epoch when it is made.
        reading = self.begin()
        iterator = self._read(reading)
        reading.iterator = weakref.ref(iterator)
        return iterator

    def _read(self, reading: _Reading) -> Iterator[tuple[Any, int]]:
        self.start(reading)
        try:
            for number, image in self._samples(reading):
                reading.given += 1
                yield self.items.item(image, number, reading.epoch)
            reading.ended = True
        finally:
            self.finish(reading)

    def own(self, epoch: int) -> Integers:
        """The numbers of this rank's samples in the order of the epoch."""
        numbers: Integers = self.records.part(self.order, epoch)
        return numbers

    def order_name(self) -> str:
        """A name of the order of an epoch, which a state is compared with."""
        name: str = self.records.order_by_shard(self.order)
        return name

    def state_dict(self) -> dict[str, Any]:
        """How far the epoch is.

        Raises:
            ConfigError: a buffer mixes the samples, or workers of a ``DataLoader`` read them.
        """
        return self.state()

    def state(self) -> dict[str, Any]:
        """How far the epoch is. Raises ConfigError where a buffer mixes the samples."""
        if self._buffer:
            raise ConfigError(UNCOUNTED)
        return super().state()

    def batches(self, reading: _Reading, size: int) -> Iterator[_Window]:
        """The samples of this rank, or of one of its workers, in batches."""
        if not self._buffer and not self.records.is_remote:
            yield from super().batches(reading, size)
            return
        samples = self._samples(reading)
        while batch := list(islice(samples, size)):
            yield [number for number, _ in batch], [image for _, image in batch]

    def _samples(self, reading: _Reading) -> Iterator[tuple[int, Buffer]]:
        batch = self.order.batch or _BLOCK
        samples: Iterator[tuple[int, Buffer]] = self.records.stream(reading.numbers, batch)
        if not self._buffer:
            return samples
        # Each with an image of its own, which does not keep others in memory.
        owned = ((number, bytes(image)) for number, image in samples)
        return mixed(self.order, owned, self._buffer, reading.epoch, _worker()[0])


def checked_state(state: Mapping[str, Any], origin: _Origin) -> tuple[int, int, int]:
    """Epoch, seed and samples of a state.

    States of earlier versions do not say which samples and which order they belong to. They belong
    to no subset.

    Raises:
        ConfigError: it is no state, or that of other samples or of another order.
    """
    try:
        epoch, seed, samples = (operator.index(state[key]) for key in ("epoch", "seed", "samples"))
    except (KeyError, TypeError):
        raise ConfigError(
            f"not a state of dataprep.to_torch: {state!r}; it has whole numbers for epoch, seed and"
            " samples"
        ) from None
    if state.get("subset") != origin.subset:
        raise ConfigError(
            f"the state belongs to {_subset_name(state.get('subset'))}, the samples are those of "
            f"{_subset_name(origin.subset)}: select the same samples by dataset.where or "
            "dataset.select as when it was saved, or begin without the state"
        )
    if state.get("dataset", origin.identity) != origin.identity:
        raise ConfigError(
            "the state belongs to another data set: open the split, the share or the shards that "
            "it was saved with"
        )
    if state.get("order", origin.order) != origin.order:
        raise ConfigError(
            f"the state belongs to samples that are read {state['order']}, these are read "
            f"{origin.order}: use the same iterable, shuffle and format"
        )
    return epoch, seed, samples


def _subset_name(subset: object) -> str:
    """A subset in messages."""
    if subset is None:
        return "the whole data set"
    return f"the subset {str(subset)[:12]} (dataset.subset)"


def _worker() -> tuple[int, int]:
    """The number of this ``DataLoader`` worker and how many there are; (0, 1) outside."""
    info = get_worker_info()
    return (info.id, info.num_workers) if info else (0, 1)


def _loader_worker() -> LoaderWorker | None:
    """The ``DataLoader`` worker that this process is; None in a process that trains."""
    info = get_worker_info()
    if info is None:
        return None
    process = multiprocessing.current_process()._identity[-1]
    return LoaderWorker(
        number=info.id,
        workers=info.num_workers,
        base_seed=info.seed - info.id,
        first_process=process - info.id,
    )


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

    def state_dict(self) -> dict[str, Any]:
        """How far the epoch is; see ``dataprep.to_torch``.

        Raises:
            ConfigError: a buffer mixes the samples, or workers of a ``DataLoader`` read them.
        """
        return self.samples.state()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from ``state_dict``, also with another number of ranks."""
        self.samples.load_state_dict(state)

    def __len__(self) -> int:
        """The batches of this rank in the epoch, without worker processes."""
        samples = self.samples.samples_in_epoch()
        return samples // self.size if self.drop_last else -(-samples // self.size)

    def __iter__(self) -> Iterator[tuple[Any, torch.Tensor]]:
        # Not a generator function, because an iteration claims its epoch when it is made.
        reading = self.samples.begin()
        iterator = self._read(reading)
        reading.iterator = weakref.ref(iterator)
        return iterator

    def _read(self, reading: _Reading) -> Iterator[tuple[Any, torch.Tensor]]:
        self.samples.start(reading)
        threads = self.threads
        if threads is None:
            most = min(_MOST_THREADS, usable_processors())
            threads = 0 if get_worker_info() is not None else most
        ahead = self.prefetch * -(-self.size // _PART)
        # A remote store may give the samples of one batch long before those of the next.
        side_by_side = fed_in_order if self.samples.records.is_remote else in_order
        try:
            with closing(side_by_side(_fill, self._parts(reading), threads, ahead=ahead)) as parts:
                for batch, places in parts:
                    if places.stop < len(batch.numbers):
                        continue
                    images = default_collate(batch.made) if batch.images is None else batch.images
                    reading.given += len(batch.numbers)
                    yield images, torch.from_numpy(batch.items.labels[batch.numbers])
            reading.ended = True
        finally:
            self.samples.finish(reading)

    def _parts(self, reading: _Reading) -> Generator[tuple[_Batch, range], None, None]:
        items, fetch, epoch = self.samples.items, self.samples.records.fetch, reading.epoch
        writes = has_write(items.transform)
        free: deque[NDArray[Any]] = deque(maxlen=self.prefetch + 2)
        for numbers, data in self.samples.batches(reading, self.size):
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
    """A tensor whose memory is used again; in a worker it is shared memory."""
    if get_worker_info() is not None:
        return empty(shape, torch.from_numpy(np.empty(0, dtype)).dtype)
    return torch.from_numpy(lend(shape, dtype, free))


def empty(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """A new tensor; in shared memory in a ``DataLoader`` worker, as torch's own collate does."""
    if get_worker_info() is None:
        return torch.empty(shape, dtype=dtype)
    size = math.prod(shape) * dtype.itemsize
    storage = torch.UntypedStorage._new_shared(size)  # type: ignore[no-untyped-call]
    return torch.tensor([], dtype=dtype).set_(storage).view(shape)
