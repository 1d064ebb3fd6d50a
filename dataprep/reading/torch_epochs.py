"""Choose the samples that an iteration in torch reads; save and load how much of them was read.

``EpochSamples`` is the base of the readers in ``dataprep.reading.torch``. It gives each iteration
its epoch, divides the samples of the epoch among ranks and workers, and saves and loads states.
"""

from __future__ import annotations

import multiprocessing
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import get_worker_info

from dataprep.errors import ConfigError, ImageError
from dataprep.formats.protocol import Buffer
from dataprep.reading.augment import sample_rng
from dataprep.reading.epoch_counter import EpochCounter, Iteration, LoaderWorker
from dataprep.reading.epoch_order import (
    Integers,
    Order,
    end_of_epoch,
    order_from_start,
    samples_of_worker,
)
from dataprep.reading.frameworks import HOW_TO_RESUME
from dataprep.reading.record_reader import in_windows
from dataprep.reading.saved_state import Origin, SavedState, checked_state
from dataprep.reading.transforms import Transform

DEFAULT_BATCH = 64
"""Samples of a batch if the batch size is unknown: workers take turns after this many."""

Window: TypeAlias = tuple[list[int], list[Buffer] | None]
"""The numbers of some samples, and their encoded images; None if these are not read yet."""


class Items:
    """Turns encoded images into samples of torch.

    Attributes:
        labels: the label of each sample of the data set: int64 of shape (samples,).
        transform: applied to each encoded image; None to return the encoded image as bytes.
        seed: the seed of the random numbers that the transform gets.
    """

    def __init__(self, records: Any, transform: Transform | None, seed: int) -> None:
        """Use ``records.labels``, and ``records.name(number)`` in error messages."""
        self.labels: NDArray[np.int64] = records.labels
        self.transform: Any = transform
        self._name: Callable[[int], str] = records.name
        self.seed = seed

    def item(self, data: Buffer, number: int, epoch: int) -> tuple[Any, int]:
        """Return (image, label) of a sample.

        Args:
            data: the encoded image.
            number: the number of the sample.
            epoch: the epoch, on which random numbers depend.

        Raises:
            ImageError: the transform cannot decode the image. The message names the sample.
        """
        return self.image(data, number, epoch), int(self.labels[number])

    def image(self, data: Buffer, number: int, epoch: int, out: NDArray[Any] | None = None) -> Any:
        """Return the image of a sample. A NumPy array becomes a tensor.

        Args:
            data: the encoded image.
            number: the number of the sample.
            epoch: the epoch, on which random numbers depend.
            out: an array into which the transform writes the image, so that the result is None;
                None to return the image.

        Raises:
            ImageError: the transform cannot decode the image. The message names the sample.
        """
        if self.transform is None:
            return bytes(data)
        rng = sample_rng(self.seed, epoch, number)
        try:
            if out is not None:
                return self.transform.write(data, rng, out)
            image = self.transform(data, rng)
        except ImageError as error:
            raise type(error)(f"{self._name(number)}: {error}") from error
        if isinstance(image, np.ndarray):
            return torch.from_numpy(image)
        return image


@dataclass(eq=False)
class _SharedEpoch:
    """An epoch that is read once, although two iterators may have been created for it.

    Attributes:
        is_taken: whether a sample was requested from one of the iterators.
    """

    is_taken: bool = False


@dataclass(eq=False)
class Reading:
    """One iteration over the samples of a rank or a worker.

    Attributes:
        iteration: the iteration in the ``EpochCounter``.
        numbers: the numbers of the samples that this iteration reads.
        yielded: samples of the epoch that were yielded to the program. For a worker or a sampler
            that was resumed, this includes the samples before the resume, which are not in
            ``numbers``. For others, ``Order.start`` counts those samples.
        shared: the epoch, which this iterator may share with another one.
        has_begun: whether a sample was requested from the iterator.
        has_ended: whether the iterator has yielded all samples.
        iterator: a weak reference to the iterator: returns it while the program refers to it, and
            None later.
    """

    iteration: Iteration
    numbers: Integers
    yielded: int
    shared: _SharedEpoch
    has_begun: bool = False
    has_ended: bool = False
    iterator: Callable[[], object] = lambda: None

    @property
    def epoch(self) -> int:
        """The number of the epoch that is read."""
        return self.iteration.epoch

    @property
    def is_live(self) -> bool:
        """Whether the program can still take samples from the iterator."""
        return not self.has_ended and self.iterator() is not None


