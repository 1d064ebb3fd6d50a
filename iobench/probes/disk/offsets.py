"""PURE. Which blocks of a file each process touches, and in which order."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np


def sequential(file_bytes: int, block_bytes: int, processes: int) -> list[Sequence[int]]:
    """For each process the offsets of whole blocks in a contiguous region of its own, ascending.

    Regions are equally long; blocks that do not divide evenly are left out at the end.
    """
    region_bytes = file_bytes // block_bytes // processes * block_bytes
    starts = range(0, region_bytes * processes, region_bytes) if region_bytes else [0] * processes
    return [range(start, start + region_bytes, block_bytes) for start in starts]


def random(
    file_bytes: int, block_bytes: int, processes: int, *, at_most: int, seed: int = 0
) -> list[Sequence[int]]:
    """For each process offsets of whole blocks, shuffled; no block occurs twice.

    They have equally many: the whole file, or ``at_most`` in all where that is less.
    """
    blocks = file_bytes // block_bytes
    each = min(blocks, at_most) // processes
    chosen = np.random.default_rng(seed).choice(blocks, each * processes, replace=False)
    offsets = chosen.astype(np.int64) * block_bytes
    return [offsets[process::processes].tolist() for process in range(processes)]


def repeated(offsets: Sequence[int], at_most: int) -> Iterator[int]:
    """The offsets again and again, ``at_most`` in all."""
    return itertools.islice(itertools.cycle(offsets), at_most)
