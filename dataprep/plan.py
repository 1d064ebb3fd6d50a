"""PURE. Samples to splits, an order, and shards.

Order and splits come from keyed BLAKE2b hashes of the names (RFC 7693): they depend on the
seed and on the names alone, not on a random generator's version. A sample that is added changes
the relative order of no others, and the split of at most one other, of its own class. Cuts are
made where the predicted bytes reach equal shares, so that every shard, the last too, has the
same size but for the error of prediction.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dataprep.names import CODEC

MIN_SHARD_BYTES = 1_000_000
MAX_SHARD_BYTES = 128_000_000
SMALLEST_TARGET = -(-MIN_SHARD_BYTES * 100 // 85)
LARGEST_TARGET = MAX_SHARD_BYTES * 100 // 115


@dataclass(frozen=True)
class ShardPlan:
    """Which samples go where.

    Attributes:
        order: int64 rows of the listing, in the order in which they are written.
        bounds: shard ``i`` holds ``order[bounds[i]:bounds[i + 1]]``.
    """

    order: NDArray[np.int64]
    bounds: tuple[int, ...]

    @property
    def shards(self) -> int:
        """How many shards."""
        return len(self.bounds) - 1


def clamp_target(target_bytes: int) -> int:
    """The target, moved so that a shard 15 % off still has 1 to 128 MB."""
    return min(max(target_bytes, SMALLEST_TARGET), LARGEST_TARGET)


def shuffled(names: Sequence[str], rows: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    """``rows`` in the order of the seeded hashes of their names."""
    return _by_hash(names, rows, seed, b"order")


def held_out(
    names: Sequence[str],
    labels: NDArray[np.int32],
    rows: NDArray[np.int64],
    share: Fraction,
    seed: int,
) -> NDArray[np.bool_]:
    """Mask over ``rows``: the validation share of each class, halves rounded up.

    A class of two samples or more keeps at least one on either side.
    """
    hashed = _by_hash(names, rows, seed, b"validation")
    rank = np.empty(len(names), dtype=np.int64)
    rank[hashed] = np.arange(len(hashed))
    order = np.lexsort((rank[rows], labels[rows]))
    grouped = labels[rows][order]
    _, starts, counts = np.unique(grouped, return_index=True, return_counts=True)
    mask = np.zeros(len(rows), dtype=np.bool_)
    for start, count in zip(starts.tolist(), counts.tolist(), strict=True):
        wanted = int(Fraction(count) * share + Fraction(1, 2))
        if count >= 2:
            wanted = min(max(wanted, 1), count - 1)
        mask[order[start : start + wanted]] = True
    return mask


def cut(predicted: NDArray[np.int64], target_bytes: int) -> tuple[int, ...]:
    """Bounds of shards of equal predicted bytes near ``target_bytes``; each has a sample."""
    count = len(predicted)
    if count == 0:
        return (0,)
    total = int(predicted.sum())
    shards = max(1, (2 * total + target_bytes) // (2 * target_bytes))
    if total > shards * LARGEST_TARGET:
        shards += 1
    if shards > 1 and total < shards * SMALLEST_TARGET:
        shards -= 1
    shards = min(shards, count)
    ends = np.cumsum(predicted)
    middles = ends - predicted // 2
    goals = [total * i // shards for i in range(1, shards)]
    cuts = np.searchsorted(middles, np.array(goals, dtype=np.int64)).tolist()
    bounds = [0]
    for i, place in enumerate(cuts):
        bounds.append(min(max(place, bounds[-1] + 1), count - (shards - 1 - i)))
    return (*bounds, count)


def _by_hash(
    names: Sequence[str], rows: NDArray[np.int64], seed: int, purpose: bytes
) -> NDArray[np.int64]:
    key = seed.to_bytes(8, "little", signed=True)
    hashes = [
        hashlib.blake2b(names[row].encode(*CODEC), digest_size=16, key=key, person=purpose).digest()
        for row in rows.tolist()
    ]
    order = sorted(range(len(hashes)), key=hashes.__getitem__)
    return rows[np.array(order, dtype=np.int64)] if len(rows) else rows
