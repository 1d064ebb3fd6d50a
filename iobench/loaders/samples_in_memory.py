"""Samples in host memory instead of stored samples, for the rungs of the ladder.

Compared with stored samples, reading is left out, and also decoding and augmenting if the samples
in memory are decoded or augmented already. The data set, its order, the samples of each worker, and
collating stay the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dataprep.formats import Buffer
from dataprep.image.rgb import decode_rgb
from dataprep.machine.processors import usable_processors
from dataprep.reading.frameworks import import_framework
from dataprep.threaded_map import in_order
from iobench.data.pixels import packed
from iobench.errors import TrialFailed
from iobench.loaders.protocol import Batch, MemoryRung
from iobench.loaders.settings import LoaderSettings, augmentation_of
from iobench.results.numbers import size

MAX_THREADS = 16
"""Maximum number of threads that read and prepare samples before a loop begins."""

_WINDOW_SAMPLES = 64
"""Number of samples that a stream takes from memory at a time."""

_FORMS = {"decode": "encoded", "augment": "decoded", "collate": "decoded and augmented"}
"""The form of the samples in memory, by rung."""

Transform: TypeAlias = Callable[[Buffer, np.random.Generator], Any]
"""A function that makes a finished image from a stored image and a generator of random numbers."""


def host_batch(settings: LoaderSettings, classes: int) -> Batch:
    """Return a batch of noise like the batches of torch's loaders, for the rung ``copy``.

    Images (N, 3, S, S) are float32 of mean 0 and deviation 1, or uint8 if the device normalises
    them. Labels are int64 (N,). Both are in pinned memory if the loader pins its batches.

    Args:
        settings: the settings of the loader.
        classes: the number of classes; labels are below it.
    """
    torch: Any = import_framework("torch")
    generator = torch.Generator().manual_seed(settings.seed)
    shape = settings.batch_size, 3, settings.image_size, settings.image_size
    if settings.normalise:
        images = torch.randn(shape, generator=generator)
    else:
        images = torch.randint(256, shape, generator=generator, dtype=torch.uint8)
    labels = torch.randint(classes, shape[:1], generator=generator, dtype=torch.int64)
    if settings.pin_memory:
        images, labels = images.pin_memory(), labels.pin_memory()
    return Batch(images, labels, settings.batch_size)


@dataclass(frozen=True)
class SamplesInMemory:
    """Samples in one buffer, which forked workers share, in place of the records of a data set.

    All other attributes, such as labels, names and the order of shards, come from ``records``. The
    samples are not Python objects, because the reference counts of objects would make each worker
    copy their memory pages.

    Attributes:
        records: the ``Records`` that a torch loader opened.
        rung: the rung, which determines the form of the samples: ``decode`` encoded, ``augment``
            decoded (``iobench.data.pixels``), ``collate`` finished, uint8 (3, side, side).
        side: the side of finished images, in pixels.
        data: all samples, one after the other, uint8.
        offsets: where each sample begins in ``data``, and where the last one ends, in bytes; int64.
        slots: for each sample of the data set, the number of the sample in memory that replaces it;
            int64.
        requested: number of samples that the loop takes. More than are in memory, if they do not
            all fit.
    """

    records: Any
    rung: MemoryRung
    side: int
    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    slots: NDArray[np.int64]
    requested: int
    is_remote = False

    def __len__(self) -> int:
        return len(self.slots)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.records, name)

    def sample(self, number: int) -> memoryview:
        """Return a view of the sample that is given for sample ``number`` of the data set."""
        slot = int(self.slots[number])
        return self.data.data[self.offsets[slot] : self.offsets[slot + 1]]

    def fetch(self, numbers: Sequence[int]) -> list[Buffer]:
        """Return the samples that are given for these samples of the data set, and count them."""
        if self.records.counter is not None:
            self.records.counter.add(len(numbers), 0)
        return [self.sample(number) for number in numbers]

    def stream(
        self, numbers: NDArray[np.int64], batch_samples: int = 0
    ) -> Iterator[tuple[int, Buffer]]:
        """Yield number and image of each sample. Nothing is read ahead.

        Args:
            numbers: the numbers of the samples in the data set.
            batch_samples: not used. ``Records`` reads ahead by whole batches.
        """
        for begin in range(0, len(numbers), _WINDOW_SAMPLES):
            window = numbers[begin : begin + _WINDOW_SAMPLES].tolist()
            yield from zip(window, self.fetch(window), strict=True)

    @property
    def note(self) -> str:
        """A note for readers of the loop's figures."""
        held_samples = len(self.offsets) - 1
        return (
            f"input {self.rung}: the loop takes {self.requested:,} samples, {held_samples:,} of "
            f"which are in memory, {_FORMS[self.rung]} ({size(len(self.data))})"
        )


