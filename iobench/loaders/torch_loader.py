"""One torch DataLoader, whatever it reads: workers, batches, epochs, the end."""

from __future__ import annotations

import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import dropwhile
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from dataprep.adapters.augment import Augmentation
from dataprep.errors import DataprepError
from iobench.clock import Clock
from iobench.errors import TrialFailed
from iobench.loaders.protocol import (
    Batch,
    FirstBatch,
    Framework,
    LoaderSettings,
    MemoryRung,
    Readable,
    augmentation_of,
    need_cuda,
    need_framework,
    need_place,
)
from iobench.trial import Place

if TYPE_CHECKING:
    from torch.utils.data import DataLoader

    from iobench.loaders.memory import Held
    from iobench.loaders.torch_batches import FirstBatchWatch


class TorchLoader(ABC):
    """What the three torch loaders share; each says what it reads."""

    name: ClassVar[str]
    holds: ClassVar[Literal["shards", "files"]] = "shards"
    framework: Framework = "torch"
    reads: str | None = "tfrecord"
    notes: Sequence[str] = ()
    by_rank = True

    def __init__(self, place: Place | None, settings: LoaderSettings, clock: Clock) -> None:
        self.place = need_place(place, self.name, self.holds)
        self.settings = settings
        self._around: Callable[[Augmentation], Augmentation] | None = None
        self._clock = clock
        need_framework("torch")
        if settings.pin_memory:
            need_cuda("pinned memory is for a CUDA device")
        self._readable: Readable | None = None
        self._loader: DataLoader[Any] | None = None
        self._watch: FirstBatchWatch | None = None
        self._held: Held | None = None

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
        self.notes = (*self.notes, self._held.note)

    @abstractmethod
    def open(self, transform: Augmentation | None) -> Readable:
        """Open the data; items are (image, label)."""

    def epoch(self, number: int) -> Iterator[Batch]:
        """Batches of (N, 3, S, S) images, or of lists of bytes, with int64 labels."""
        if self._readable is None or self._loader is None:
            self._readable = self._opened()
            self._loader = self._data_loader(self._readable)
        self._readable.set_epoch(number)
        with warnings.catch_warnings():
            # Python from 3.12 on warns of forking beside threads, which torch does by design.
            warnings.filterwarnings("ignore", "This process .* is multi-threaded")
            batches = iter(self._loader)
        try:
            for images, labels in batches:
                yield Batch(images, labels, len(labels))
        except Exception as error:
            if (reason := said_by_worker(error)) is None:
                raise
            raise TrialFailed(reason) from error

    def first_batch(self) -> FirstBatch | None:
        """Every part; reading and decoding as they were in worker 0, or in this process."""
        return self._watch.told() if self._watch else None

    def close(self) -> None:
        """End the workers and wait until they are gone."""
        iterator = getattr(self._loader, "_iterator", None)
        if iterator is not None:
            # Left to the garbage collector they would live as long as any reference to a batch.
            iterator._shutdown_workers()
        self._loader = self._readable = None

    def put_around(self, transform: Callable[[Augmentation], Augmentation]) -> None:
        """Images go through what ``transform`` makes of their augmentation; before any epoch.

        For the harness's test of itself, which slows it down.
        """
        self._around = transform

    def _opened(self) -> Readable:
        """What ``open`` gives, its first batch watched."""
        from iobench.loaders.memory import HeldImages
        from iobench.loaders.torch_batches import FinishedItems, FirstBatchWatch, watched

        transform = None
        if self.settings.decode:
            pixels = self._held is not None and self._held.rung == "augment"
            decoded = self.place.decoded or pixels
            # Normalising is left to the collate function, which does it in place.
            transform = replace(augmentation_of(self.settings, decoded=decoded), normalise=False)
            transform = self._around(transform) if self._around else transform
        begun_s = self._clock.now_s()
        readable = self.open(transform)
        dataset = readable.dataset
        if self._held is not None:
            dataset.records = HeldImages(dataset.records, self._held)
            if self._held.rung == "collate":
                dataset.items = FinishedItems(dataset.items, self._held.side)
        listed_s = self._clock.now_s()
        self._watch = FirstBatchWatch(dataset.items, self._clock, begun_s, listed_s)
        return readable._replace(dataset=watched(dataset, self._watch, self.settings.batch_size))

    def _data_loader(self, readable: Readable) -> DataLoader[Any]:
        import torch
        from torch.utils.data import DataLoader

        settings = self.settings
        workers: dict[str, Any] = {}
        if settings.workers:
            workers = {
                "prefetch_factor": settings.prefetch,
                "persistent_workers": True,
                # torch's default on Linux until 2.9, and what starts at once.
                "multiprocessing_context": "fork",
                "worker_init_fn": one_thread,
            }
        return DataLoader(
            readable.dataset,
            batch_size=settings.batch_size,
            sampler=readable.sampler,
            num_workers=settings.workers,
            pin_memory=settings.pin_memory,
            collate_fn=self._collate(),
            generator=torch.Generator().manual_seed(settings.seed),
            **workers,
        )

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


def one_thread(worker: int) -> None:
    """One thread a worker: the parallelism is over workers."""
    import cv2
    import torch

    cv2.setNumThreads(1)
    torch.set_num_threads(1)
