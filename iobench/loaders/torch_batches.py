"""How torch's workers make batches: collated by NumPy, and the first of them timed.

``collate_fn=normalised_batch`` on items of ``Augmentation(normalise=False)`` gives what torch's
default gives on normalised items, and writes each float once instead of twice. Neither collate
function starts torch's threads, which spin while they wait for so little work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from multiprocessing.sharedctypes import RawArray
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset, IterableDataset, get_worker_info

from dataprep.adapters.augment import SCALE, SHIFT
from dataprep.adapters.torch import Items, empty
from dataprep.formats.protocol import Buffer
from iobench.clock import Clock
from iobench.loaders.protocol import FirstBatch

Samples = Sequence[tuple[torch.Tensor, int]]
Collated = tuple[torch.Tensor, torch.Tensor]


def uint8_batch(items: Samples) -> Collated:
    """uint8 images of one shape as one (N, ...), labels as int64 (N,)."""
    images = empty((len(items), *items[0][0].shape), torch.uint8)
    np.stack([image.numpy() for image, _ in items], out=images.numpy())
    return images, torch.tensor([label for _, label in items])


def normalised_batch(items: Samples) -> Collated:
    """uint8 (3, H, W) images as one float32 (N, 3, H, W) of ImageNet's mean 0 and deviation 1.

    Labels become int64 (N,).
    """
    images = empty((len(items), *items[0][0].shape), torch.float32)
    scale, shift = SCALE[:, None, None], SHIFT[:, None, None]
    for slot, (image, _) in zip(images.numpy(), items, strict=True):
        slot[...] = image.numpy()
        np.multiply(slot, scale, out=slot)
        np.add(slot, shift, out=slot)
    return images, torch.tensor([label for _, label in items])


class FinishedItems(Items):
    """Of ``items`` the labels and names; images are uint8 (3, ``side``, ``side``) as they lie."""

    def __init__(self, items: Items, side: int) -> None:
        self.__dict__.update(items.__dict__)
        self.transform = None
        self._shape = 3, side, side

    def item(self, data: Buffer, number: int, epoch: int) -> tuple[Any, int]:
        """(image, label) of sample ``number``; the image is a view."""
        pixels = np.frombuffer(data, np.uint8).reshape(self._shape)
        return torch.from_numpy(pixels), int(self.labels[number])


class FirstBatchWatch:
    """Times how the samples of the first batch are read and decoded, and nothing after that.

    DataLoader takes its first batch of worker 0, where there are workers. While that batch is
    made, ``items`` has a transform that looks at the clock; then its own again. What was seen is
    noted once, in memory that forked workers share.
    """

    def __init__(self, items: Items, clock: Clock, begun_s: float, listed_s: float) -> None:
        """Opening the data lasted from ``begun_s`` to ``listed_s``."""
        self._items, self._clock = items, clock
        self._begun_s, self._listed_s = begun_s, listed_s
        self._noted = RawArray("d", 4)  # reading began, samples were there, decoding, how many
        self._over = False

    def begins(self) -> bool:
        """Whether to time the next batch; true once, in the process that makes the first one."""
        if self._over:
            return False
        self._over = True
        worker = get_worker_info()
        return worker is None or worker.id == 0

    def timed(self, make: Callable[[], list[Any]]) -> list[Any]:
        """Call ``make``, which gives the samples of a batch, made of ``items``."""
        plain, decode_s = self._items.transform, 0.0

        def decode(data: Buffer, rng: np.random.Generator) -> Any:
            nonlocal decode_s
            start_s = self._clock.now_s()
            made = plain(data, rng)
            decode_s += self._clock.now_s() - start_s
            return made

        self._items.transform = decode if plain else None
        began_s = self._clock.now_s()
        try:
            samples = make()
        finally:
            self._items.transform = plain
        self._noted[:] = [began_s, self._clock.now_s(), decode_s, len(samples)]
        return samples

    def told(self) -> FirstBatch | None:
        """The parts of the first batch; None before it was made."""
        began_s, made_s, decode_s, samples = self._noted
        if not samples:
            return None
        return FirstBatch(
            listing_s=self._listed_s - self._begun_s,
            worker_start_s=began_s - self._listed_s,
            fetch_s=made_s - began_s - decode_s,
            decode_s=decode_s,
        )


def watched(dataset: Any, watch: FirstBatchWatch, batch_size: int) -> Dataset[Any]:
    """A torch data set of either style, which gives the same samples."""
    if isinstance(dataset, IterableDataset):
        return _WatchedIterable(dataset, watch, batch_size)
    return _WatchedMap(dataset, watch)


class _WatchedMap(Dataset[Any]):
    """DataLoader asks it for whole batches: a call more for each, and none for a sample."""

    def __init__(self, dataset: Any, watch: FirstBatchWatch) -> None:
        self._dataset, self._watch = dataset, watch

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitems__(self, numbers: Sequence[int]) -> list[Any]:
        make = partial(self._dataset.__getitems__, numbers)
        return self._watch.timed(make) if self._watch.begins() else make()


class _WatchedIterable(IterableDataset[Any]):
    """Once the first batch is made, samples come from the data set's own iterator."""

    def __init__(self, dataset: Any, watch: FirstBatchWatch, batch_size: int) -> None:
        self._dataset, self._watch, self._batch_size = dataset, watch, batch_size

    def __iter__(self) -> Iterator[Any]:
        samples = iter(self._dataset)
        return chain(self._first(samples), samples) if self._watch.begins() else samples

    def _first(self, samples: Iterator[Any]) -> Iterator[Any]:
        yield from self._watch.timed(lambda: list(islice(samples, self._batch_size)))