def load_into_memory(
    dataset: Any,
    rung: MemoryRung,
    settings: LoaderSettings,
    *,
    samples: int,
    limit_bytes: int,
    decoded: bool,
) -> SamplesInMemory:
    """Prepare the first samples of epoch 0 in memory, as many as fit.

    Each of these samples replaces itself. All other samples of the data set are replaced by the
    samples in memory in turn.

    Args:
        dataset: the data set that ``TorchLoader.open`` returns.
        rung: the rung, which determines the form of the samples in memory.
        settings: the settings of the loader.
        samples: maximum number of samples that are prepared: the samples that the loop takes.
        limit_bytes: memory that the samples may take.
        decoded: whether images are stored as pixels.

    Raises:
        TrialFailed: not even one sample fits.
        ImageError: an image cannot be decoded; the message has its name.
    """
    prepare = _preparation(dataset.records, rung, settings, decoded=decoded)
    dataset.set_epoch(0)
    # The samples of epoch 0 for a single worker. Several workers take turns by batch, so their
    # number has no effect on the order.
    numbers = dataset.samples_of_worker(0)[:samples].tolist()
    data = np.empty(limit_bytes, np.uint8)  # Pages take no memory until they are written.
    offsets = [0]
    # Threads are enough, because codecs release Python's lock.
    threads = min(MAX_THREADS, usable_processors())
    for sample in in_order(prepare, numbers, threads):
        begin, end = offsets[-1], offsets[-1] + len(sample)
        if end > limit_bytes:
            break
        data[begin:end] = sample
        offsets.append(end)
    held_samples = len(offsets) - 1
    if held_samples == 0:
        raise TrialFailed(
            f"input {rung}: no sample fits into {limit_bytes:,} bytes, a quarter of the free memory"
        )
    slots = np.arange(len(dataset.records.labels), dtype=np.int64) % held_samples
    slots[numbers[:held_samples]] = np.arange(held_samples)
    return SamplesInMemory(
        records=dataset.records,
        rung=rung,
        side=settings.image_size,
        data=data[: offsets[-1]],
        offsets=np.array(offsets, np.int64),
        slots=slots,
        requested=len(numbers),
    )


def _preparation(
    records: Any, rung: MemoryRung, settings: LoaderSettings, *, decoded: bool
) -> Callable[[int], NDArray[np.uint8]]:
    """Return a function that reads a sample, by its number, in the form that ``rung`` needs.

    Args:
        records: the ``Records`` that a torch loader opened.
        rung: the rung.
        settings: the settings of the loader.
        decoded: whether images are stored as pixels.
    """
    from dataprep.reading.torch_epochs import Items

    transform: Transform | None = None  # Images stay as they are stored.
    if rung == "collate":
        transform = replace(augmentation_of(settings, decoded=decoded), normalise=False)
    elif rung == "augment" and not decoded:
        transform = _decoded_bytes
    items = Items(records, transform, settings.seed)

    def prepare(number: int) -> NDArray[np.uint8]:
        image = items.image(records.image(number), number, 0)
        if rung == "collate":
            image = image.numpy().reshape(-1)
        return np.frombuffer(image, np.uint8)

    return prepare


def _decoded_bytes(data: Buffer, generator: np.random.Generator) -> bytes:
    return packed(decode_rgb(data))
