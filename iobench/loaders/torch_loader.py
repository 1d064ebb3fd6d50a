"""One torch DataLoader, whatever it reads: workers, batches, epochs, the end."""

from __future__ import annotations

import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import dropwhile
from typing import TYPE_CHECKING, Any

from dataprep.adapters.augment import Augmentation
from dataprep.errors import DataprepError
from iobench.clock import Clock
from iobench.errors import TrialFailed
from iobench.loaders.protocol import (
    Batch,
    FirstBatch,
    LoaderSettings,
    MemoryRung,
    PlacedLoader,
    augmentation_of,
    need_cuda,
)
from iobench.trial import Place

if TYPE_CHECKING:
    from torch.utils.data import DataLoader

    from iobench.loaders.memory import HeldImages
    from iobench.loaders.torch_batches import FirstBatchWatch


class TorchLoader(PlacedLoader, ABC):
    """What the three torch loaders share; each says what it reads."""

    by_rank = True

    def __init__(self, place: Place | None, settings: LoaderSettings, clock: Clock) -> None:
        super().__init__(place, settings, clock)
        self._around: Callable[[Augmentation], Augmentation] | None = None
        if settings.pin_memory:
            need_cuda("pinned memory is for a CUDA device")
        self._opened: tuple[Any, DataLoader[Any]] | None = None
        self._watch: FirstBatchWatch | None = None
        self._held: HeldImages | None = None

    def hold(self, rung: MemoryRung, samples: int, limit_bytes: int) -> None:
        """Read the first ``samples`` of epoch 0 now, and give those instead of stored ones.

        Raises:
            TrialFailed: ``limit_bytes`` of memory hold not one of them.
            ImageError: one cannot be decoded.
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
        self.notes.append(self._held.note)

    @abstractmethod
    def open(self, transform: Augmentation | None) -> Any:
        """Open the data as a data set of torch; its samples are (image, label).

        It has ``records``, which it reads, ``items``, which make samples of them, ``set_epoch``,
        and where it is of the map style ``sampler``.
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

    def first_batch(self) -> FirstBatch | None:
        """Every part; reading and decoding as they were in worker 0, or in this process."""
        return self._watch.parts() if self._watch else None

    def close(self) -> None:
        """End the workers and wait until they are gone."""
        iterator = getattr(self._opened and self._opened[1], "_iterator", None)
        if iterator is not None:
            # Left to the garbage collector they would live as long as any reference to a batch.
            iterator._shutdown_workers()
        self._opened = None

    def put_around(self, transform: Callable[[Augmentation], Augmentation]) -> None:
        """Images go through what ``transform`` makes of their augmentation; before any epoch.

        For the harness's test of itself, which slows it down.
        """
        self._around = transform

    def _open(self) -> tuple[Any, DataLoader[Any]]:
        """Open the data, and make the DataLoader that reads them."""
        import cv2
        import torch
        from torch.utils.data import DataLoader

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
            dataset.records = self._held
            if self._held.rung == "collate":
                dataset.items = FinishedItems(dataset.items, self._held.side)
        watch = FirstBatchWatch(dataset.items, self._collate(), self.clock, begun_s)
        workers: dict[str, Any] = {}
        if settings.workers:

            def begin(worker: int) -> None:
                cv2.setNumThreads(1)  # torch's is 1 in a worker
                watch.begin()

            workers = {
                "prefetch_factor": settings.prefetch,
                "persistent_workers": True,
                # torch's default on Linux until 2.9, and the fastest to start.
                "multiprocessing_context": "fork",
                "worker_init_fn": begin,
            }
        loader = DataLoader(
            dataset,
            batch_size=settings.batch_size,
            sampler=getattr(dataset, "sampler", None),
            num_workers=settings.workers,
            pin_memory=settings.pin_memory,
            collate_fn=watch.collate,
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
    """What a worker's error was about; None for an error that is not a worker's.

    torch raises it again with the worker's traceback as its message, the error itself last
    (``torch._utils.ExceptionWrapper``).
    """
    if not re.match(r"Caught \w+ in DataLoader worker process", str(error)):
        return None
    lines = str(error).rpartition("(most recent call last):\n")[2].rstrip().splitlines()
    said = "\n".join(dropwhile(lambda line: line.startswith("  "), lines))
    qualified, colon, message = said.partition(": ")
    if message and isinstance(error, DataprepError):
        return message
    return f"{qualified.rpartition('.')[2]}{colon}{message}"
