"""The base of torch's loaders: one DataLoader, its workers, batches and epochs."""

from __future__ import annotations

import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import dropwhile
from typing import TYPE_CHECKING, Any

from dataprep.adapters.augment import Augmentation
from dataprep.errors import DataprepError
from iobench.clock import Clock
from iobench.errors import TrialFailed
from iobench.loaders.patterns import by_batch
from iobench.loaders.protocol import (
    Batch,
    FirstBatch,
    LoaderSettings,
    MemoryRung,
    PlacedLoader,
    ReadPattern,
    WorkerBatch,
    augmentation_of,
    need_cuda,
)
from iobench.trial import Place

if TYPE_CHECKING:
    from torch.utils.data import DataLoader

    from iobench.loaders.batch_log import BatchLog
    from iobench.loaders.memory import HeldImages
    from iobench.loaders.torch_batches import FirstBatchWatch


class TorchLoader(PlacedLoader, ABC):
    """Base of the three torch loaders; a subclass opens the data."""

    by_rank = True

    def __init__(self, place: Place | None, settings: LoaderSettings, clock: Clock) -> None:
        super().__init__(place, settings, clock)
        self._around: Callable[[Augmentation], Augmentation] | None = None
        if settings.pin_memory:
            need_cuda("pinned memory is for a CUDA device")
        self._opened: tuple[Any, DataLoader[Any]] | None = None
        self._watch: FirstBatchWatch | None = None
        self._held: HeldImages | None = None
        self._log: BatchLog | None = None

    def hold(self, rung: MemoryRung, samples: int, limit_bytes: int) -> None:
        """Read the first ``samples`` of epoch 0 now, and give those in place of stored ones.

        Raises:
            TrialFailed: no sample fits into ``limit_bytes``.
            ImageError: an image cannot be decoded.
        """
        from iobench.loaders.memory import preloaded

        self._held = preloaded(
            self.open(None),
            rung,
            self.settings,
            samples=samples,
            limit_bytes=limit_bytes,
            decoded=self.place.decoded,
        )
        self.counter = None  # What was read by now belongs to no epoch.
        self.notes.append(self._held.note)

    @abstractmethod
    def open(self, transform: Augmentation | None) -> Any:
        """Open the data as a data set of torch, whose samples are (image, label).

        It has ``records``, which read images, ``items``, which turn images into samples,
        ``set_epoch``, and, if it is read by sample number, ``sampler``.
        """

    def epoch(self, number: int) -> Iterator[Batch]:
        """Batches of (N, 3, S, S) images, or of lists of bytes, with int64 labels."""
        self._opened = self._opened or self._open()
        dataset, loader = self._opened
        dataset.set_epoch(number)
        with warnings.catch_warnings():
            # Python from 3.12 on warns of forking beside threads, which torch does by design.
            warnings.filterwarnings("ignore", "This process .* is multi-threaded")
            batches = iter(loader)
        try:
            for images, labels in batches:
                yield Batch(images, labels, len(labels))
        except Exception as error:
            if (reason := said_by_worker(error)) is None:
                raise
            raise TrialFailed(reason) from error

    def read_pattern(self, sample_bytes: float) -> ReadPattern:
        """Each worker reads the samples of one batch at a time."""
        return by_batch(self.settings)

    def first_batch(self) -> FirstBatch | None:
        """All parts; reading and decoding are those of worker 0, or of this process."""
        return self._watch.parts() if self._watch else None

    def worker_batches(self) -> Sequence[WorkerBatch]:
        """The batches that the workers have made; empty without workers."""
        return self._log.batches() if self._log else ()

    def close(self) -> None:
        """End the workers and wait until they are gone."""
        iterator = getattr(self._opened and self._opened[1], "_iterator", None)
        if iterator is not None:
            # Otherwise they would live as long as any reference to the iterator.
            iterator._shutdown_workers()
        self._opened = None

    def put_around(self, transform: Callable[[Augmentation], Augmentation]) -> None:
        """Replace the augmentation by what ``transform`` makes of it; called before any epoch.

        The self-test slows down decoding with it.
        """
        self._around = transform

    def _open(self) -> tuple[Any, DataLoader[Any]]:
        """Open the data, and make the DataLoader that reads them."""
        import cv2
        import torch
        from torch.utils.data import DataLoader

        from iobench.loaders.batch_log import BatchLog
        from iobench.loaders.torch_batches import FinishedItems, FirstBatchWatch

        settings = self.settings
        transform = None
        if settings.decode:
            pixels = self._held is not None and self._held.rung == "augment"
            decoded = self.place.decoded or pixels
            # The collate function normalises in place.
            transform = replace(augmentation_of(settings, decoded=decoded), normalise=False)
            transform = self._around(transform) if self._around else transform
        begun_s = self.clock.now_s()
        dataset = self.open(transform)
        if self._held is not None:
            self._held.stored.counter = self.counter
            dataset.records = self._held
            if self._held.rung == "collate":
                dataset.items = FinishedItems(dataset.items, self._held.side)
        watch = FirstBatchWatch(dataset.items, self._collate(), self.clock, begun_s)
        read: Any = dataset
        collate: Callable[[Any], Any] = watch.collate
        workers: dict[str, Any] = {}
        if settings.workers:
            self._log = BatchLog(self.clock)
            read, collate = self._log.reading(dataset), self._log.collating(watch.collate)

            def begin(worker: int) -> None:
                # torch has one thread in a worker. A 1 would wait for OpenCV's threads to end,
                # which a fork does not have.
                cv2.setNumThreads(0)
                watch.begin()

            workers = {
                "prefetch_factor": settings.prefetch,
                "persistent_workers": True,
                # torch's default on Linux until 2.9, and the fastest to start.
                "multiprocessing_context": "fork",
                "worker_init_fn": begin,
            }
        loader = DataLoader(
            read,
            batch_size=settings.batch_size,
            sampler=getattr(dataset, "sampler", None),
            num_workers=settings.workers,
            pin_memory=settings.pin_memory,
            collate_fn=collate,
            generator=torch.Generator().manual_seed(settings.seed),
            **workers,
        )
        watch.begin()
        self._watch = watch
        return dataset, loader

    def _collate(self) -> Callable[[Any], Any] | None:
        if not self.settings.decode:
            return None
        from iobench.loaders.torch_batches import normalised_batch, uint8_batch

        return normalised_batch if self.settings.normalise else uint8_batch


def said_by_worker(error: Exception) -> str | None:
    """The message of a worker's error; None for an error that is not a worker's.

    torch raises a worker's error again with the whole traceback as its message, at the end of which
    is the original message (``torch._utils.ExceptionWrapper``).
    """
    if not re.match(r"Caught \w+ in DataLoader worker process", str(error)):
        return None
    lines = str(error).rpartition("(most recent call last):\n")[2].rstrip().splitlines()
    said = "\n".join(dropwhile(lambda line: line.startswith("  "), lines))
    qualified, colon, message = said.partition(": ")
    if message and isinstance(error, DataprepError):
        return message
    return f"{qualified.rpartition('.')[2]}{colon}{message}"
