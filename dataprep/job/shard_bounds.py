"""Cut the samples of a split into shards of nearly equal size.

Shards are cut where the predicted bytes reach equal shares of the total. Therefore all shards,
including the last, have the same size, except for errors of the prediction.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from dataprep.output.keys import MAX_SHARD_BYTES, MIN_SHARD_BYTES
from dataprep.sources.protocol import Integers

SMALLEST_TARGET = -(-MIN_SHARD_BYTES * 100 // 85)
"""The smallest target size. A shard has at least 1 MB, even if its records are 15 % smaller."""

LARGEST_TARGET = MAX_SHARD_BYTES * 100 // 115
"""The largest target size. A shard has at most 128 MB, even if its records are 15 % larger."""

_MAX_MOVE = Fraction(1, 25)
"""The maximum move of a shard bound to the start of a run, as a share of a shard.

Both bounds of a shard may move, so that its size changes by up to 8 %."""


def clamp_target(target_bytes: int) -> int:
    """Limit the target size, so that shards have 1 to 128 MB even if the prediction is 15 % off."""
    return min(max(target_bytes, SMALLEST_TARGET), LARGEST_TARGET)


def cut_into_shards(predicted_bytes: Integers, target_bytes: int) -> tuple[int, ...]:
    """Cut samples into shards of equal predicted bytes, near ``target_bytes``.

    Args:
        predicted_bytes: the predicted bytes of each sample.
        target_bytes: the desired size of a shard.

    Returns:
        The bounds of the shards. Shard i has the samples from bound i up to, but not including,
        bound i + 1. Each shard has at least one sample.
    """
    count = len(predicted_bytes)
    total = int(predicted_bytes.sum())
    shards = max(1, (2 * total + target_bytes) // (2 * target_bytes))
    # The number of shards was rounded, so that their size may be slightly out of range.
    if total > shards * LARGEST_TARGET:
        shards += 1
    if shards > 1 and total < shards * SMALLEST_TARGET:
        shards -= 1
    shards = min(shards, count)
    # A sample belongs to the shard that contains the middle of its bytes.
    ends = np.cumsum(predicted_bytes)
    middles = ends - predicted_bytes // 2
    goals = [total * i // shards for i in range(1, shards)]
    cuts = np.searchsorted(middles, np.array(goals, dtype=np.int64)).tolist()
    bounds = [0]
    for i, bound in enumerate(cuts):
        earliest = bounds[-1] + 1
        latest = count - (shards - 1 - i)
        bounds.append(min(max(bound, earliest), latest))
    return (*bounds, count)


def run_starts(containers: Sequence[str]) -> Integers:
    """Return the position at which each run of samples in one container begins, ascending.

    Args:
        containers: the container of each sample, in the order in which the samples are read.
            Neighbours that are in the same container belong to one run.
    """
    starts = [
        position
        for position, container in enumerate(containers)
        if position == 0 or container != containers[position - 1]
    ]
    return np.array(starts, dtype=np.int64)


def move_bounds_to_runs(
    bounds: Sequence[int], predicted_bytes: Integers, runs: Integers
) -> tuple[int, ...]:
    """Move each shard bound to the nearest start of a run, if that is near enough.

    If a bound is inside a run, the tasks of both shards must read the run. A bound moves by at most
    ``_MAX_MOVE`` of a shard. It does not move if a shard would become too small or too large.

    Args:
        bounds: the bounds of shards from ``cut_into_shards``.
        predicted_bytes: the predicted bytes of each sample.
        runs: the position at which each run begins, from ``run_starts``.
    """
    bytes_before = np.concatenate([[0], np.cumsum(predicted_bytes)])
    max_move_bytes = _MAX_MOVE * (int(bytes_before[-1]) // (len(bounds) - 1))
    moved = [*bounds]
    for number in range(1, len(bounds) - 1):
        next_run = int(np.searchsorted(runs, bounds[number]))
        candidates = runs[max(next_run - 1, 0) : next_run + 1]
        distances_bytes = np.abs(bytes_before[candidates] - bytes_before[bounds[number]])
        nearest = int(candidates[np.argmin(distances_bytes)])
        shard_bounds = [moved[number - 1], nearest, moved[number + 1]]
        shard_bytes = np.diff(bytes_before[shard_bounds])
        is_in_range = shard_bytes.min() >= SMALLEST_TARGET and shard_bytes.max() <= LARGEST_TARGET
        if is_in_range and int(distances_bytes.min()) <= max_move_bytes:
            moved[number] = nearest
    return tuple(moved)
