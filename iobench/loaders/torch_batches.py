"""Collate batches of torch by NumPy, and time the first one.

``collate_fn=normalised_batch`` on items of ``Augmentation(normalise=False)`` gives what torch's
default gives on normalised items, and writes each float once instead of twice. Neither collate
function starts torch's threads, which spin while they wait for so little work.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from multiprocessing.sharedctypes import RawArray
from typing import Any

import numpy as np
import torch
from torch.utils.data import default_collate, get_worker_info

from dataprep.adapters.normalisation import SCALE, SHIFT
from dataprep.adapters.torch import empty_tensor
from dataprep.adapters.torch_epochs import Items
from dataprep.formats.protocol import Buffer
from iobench.clock import Clock
from iobench.loaders.protocol import FirstBatch

Samples = Sequence[tuple[torch.Tensor, int]]
Collated = tuple[torch.Tensor, torch.Tensor]


def uint8_batch(items: Samples) -> Collated:
    """uint8 images of one shape as one (N, ...), labels as int64 (N,)."""
    images = empty_tensor((len(items), *items[0][0].shape), torch.uint8)
    np.stack([image.numpy() for image, _ in items], out=images.numpy())
    return images, torch.tensor([label for _, label in items])


def normalised_batch(items: Samples) -> Collated:
    """uint8 (3, H, W) images as one float32 (N, 3, H, W) of ImageNet's mean 0 and deviation 1.

    Labels become int64 (N,).
    """
    images = empty_tensor((len(items), *items[0][0].shape), torch.float32)
    scale, shift = SCALE[:, None, None], SHIFT[:, None, None]
    for slot, (image, _) in zip(images.numpy(), items, strict=True):
        slot[...] = image.numpy()
        np.multiply(slot, scale, out=slot)
        np.add(slot, shift, out=slot)
    return images, torch.tensor([label for _, label in items])


class FinishedItems(Items):
    """Items with the labels and names of ``items``, whose images are stored as finished pixels.

    Images are uint8 (3, ``side``, ``side``).
    """

    def __init__(self, items: Items, side: int) -> None:
        self.__dict__.update(items.__dict__)
        self.transform = None
        self._shape = 3, side, side

    def item(self, data: Buffer, number: int, epoch: int) -> tuple[Any, int]:
        """(image, label) of sample ``number``; the image is a view."""
        pixels = np.frombuffer(data, np.uint8).reshape(self._shape)
        return torch.from_numpy(pixels), int(self.labels[number])


class FirstBatchWatch:
    """Measures how long the samples of the first batch are read and decoded.

    DataLoader takes its first batch from worker 0, where there are workers. Until a process has
    made its first batch, ``items`` has a transform that reads the clock; then its own again. The
    result is in memory that forked workers share.
    """

    def __init__(
        self, items: Items, collate: Callable[[Any], Any] | None, clock: Clock, begun_s: float
    ) -> None:
        """The data were opened from ``begun_s`` until now."""
        self._items, self._transform, self._clock = items, items.transform, clock
        self._collate = collate or default_collate
        self._begun_s, self._listed_s = begun_s, clock.now_s()
        self._noted = RawArray("d", 4)  # start and end of the batch, decoding, samples
        self._began_s = self._decode_s = 0.0
        self._is_over = False
        if self._transform:
            items.transform = self._decode

    def begin(self) -> None:
        """This process begins its first batch now."""
        self._began_s = self._clock.now_s()

    def _decode(self, data: Buffer, rng: np.random.Generator) -> Any:
        start_s = self._clock.now_s()
        made = self._transform(data, rng)
        self._decode_s += self._clock.now_s() - start_s
        return made

    def collate(self, samples: Any) -> Any:
        """The batch of these samples, by DataLoader's ``collate_fn``."""
        if not self._is_over:
            self._is_over = True
            self._items.transform = self._transform
            worker = get_worker_info()
            if worker is None or worker.id == 0:
                now_s = self._clock.now_s()
                self._noted[:] = [self._began_s, now_s, self._decode_s, len(samples)]
        return self._collate(samples)

    def parts(self) -> FirstBatch | None:
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
