"""A bounded buffer that samples leave in random order: a shuffle of what arrives in sequence.

Each that leaves is drawn from all that the buffer holds, and the next takes its place, so that a
sample may come late by any number of places, and early by no more than the buffer's size.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch.utils.data import get_worker_info

from dataprep.adapters.torch_items import Located, Order
from dataprep.formats import Buffer

_MOST_WORKERS = 1024  # that tell how much they held; further ones share their places


class SampleBuffer:
    """Up to ``size`` encoded images, held by each process that iterates.

    Images are copied out of the shards that they came in: their bytes are held, and no shard.
    """

    def __init__(self, size: int, order: Order) -> None:
        self._size, self._order = size, order
        # In memory that worker processes share.
        self._peaks = torch.zeros(_MOST_WORKERS, dtype=torch.int64)
        self._peaks.share_memory_()  # type: ignore[no-untyped-call]

    @property
    def peak_bytes(self) -> int:
        """The most that each worker held so far, added up."""
        return int(self._peaks.sum())

    def drawn(self, samples: Iterator[Located], epoch: int) -> Iterator[Located]:
        """Each of ``samples`` once, in an order of seed, epoch and worker alone."""
        worker = get_worker_info()
        number = worker.id if worker else 0
        place = number % _MOST_WORKERS
        # The last number tells these draws from those of shards and of samples.
        rng = np.random.default_rng((self._order.seed, epoch, number, 1))
        held: list[_Kept] = []
        held_bytes, peak_bytes = 0, int(self._peaks[place])
        for sample in samples:
            arrived = _Kept(sample)
            held_bytes += len(arrived.image)
            if held_bytes > peak_bytes:
                peak_bytes = held_bytes
                self._peaks[place] = peak_bytes
            if len(held) < self._size:
                held.append(arrived)
                continue
            chosen = int(rng.integers(len(held)))
            leaving, held[chosen] = held[chosen], arrived
            held_bytes -= len(leaving.image)
            yield leaving.located
        for chosen in rng.permutation(len(held)).tolist():
            yield held[chosen].located


class _Kept:
    """A sample with an image of its own."""

    __slots__ = ("image", "number")

    def __init__(self, sample: Located) -> None:
        self.image, self.number = bytes(sample.read(sample.number)), sample.number

    @property
    def located(self) -> Located:
        return Located(self._read, self.number)

    def _read(self, number: int) -> Buffer:
        return self.image
