"""``null``: batches that cost nothing, to measure what the harness itself costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from iobench.clock import Clock
from iobench.loaders.protocol import Batch, Framework, LoaderSettings
from iobench.trial import Place

SAMPLES = 1_000_000
"""In an epoch."""


def placeholder(samples: int) -> Batch:
    """A batch of no pixels: uint8 (N, 0), labels int64 (N,) of 0."""
    return Batch(np.empty((samples, 0), np.uint8), np.zeros(samples, np.int64), samples)


class NullLoader:
    """The same empty batch again and again; the last of an epoch may be smaller."""

    framework: Framework = "none"
    reads: str | None = None
    notes: Sequence[str] = ()

    def __init__(self, place: Place | None, settings: LoaderSettings, clock: Clock) -> None:
        self._batch = placeholder(settings.batch_size)

    def epoch(self, number: int) -> Iterator[Batch]:
        """A million samples."""
        whole, rest = divmod(SAMPLES, self._batch.samples)
        for _ in range(whole):
            yield self._batch
        if rest:
            yield placeholder(rest)

    def close(self) -> None:
        """Nothing to end."""
