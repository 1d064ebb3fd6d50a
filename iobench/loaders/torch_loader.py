"""The base of torch's loaders: one DataLoader, its workers, batches and epochs."""

from __future__ import annotations

import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict

from dataprep.errors import DataprepError
from dataprep.reading.augment import Augmentation
from iobench.clock import Clock
from iobench.errors import TrialFailed
from iobench.loaders.frameworks import FrameworkLoader, need_cuda
from iobench.loaders.protocol import Batch, FirstBatch, MemoryRung, ReadPattern, WorkerBatch
from iobench.loaders.read_patterns import batch_by_batch
from iobench.loaders.settings import LoaderSettings, augmentation_of
from iobench.results.trial import Location

if TYPE_CHECKING:
    from torch.utils.data import DataLoader

    from iobench.loaders.samples_in_memory import SamplesInMemory
    from iobench.loaders.torch_batch_log import BatchLog
    from iobench.loaders.torch_batches import FirstBatchWatch


class _OpenedData(NamedTuple):
    """A data set of torch, and the DataLoader that reads it."""

    dataset: Any
    loader: DataLoader[Any]


class WorkerOptions(TypedDict, total=False):
    """The arguments of torch's DataLoader that are only valid with workers."""

    prefetch_factor: int
    persistent_workers: bool
    multiprocessing_context: Literal["fork"]
    worker_init_fn: Callable[[int], None]


class TorchLoader(FrameworkLoader, ABC):
    """Base of the loaders that use torch's DataLoader. A subclass opens the data in ``open``."""

    by_rank = True

    def __init__(self, location: Location | None, settings: LoaderSettings, clock: Clock) -> None:
        super().__init__(location, settings, clock)
        self._wrap_augmentation: Callable[[Augmentation], Augmentation] | None = None
        if settings.pin_memory:
            need_cuda("pinned memory is for a CUDA device")
        self._opened: _OpenedData | None = None
        self._first_batch_watch: FirstBatchWatch | None = None
        self._in_memory: SamplesInMemory | None = None
        self._batch_log: BatchLog | None = None

    def hold(self, rung: MemoryRung, samples: int, limit_bytes: int) -> None:
        """Read the first samples of epoch 0 now. All batches are then made of these samples.

        Args:
            rung: the rung, which determines the form of the samples in memory.
            samples: maximum number of samples.
            limit_bytes: memory that they may take.

        Raises:
            TrialFailed: not even one sample fits into ``limit_bytes``.
            ImageError: an image cannot be decoded.
        """
        from iobench.loaders.samples_in_memory import load_into_memory

        self._in_memory = load_into_memory(
            self.open(None),
            rung,
            self.settings,
            samples=samples,
            limit_bytes=limit_bytes,
            decoded=self.location.decoded,
        )
        self.counter = None  # The reads so far belong to no epoch.
        self.notes.append(self._in_memory.note)

    @abstractmethod
    def open(self, transform: Augmentation | None) -> Any:
        """Open the data as a data set of torch, whose samples are (image, label).

        The data set has the attributes ``records``, which read images, ``items``, which turn images
        into samples, and ``set_epoch``. If it is read by sample number, it also has ``sampler``.

        Args:
            transform: the augmentation of the images; None if they stay encoded.
        """

    def epoch(self, number: int) -> Iterator[Batch]:
        """Yield batches of images (N, 3, S, S), or of encoded images, with int64 labels (N,).

        The first call opens the data and starts the workers, which all epochs share.
        """
        if self._opened is None:
            self._opened = self._open()
        dataset, loader = self._opened
        dataset.set_epoch(number)
        batches = start_epoch(loader)
        try:
            for images, labels in batches:
                yield Batch(images, labels, len(labels))
        except Exception as error:
            reason = worker_error_message(error)
            if reason is None:
                raise
            raise TrialFailed(reason) from error

    def read_pattern(self, sample_bytes: float) -> ReadPattern:
        """Return the pattern of workers that read the samples of one batch at a time."""
        return batch_by_batch(self.settings)

    def first_batch(self) -> FirstBatch | None:
        """Return all parts of the time until the first batch; None before this batch was made.

        Reading and decoding were done by worker 0, or by this process if there are no workers.
        """
        return self._first_batch_watch.parts() if self._first_batch_watch else None

    def worker_batches(self) -> Sequence[WorkerBatch]:
        """Return the batches that the workers have made; empty without workers."""
        return self._batch_log.batches() if self._batch_log else ()

    def close(self) -> None:
        """End the workers and wait until they have ended."""
        if self._opened is not None:
            shut_down_workers(getattr(self._opened.loader, "_iterator", None))
        self._opened = None

    def wrap_augmentation(self, transform: Callable[[Augmentation], Augmentation]) -> None:
        """Replace the augmentation by the result of ``transform``. Call this before any epoch.

        The self-test uses it to slow down decoding.

        Args:
            transform: returns the augmentation to use in place of the one that it is given.
        """
        self._wrap_augmentation = transform

    def _open(self) -> _OpenedData:
        """Open the data, and create the DataLoader that reads them."""
        import torch
        from torch.utils.data import DataLoader

        from iobench.loaders.torch_batch_log import BatchLog
        from iobench.loaders.torch_batches import FinishedItems, FirstBatchWatch

        settings, samples_in_memory = self.settings, self._in_memory
        begun_s = self.clock.now_s()
        dataset = self.open(self._transform())
        if samples_in_memory is not None:
            samples_in_memory.records.counter = self.counter
            dataset.records = samples_in_memory
            if samples_in_memory.rung == "collate":
                dataset.items = FinishedItems(dataset.items, samples_in_memory.side)
        watch = FirstBatchWatch(dataset.items, self._collate(), self.clock, begun_s)
        read_dataset: Any = dataset
        collate: Callable[[Any], Any] = watch.collate
        worker_options: WorkerOptions = {}
        if settings.workers:
            self._batch_log = BatchLog(self.clock)
            read_dataset = self._batch_log.log_begins(dataset)
            collate = self._batch_log.log_ends(watch.collate)
            worker_options = self._worker_options(watch)
        loader = DataLoader(
            read_dataset,
            batch_size=settings.batch_size,
            sampler=getattr(dataset, "sampler", None),
            num_workers=settings.workers,
            pin_memory=settings.pin_memory,
            collate_fn=collate,
            generator=torch.Generator().manual_seed(settings.seed),
            **worker_options,
        )
        watch.begin()
        self._first_batch_watch = watch
        return _OpenedData(dataset, loader)

    def _transform(self) -> Augmentation | None:
        """Return the augmentation of the samples; None if they stay encoded."""
        if not self.settings.decode:
            return None
        is_decoded_in_memory = self._in_memory is not None and self._in_memory.rung == "augment"
        is_decoded = self.location.decoded or is_decoded_in_memory
        augmentation = augmentation_of(self.settings, decoded=is_decoded)
        # The collate function normalises in the memory of the batch, so no floats are copied.
        augmentation = replace(augmentation, normalise=False)
        if self._wrap_augmentation is not None:
            augmentation = self._wrap_augmentation(augmentation)
        return augmentation

    def _worker_options(self, watch: FirstBatchWatch) -> WorkerOptions:
        """Return the options for workers, each of which tells ``watch`` when it begins."""
        import cv2

        def begin(worker: int) -> None:
            # torch runs one thread in a worker. OpenCV uses no threads with 0. With 1 it would wait
            # for the end of its earlier threads, which do not exist after a fork.
            cv2.setNumThreads(0)
            watch.begin()

        return {
            "prefetch_factor": self.settings.prefetch,
            "persistent_workers": True,
            # torch's default on Linux until 2.9, and the fastest to start.
            "multiprocessing_context": "fork",
            "worker_init_fn": begin,
        }

    def _collate(self) -> Callable[[Any], Any] | None:
        """Return the function that makes a batch of samples; None for torch's default."""
        if not self.settings.decode:
            return None
        from iobench.loaders.torch_batches import normalised_batch, uint8_batch

        return normalised_batch if self.settings.normalise else uint8_batch


