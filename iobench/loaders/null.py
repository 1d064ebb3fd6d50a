"""``null``: empty batches, to measure the cost of the harness itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from iobench.clock import Clock
from iobench.loaders.protocol import Batch, Framework, LoaderSettings
from iobench.trial import Place

SAMPLES = 10**12
"""Samples per epoch of ``null`` and ``mock``: an epoch does not end within a trial."""


def placeholder(samples: int) -> Batch:
    """A batch without pixels: images uint8 (N, 0), labels int64 (N,), all 0."""
    return Batch(np.empty((samples, 0), np.uint8), np.zeros(samples, np.int64), samples)


def batch_sizes(batch_size: int) -> Iterator[int]:
    """The size of each batch of an epoch; the last one may be smaller."""
    for start in range(0, SAMPLES, batch_size):
        yield min(batch_size, SAMPLES - start)


class NullLoader:
    """A loader that gives one empty batch again and again; the last of an epoch may be smaller."""

    framework: Framework = "none"
    reads: str | None = None
    by_rank = True  # Its batches hold nothing that ranks could share.
    notes: Sequence[str] = ()

    def __init__(self, place: Place | None, settings: LoaderSettings, clock: Clock) -> None:
        self._batch = placeholder(settings.batch_size)

    def epoch(self, number: int) -> Iterator[Batch]:
        """Batches without end, as far as a trial is concerned."""
        for size in batch_sizes(self._batch.samples):
            yield self._batch if size == self._batch.samples else placeholder(size)

    def close(self) -> None:
        """Nothing to end."""
