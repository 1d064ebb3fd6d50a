"""Epochs of training batches, timed once they come steadily."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from iobench.sidebyside.contest import Measured

SIZE = 224
BATCH = 64
CORES = 2

Epoch = Callable[[int], Iterator[int]]
"""The number of an epoch to the sizes of its batches, each when it is there."""


def steady(epoch: Epoch, images: int) -> Measured:
    """At least so many images in whole epochs, after a sixteenth as many that are not counted.

    tf.data tunes itself meanwhile, and workers start.
    """
    warm_up = max(1, images // 16 // BATCH)  # batches
    seen = batches = number = 0
    started_s = time.perf_counter()
    while seen < images:
        for size in epoch(number):
            batches += 1
            if batches > warm_up:
                seen += size
            elif batches == warm_up:
                started_s = time.perf_counter()
        number += 1
    return Measured(seen, time.perf_counter() - started_s)
