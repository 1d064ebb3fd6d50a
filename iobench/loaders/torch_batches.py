"""Collate batches of torch by NumPy, and time the first batch.

Images of ``Augmentation(normalise=False)`` with ``collate_fn=normalised_batch`` give the same
batches as normalised images with torch's default function. The floats are computed in the memory of
the batch, so that they are not copied. Neither collate function starts torch's threads, which would
spin while they wait for so little work.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from multiprocessing.sharedctypes import RawArray
from typing import Any, TypeAlias

import numpy as np
import torch
from torch.utils.data import default_collate, get_worker_info

from dataprep.formats.protocol import Buffer
from dataprep.reading.normalisation import SCALE, SHIFT
from dataprep.reading.torch import empty_tensor
from dataprep.reading.torch_epochs import Items
from iobench.clock import Clock
from iobench.loaders.protocol import FirstBatch

Samples: TypeAlias = Sequence[tuple[torch.Tensor, int]]
"""Images with their labels."""

Collated: TypeAlias = tuple[torch.Tensor, torch.Tensor]
"""The images of a batch, and its labels."""


def uint8_batch(samples: Samples) -> Collated:
    """Stack uint8 images of one shape to a tensor (N, ...), and labels to int64 (N,)."""
    images = empty_tensor((len(samples), *samples[0][0].shape), torch.uint8)
    np.stack([image.numpy() for image, _ in samples], out=images.numpy())
    return images, torch.tensor([label for _, label in samples])


def normalised_batch(samples: Samples) -> Collated:
    """Normalise and stack uint8 (3, H, W) images to float32 (N, 3, H, W), labels to int64 (N,).

    Over ImageNet the values have mean 0 and deviation 1.
    """
    images = empty_tensor((len(samples), *samples[0][0].shape), torch.float32)
    scale, shift = SCALE[:, None, None], SHIFT[:, None, None]
    for row, (image, _) in zip(images.numpy(), samples, strict=True):
        row[...] = image.numpy()
        np.multiply(row, scale, out=row)
        np.add(row, shift, out=row)
    return images, torch.tensor([label for _, label in samples])


class FinishedItems(Items):
    """Items with the labels and names of ``items``, whose images are finished already.

    Images are stored as uint8 (3, ``side``, ``side``).
    """

    def __init__(self, items: Items, side: int) -> None:
        self.__dict__.update(items.__dict__)
        self.transform = None
        self._shape = 3, side, side

    def item(self, data: Buffer, number: int, epoch: int) -> tuple[Any, int]:
        """Return image and label of sample ``number``; the image is a view."""
        pixels = np.frombuffer(data, np.uint8).reshape(self._shape)
        return torch.from_numpy(pixels), int(self.labels[number])


class FirstBatchWatch:
    """Measures how long the samples of the first batch are read and decoded.

    If there are workers, DataLoader takes its first batch from worker 0. Until a process has made
    its first batch, the transform of ``items`` is a wrapper that reads the clock. After that, it is
    the original transform again. The result is in memory that forked workers share.
    """

    def __init__(
        self, items: Items, collate: Callable[[Any], Any] | None, clock: Clock, open_begin_s: float
    ) -> None:
        """Note that the data were opened from ``open_begin_s`` until now."""
        self._items, self._transform, self._clock = items, items.transform, clock
        self._collate = collate or default_collate
        self._open_begin_s, self._listed_s = open_begin_s, clock.now_s()
        # Begin and end of the first batch, seconds of decoding in it, and number of its samples.
        self._figures = RawArray("d", 4)
        self._batch_begin_s = self._decode_s = 0.0
        self._has_made_batch = False
        if self._transform:
            items.transform = self._timed_transform

    def begin(self) -> None:
        """Note that this process begins its first batch now."""
        self._batch_begin_s = self._clock.now_s()

    def _timed_transform(self, data: Buffer, generator: np.random.Generator) -> Any:
        start_s = self._clock.now_s()
        image = self._transform(data, generator)
        self._decode_s += self._clock.now_s() - start_s
        return image

    def collate(self, samples: Any) -> Any:
        """Make a batch of samples, as ``collate_fn`` of DataLoader."""
        if not self._has_made_batch:
            self._has_made_batch = True
            self._items.transform = self._transform
            worker = get_worker_info()
            if worker is None or worker.id == 0:
                now_s = self._clock.now_s()
                self._figures[:] = [self._batch_begin_s, now_s, self._decode_s, len(samples)]
        return self._collate(samples)

    def parts(self) -> FirstBatch | None:
        """Return the parts of the time until the first batch; None before it was made."""
        begin_s, end_s, decode_s, samples = self._figures
        if not samples:
            return None
        return FirstBatch(
            listing_s=self._listed_s - self._open_begin_s,
            worker_start_s=begin_s - self._listed_s,
            fetch_s=end_s - begin_s - decode_s,
            decode_s=decode_s,
        )
