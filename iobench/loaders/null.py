"""``null``: empty batches, to measure the cost of the measurement itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from iobench.clock import Clock
from iobench.loaders.capabilities import Capabilities
from iobench.loaders.protocol import Batch, Framework
from iobench.loaders.settings import LoaderSettings
from iobench.results.trial import Location

SAMPLES = 10**12
"""Samples in an epoch of ``null`` and ``mock``. No trial reaches the end of such an epoch."""


def placeholder(samples: int) -> Batch:
    """Return a batch without pixels: images uint8 (N, 0), labels int64 (N,), all 0."""
    return Batch(np.empty((samples, 0), np.uint8), np.zeros(samples, np.int64), samples)


def batch_sizes(batch_size: int) -> Iterator[int]:
    """Yield the size of each batch of an epoch; the last batch may be smaller."""
    for start in range(0, SAMPLES, batch_size):
        yield min(batch_size, SAMPLES - start)


class NullLoader:
    """A loader that yields the same empty batch in every step."""

    framework: Framework = "none"
    reads: str | None = None
    by_rank = True  # Every rank gets empty batches of its own.
    notes: Sequence[str] = ()
    capabilities: ClassVar = Capabilities(reads_data=False, makes_pixels=False)

    def __init__(self, location: Location | None, settings: LoaderSettings, clock: Clock) -> None:
        self._batch = placeholder(settings.batch_size)

    def epoch(self, number: int) -> Iterator[Batch]:
        """Yield batches; the epoch is longer than any trial."""
        for size in batch_sizes(self._batch.samples):
            yield self._batch if size == self._batch.samples else placeholder(size)

    def close(self) -> None:
        """Do nothing: there is nothing to end."""