class EpochSamples:
    """The samples of a rank, epoch by epoch, with states that can be saved and loaded.

    Attributes:
        records: reads the images, such as ``dataprep.reading.record_reader.Records``.
        items: turns encoded images into samples.
        order: which samples this rank reads. For a host's share, ranks count within the host.
    """

    def __init__(self, records: Any, transform: Transform | None, order: Order) -> None:
        self.records = records
        self.items = Items(records, transform, order.seed)
        # This call comes before ``order_from_start``, because it refuses ranks that do not fit the
        # shares.
        order_on_host = records.order_on_host(order)
        # The order of all ranks, with which states are saved.
        self._global_order = order_from_start(order, records.samples_by_share(order))
        self.order = order_on_host
        if self._global_order is not order:
            self.order = records.order_on_host(self._global_order)
        self._counter = EpochCounter(self._global_order.epoch)
        self._reading: Reading | None = None
        # ``load_state_dict`` sets these for the next iteration: in a worker, its epoch and the
        # samples to skip; in the training process, whether it begins at the start of an epoch.
        self._resumed_epoch: int | None = None
        self._skipped = 0
        self._is_at_start = False

    def __getstate__(self) -> dict[str, object]:
        # An iterator belongs to its process.
        return {**self.__dict__, "_reading": None}

    @abstractmethod
    def samples_of_rank(self, epoch: int) -> Integers:
        """Return the numbers of this rank's samples in the order of the epoch."""

    @abstractmethod
    def order_name(self) -> str:
        """Return a name of the order of an epoch, by which a state of another order is refused."""

    @property
    def epoch(self) -> int:
        """The epoch that began last in any process, or that was set after it."""
        return self._counter.current

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch of the next iteration, also for workers that are running."""
        self._counter.set(epoch, _loader_worker())
        self._reading = None
        self._is_at_start = False

    def state(self) -> SavedState:
        """Return the number of the epoch, the seed, and how many samples all ranks have read.

        All ranks are assumed to have made as many steps as this rank. A worker process of
        ``DataLoader`` knows only its own samples. Its state therefore also has the number of
        samples that it has yielded, and the settings on which this number depends. The same number
        of workers of the same rank can continue from it.

        Raises:
            ConfigError: workers of a ``DataLoader`` read the samples, so that this process does not
                know how far they are.
        """
        order, reading = self._global_order, self._reading
        in_worker = get_worker_info() is not None
        if not in_worker and self._is_read_by_workers():
            raise ConfigError(
                f"worker processes of a DataLoader read these samples: {HOW_TO_RESUME}"
            )
        epoch = reading.epoch if reading else self._counter.next_epoch()
        samples = order.start if epoch == order.epoch else 0
        if reading is None:
            return self._state_at(epoch, samples)
        if in_worker:
            state = self._state_of_rank(epoch, samples)
            state["of_worker"] = reading.yielded
            return state
        shares = self.records.samples_by_share(order)
        end = end_of_epoch(order, shares)
        # A step counts as read if at least one of its samples was taken.
        steps = -(-reading.yielded // (self.order.rank_batch or 1))
        samples += steps * order.step_samples
        if len(shares) == 1:
            samples = min(samples, end)  # the last step may be smaller
        if reading.has_ended and order.even == "keep":
            # Other ranks may have a step more than this rank.
            samples = end
        return self._state_at(epoch, samples)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state, also with another number of ranks.

        The state of a worker needs the seed, the number of ranks and the batch size with which it
        was saved.

        Raises:
            ConfigError: the state belongs to other samples or to another order, or is beyond the
                end of an epoch; or it belongs to a worker and was saved with other settings, or is
                loaded in a training process.
        """
        epoch, seed, samples = checked_state(state, self._origin())
        in_worker = get_worker_info() is not None
        if "of_worker" in state and not in_worker:
            raise ConfigError(
                "the state belongs to a worker of torchdata's StatefulDataLoader: give it to "
                "StatefulDataLoader.load_state_dict"
            )
        if in_worker:
            # Workers of later iterations get the seed of the training process. Therefore the state
            # must have the same seed.
            self._require_same_settings(state)
        order = replace(self._global_order, seed=seed, start=samples, epoch=epoch)
        self._global_order = order_from_start(order, self.records.samples_by_share(order))
        self.order = self.records.order_on_host(self._global_order)
        self.items.seed = seed
        self._reading = None
        if not in_worker:
            self._counter.set(self._global_order.epoch)
            self._is_at_start = self._global_order.start == 0
            return
        # Every worker of the loader loads such a state. The worker that begins first claims this
        # epoch, and the others take part in its iteration.
        self._resumed_epoch = self._global_order.epoch
        self._skipped = state.get("of_worker", 0)
        worker_samples = len(self.samples_of_worker(epoch, *worker_number()))
        if not 0 <= self._skipped <= worker_samples:
            raise ConfigError(
                f"the state is beyond the end of an epoch: {self._skipped:,} samples of a worker "
                f"that has {worker_samples:,}"
            )

    def samples_in_epoch(self, worker: int = 0, workers: int = 1) -> int:
        """Return how many samples this rank, or one of its workers, has in an epoch.

        The epoch is the one that is being read, or the next one if none is being read.
        """
        return len(self.samples_of_worker(self._current_epoch(), worker, workers))

    def samples_of_worker(self, epoch: int, worker: int = 0, workers: int = 1) -> Integers:
        """Return the numbers of a worker's samples in the order in which they are read."""
        batch = self.order.rank_batch or DEFAULT_BATCH
        return samples_of_worker(self.samples_of_rank(epoch), batch, worker, workers)

    def begin(self) -> Reading:
        """Begin an iteration: choose its epoch, and the samples of this rank or worker."""
        worker = _loader_worker()
        epoch = self._resumed_epoch
        self._resumed_epoch = None
        latest = self._reading
        shared = _SharedEpoch()
        # ``load_state_dict`` has removed the latest iteration. If there is one, it was created
        # after the state was loaded.
        if worker is None and self._is_at_start and latest is not None:
            self._is_at_start = False
            if not latest.has_begun:
                # StatefulDataLoader creates an iterator when it loads the state of an epoch that
                # has ended, and does not use it. The new iterator reads the same epoch. If the
                # program uses both iterators, ``note_first_sample`` separates them.
                epoch, shared = latest.epoch, latest.shared
        iteration = self._counter.claim(worker, epoch)
        skipped = self._skipped
        self._skipped = 0
        numbers = self.samples_of_worker(iteration.epoch, *worker_number())[skipped:]
        self._reading = Reading(iteration, numbers, skipped, shared)
        return self._reading

    def resumed_reading(self, epoch: int, numbers: Integers, yielded: int) -> Reading:
        """Begin an iteration of an epoch of which some samples were yielded before a resume.

        Args:
            epoch: the number of the epoch.
            numbers: the numbers of all samples of this rank in the epoch.
            yielded: how many of them were yielded before the resume.
        """
        iteration = self._counter.claim(None, epoch)
        return Reading(iteration, numbers[yielded:], yielded, _SharedEpoch())

    def note_first_sample(self, reading: Reading) -> None:
        """Note that an iterator is asked for its first sample.

        If another iterator already reads the same epoch, this one gets the next epoch.
        """
        if reading.shared.is_taken:
            reading.iteration = self._counter.claim()
            reading.shared = _SharedEpoch()
            reading.numbers = self.samples_of_worker(reading.epoch)
            self._reading = reading
        elif self._reading is not None and self._reading.shared is reading.shared:
            # Of two iterators of one epoch, ``state`` reports the one that is used.
            self._reading = reading
        reading.has_begun = True
        reading.shared.is_taken = True

    def note_end(self, reading: Reading) -> None:
        """Note that an iterator has ended, or that the program has dropped it.

        Only workers are noted. The training process sees from ``Reading.is_live`` whether its own
        iterator has ended.
        """
        if get_worker_info() is not None:
            self._counter.end(reading.iteration)

    def batches(self, reading: Reading, size: int) -> Iterator[Window]:
        """Yield the samples of an iteration in batches of ``size`` samples.

        A worker has every ``workers``-th batch of its rank. ``DataLoader`` takes a batch from each
        worker in turn. Therefore the order of batches is the same for any number of workers, if
        ``size`` is the rank's batch. Images of a remote store are read ahead. Those of a local
        folder are None, and the caller reads them.
        """
        if self.records.is_remote:
            yield from self.records.windows(reading.numbers, size)
        else:
            for window in in_windows(reading.numbers, size):
                yield window, None

    def _origin(self) -> Origin:
        """Return the samples and the order to which states of this reader belong."""
        order = self._global_order
        return Origin(
            self.records.identity(order), self.records.subset_name(order), self.order_name()
        )

    def _state_at(self, epoch: int, samples: int) -> SavedState:
        """Return the state in which all ranks have read ``samples`` samples of an epoch."""
        origin = self._origin()
        state: SavedState = {
            "epoch": epoch,
            "seed": self._global_order.seed,
            "samples": samples,
            "dataset": origin.dataset,
            "order": origin.order,
        }
        if origin.subset is not None:  # a state without this entry belongs to no subset
            state["subset"] = origin.subset
        return state

    def _state_of_rank(self, epoch: int, samples: int) -> SavedState:
        """Return ``_state_at`` with the settings on which the samples of a rank or worker depend.

        The caller adds the number of samples that the rank or worker has yielded. This number is
        valid only with the same settings.
        """
        state = self._state_at(epoch, samples)
        state["world_size"] = self._global_order.world_size
        state["global_batch"] = self._global_order.global_batch
        state["rank_batch"] = self.order.rank_batch
        return state

    def _require_same_settings(self, state: Mapping[str, Any]) -> None:
        """Raise ConfigError if the state of a rank or worker was saved with other settings.

        States of earlier versions have only the seed. Their other settings are not checked.
        """
        order = self._global_order
        settings = {
            "seed": order.seed,
            "world_size": order.world_size,
            "global_batch": order.global_batch,
        }
        rank_batch = self.order.rank_batch
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
        """Whether workers of a ``DataLoader`` are reading, or began later than this process."""
        latest = self._reading.iteration.number if self._reading else -1
        for iteration in self._counter.iterations():
            is_later = iteration.number > latest
            if iteration.workers and (is_later or iteration.is_being_read):
                return True
        return False

    def _current_epoch(self) -> int:
        """Return the epoch that is being read, or the next one if none is being read."""
        if self._reading is not None and self._reading.is_live:
            return self._reading.epoch
        iterations = self._counter.iterations()
        if iterations and iterations[0].is_being_read:
            return iterations[0].epoch
        return self._counter.next_epoch()


def worker_number() -> tuple[int, int]:
    """Return the number of this ``DataLoader`` worker and the number of workers.

    In a process that is no worker, return (0, 1).
    """
    info = get_worker_info()
    if info is None:
        return 0, 1
    return info.id, info.num_workers


def _loader_worker() -> LoaderWorker | None:
    """Return the ``DataLoader`` worker that this process is; None in a training process."""
    info = get_worker_info()
    if info is None:
        return None
    # The number of this process among the processes that the training process has started.
    process = multiprocessing.current_process()._identity[-1]
    return LoaderWorker(
        number=info.id,
        workers=info.num_workers,
        base_seed=info.seed - info.id,  # torch adds the number of the worker to the loader's seed
        first_process=process - info.id,
    )