def start_epoch(loader: DataLoader[Any]) -> Iterator[Any]:
    """Return an iterator over the batches of an epoch. It starts workers that do not run yet."""
    with warnings.catch_warnings():
        # Python 3.12 and later warn about a fork of a process with threads. torch forks its workers
        # by design.
        warnings.filterwarnings("ignore", "This process .* is multi-threaded")
        return iter(loader)


def shut_down_workers(iterator: Any) -> None:
    """End the workers of an iterator of DataLoader, if it has workers.

    Otherwise they would live as long as any reference to the iterator.

    Args:
        iterator: an iterator of DataLoader, or None.
    """
    shut_down = getattr(iterator, "_shutdown_workers", None)
    if shut_down is not None:
        shut_down()


def worker_error_message(error: Exception) -> str | None:
    """Return the message of an error in a worker; None if the error is not a worker's.

    torch raises the error of a worker again, with the whole traceback as its message. At the end of
    the traceback is the original message (``torch._utils.ExceptionWrapper``). It is returned with
    the class of the error before it, unless it is an error of dataprep, whose messages need none.
    """
    if not re.match(r"Caught \w+ in DataLoader worker process", str(error)):
        return None
    lines = str(error).rpartition("(most recent call last):\n")[2].rstrip().splitlines()
    while lines and lines[0].startswith("  "):  # lines of the traceback
        lines.pop(0)
    error_class, colon, message = "\n".join(lines).partition(": ")
    if message and isinstance(error, DataprepError):
        return message
    return f"{error_class.rpartition('.')[2]}{colon}{message}"
