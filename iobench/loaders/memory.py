"""Samples in host memory in place of stored ones, for rungs of the ladder.

Everything else is unchanged: the kind of data set, its order, its workers and their shares, and
collating. Only reading is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dataprep.adapters import import_framework
from dataprep.formats import Buffer
from dataprep.image.rgb import decode_whole
from dataprep.ordered import in_order
from dataprep.processors import usable_processors
from iobench.errors import TrialFailed
from iobench.loaders.protocol import Batch, LoaderSettings, MemoryRung, augmentation_of
from iobench.numbers import size
from iobench.pixels import packed

MOST_THREADS = 16
"""Most threads that read and prepare samples before a loop begins."""

_WINDOW = 64  # samples that are taken from memory at a time

_PREPARED = {"decode": "encoded", "augment": "decoded", "collate": "decoded and augmented"}


def host_batch(settings: LoaderSettings, classes: int) -> Batch:
    """A batch of noise like those of torch's loaders: images (N, 3, S, S), int64 labels (N,).

    Images are float32 of mean 0 and deviation 1, or uint8 if the device normalises them. They are
    in pinned memory if the loader pins its batches.
    """
    torch: Any = import_framework("torch")
    drawn = torch.Generator().manual_seed(settings.seed)
    shape = settings.batch_size, 3, settings.image_size, settings.image_size
    if settings.normalise:
        images = torch.randn(shape, generator=drawn)
    else:
        images = torch.randint(256, shape, generator=drawn, dtype=torch.uint8)
    labels = torch.randint(classes, shape[:1], generator=drawn, dtype=torch.int64)
    if settings.pin_memory:
        images, labels = images.pin_memory(), labels.pin_memory()
    return Batch(images, labels, settings.batch_size)


@dataclass(frozen=True)
class HeldImages:
    """Samples in one buffer, which forked workers share, instead of those that are stored.

    Labels, names, shards and their order come from ``stored``. The samples are no Python objects:
    counting references would make each worker copy their pages.

    Attributes:
        stored: ``Records``, as a torch loader opened them.
        rung: the form of the samples: ``decode`` encoded, ``augment`` decoded
            (``iobench.pixels``), ``collate`` finished, uint8 (3, side, side).
        side: of finished images, in pixels.
        data: uint8, all samples.
        offsets: int64 (number of them + 1,), the beginning of each in ``data``, and the end.
        places: int64 (samples of the data set,), which of them is given for each sample.
        wanted: number of samples that the loop takes.
    """

    stored: Any
    rung: MemoryRung
    side: int
    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    places: NDArray[np.int64]
    wanted: int
    is_remote = False

    def __len__(self) -> int:
        return len(self.places)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stored, name)

    def sample(self, number: int) -> memoryview:
        """A view of the sample that is given for sample ``number`` of the data set."""
        place = int(self.places[number])
        return self.data.data[self.offsets[place] : self.offsets[place + 1]]

    def fetch(self, numbers: Sequence[int]) -> list[Buffer]:
        """Several samples."""
        if self.stored.counter is not None:
            self.stored.counter.add(len(numbers), 0)
        return [self.sample(number) for number in numbers]

    def stream(
        self, numbers: NDArray[np.int64], batch_samples: int = 0
    ) -> Iterator[tuple[int, Buffer]]:
        """Number and image of each sample; nothing is read ahead."""
        for begin in range(0, len(numbers), _WINDOW):
            window = numbers[begin : begin + _WINDOW].tolist()
            yield from zip(window, self.fetch(window), strict=True)

    @property
    def note(self) -> str:
        """A note for readers of the loop's figures."""
        return (
            f"input {self.rung}: the loop takes {self.wanted:,} samples, {len(self.offsets) - 1:,} "
            f"of which are in memory, {_PREPARED[self.rung]} ({size(len(self.data))})"
        )


def preloaded(
    dataset: Any,
    rung: MemoryRung,
    settings: LoaderSettings,
    *,
    samples: int,
    limit_bytes: int,
    decoded: bool,
) -> HeldImages:
    """Prepare the first ``samples`` of epoch 0, or as many of them as fit into ``limit_bytes``.

    One of those is given for each other sample, in turn.

    Args:
        dataset: what ``TorchLoader.open`` returns.
        rung: the form of the samples in memory.
        settings: the loader's.
        samples: number of samples that the loop takes.
        limit_bytes: the most memory for samples.
        decoded: whether images are stored as pixels.

    Raises:
        TrialFailed: no sample fits.
        ImageError: an image cannot be decoded; the message has its name.
    """
    from dataprep.adapters.torch import Items

    records = dataset.records
    transform: Any = None  # images stay encoded
    if rung == "collate":
        transform = replace(augmentation_of(settings, decoded=decoded), normalise=False)
    elif rung == "augment" and not decoded:
        transform = _decoded
    items = Items(records, transform, settings.seed)

    def prepared(number: int) -> NDArray[np.uint8]:
        image = items.image(records.image(number), number, 0)
        if rung == "collate":
            image = image.numpy().reshape(-1)
        return np.frombuffer(image, np.uint8)

    dataset.set_epoch(0)
    # Workers take turns by batch, so their number has no effect on the order.
    numbers = dataset.sequence(0)[:samples].tolist()
    data = np.empty(limit_bytes, np.uint8)  # pages take no memory until they are written
    offsets = [0]
    # Codecs release Python's lock.
    threads = min(MOST_THREADS, usable_processors())
    for sample in in_order(prepared, numbers, threads):
        end = offsets[-1] + len(sample)
        if end > limit_bytes:
            break
        data[offsets[-1] : end] = sample
        offsets.append(end)
    count = len(offsets) - 1
    if not count:
        raise TrialFailed(
            f"input {rung}: no sample fits into {limit_bytes:,} bytes, a quarter of the free memory"
        )
    places = np.arange(len(records.labels), dtype=np.int64) % count
    places[numbers[:count]] = np.arange(count)
    return HeldImages(
        stored=records,
        rung=rung,
        side=settings.image_size,
        data=data[: offsets[-1]],
        offsets=np.array(offsets, np.int64),
        places=places,
        wanted=len(numbers),
    )


def _decoded(data: Buffer, rng: np.random.Generator) -> bytes:
    return packed(decode_whole(data))
