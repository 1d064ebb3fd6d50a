"""The bounds of shards depend on the predicted sizes of samples."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dataprep.job.shard_bounds import (
    LARGEST_TARGET,
    SMALLEST_TARGET,
    clamp_target,
    cut_into_shards,
    move_bounds_to_runs,
)
from dataprep.output.keys import MAX_SHARD_BYTES, MIN_SHARD_BYTES

targets = st.integers(1, 10**10)
predictions = st.lists(st.integers(0, 200_000_000), min_size=1, max_size=300).map(
    lambda sizes: np.array(sizes, np.int64)
)


@given(predicted=predictions, target=targets)
def test_every_sample_lies_in_one_shard(predicted: NDArray[np.int64], target: int) -> None:
    """Bounds rise from 0 to the number of samples, so that each sample is in one shard."""
    bounds = cut_into_shards(predicted, clamp_target(target))
    assert (bounds[0], bounds[-1]) == (0, len(predicted))
    assert all(start < stop for start, stop in pairwise(bounds))


def shard_bytes(sizes: NDArray[np.int64], bounds: tuple[int, ...]) -> NDArray[np.int64]:
    """The bytes of each shard."""
    ends = np.concatenate([[0], np.cumsum(sizes)])[list(bounds)]
    return np.asarray(np.diff(ends), np.int64)


@given(seed=st.integers(0, 2**32), shards=st.integers(1, 12), shard_count=st.integers(100, 300))
def test_shards_are_balanced(seed: int, shards: int, shard_count: int) -> None:
    """With exact predictions and 100 samples a shard, shards are within 10 % of the mean."""
    sizes = np.random.default_rng(seed).integers(30_000, 270_000, shards * shard_count)
    bounds = cut_into_shards(sizes, clamp_target(int(sizes.sum()) // shards))
    bytes_per_shard = shard_bytes(sizes, bounds)
    assert np.abs(bytes_per_shard - bytes_per_shard.mean()).max() <= 0.1 * bytes_per_shard.mean()
    assert len(bytes_per_shard) == pytest.approx(shards, abs=1)


@given(
    seed=st.integers(0, 2**32),
    target=targets,
    total=st.integers(1_200_000, 2_000_000_000),
    error=st.sampled_from([-0.15, -0.05, 0.05, 0.15]),
)
def test_an_error_of_15_percent_stays_in_bounds(
    seed: int, target: int, total: int, error: float
) -> None:
    """Shards have 1 to 128 MB for any target, even if all sizes are wrong by 15 %."""
    shares = np.random.default_rng(seed).uniform(0.5, 1.5, 4000)
    sizes = (total * shares / shares.sum()).astype(np.int64)
    bytes_per_shard = shard_bytes(sizes, cut_into_shards(sizes, clamp_target(target)))
    # A cut between two samples is inexact because of the plan, not because of the prediction.
    grain = int(sizes.max())
    assert (bytes_per_shard + grain).min() * (1 + error) >= MIN_SHARD_BYTES
    assert (bytes_per_shard - grain).max() * (1 + error) <= MAX_SHARD_BYTES


@given(target=targets)
def test_targets_are_clamped(target: int) -> None:
    """A target is moved only to the nearest one that allows for an error of 15 %."""
    clamped = clamp_target(target)
    assert clamped * 85 >= MIN_SHARD_BYTES * 100
    assert clamped * 115 <= MAX_SHARD_BYTES * 100
    assert clamped == target or clamped in (SMALLEST_TARGET, LARGEST_TARGET)
    assert SMALLEST_TARGET * 85 - MIN_SHARD_BYTES * 100 < 85
    assert MAX_SHARD_BYTES * 100 - LARGEST_TARGET * 115 < 115


def test_known_cuts() -> None:
    """Cuts are at the ends of equal shares. Few samples make few shards, and none make none."""
    million = np.full(8, 1_000_000, np.int64)
    assert cut_into_shards(million, 2_000_000) == (0, 2, 4, 6, 8)
    assert cut_into_shards(million, 100_000_000) == (0, 8)
    assert cut_into_shards(million[:1], 2_000_000) == (0, 1)
    assert cut_into_shards(np.array([50_000_000, 2, 2, 50_000_000], np.int64), 50_000_000) == (
        0,
        2,
        4,
    )


def test_cuts_are_whole_numbers() -> None:
    """Sums beyond the precision of floats are cut exactly."""
    sizes = np.full(1001, 2**53 // 1000 + 1, np.int64)
    bounds = cut_into_shards(sizes, LARGEST_TARGET)
    assert bounds == tuple(range(1002))


def runs_of(lengths: Sequence[int]) -> NDArray[np.int64]:
    """The first rows of runs of these lengths."""
    return np.cumsum([0, *lengths[:-1]]).astype(np.int64)


@given(seed=st.integers(0, 2**32), target=targets, longest=st.integers(1, 200))
def test_bounds_move_to_runs_that_are_near(seed: int, target: int, longest: int) -> None:
    """A bound moves by 4 % of a shard at most, and shards stay within their limits.

    If every run is smaller than 8 % of a shard, each bound is at a run.
    """
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, longest + 1, 4000 // longest)
    sizes = np.repeat(rng.integers(20_000, 200_000, len(lengths)), lengths).astype(np.int64)
    runs, bounds = runs_of(lengths.tolist()), cut_into_shards(sizes, clamp_target(target))
    moved = move_bounds_to_runs(bounds, sizes, runs)
    before = np.concatenate([[0], np.cumsum(sizes)])
    shard = int(before[-1]) / (len(bounds) - 1)
    assert len(moved) == len(bounds)
    assert np.abs(before[[*moved]] - before[[*bounds]]).max() <= 0.04 * shard
    bytes_per_shard, planned = shard_bytes(sizes, moved), shard_bytes(sizes, bounds)
    assert bytes_per_shard.min() >= min(planned.min(), SMALLEST_TARGET)
    assert bytes_per_shard.max() <= max(planned.max(), LARGEST_TARGET)
    largest_run = np.diff([*before[runs], before[-1]]).max()
    is_free = (
        bytes_per_shard.min() >= 1.1 * SMALLEST_TARGET
        and bytes_per_shard.max() <= 0.9 * LARGEST_TARGET
    )
    if largest_run <= 0.079 * shard and is_free:
        assert {*moved[1:-1]} <= {*runs.tolist()}


def test_known_moves_to_runs() -> None:
    """A bound moves to the nearer end of its run, and stays if both ends are far."""
    sizes = np.full(400, 100_000, np.int64)
    assert move_bounds_to_runs((0, 200, 400), sizes, runs_of([203, 197])) == (0, 203, 400)
    assert move_bounds_to_runs((0, 200, 400), sizes, runs_of([197, 8, 195])) == (0, 197, 400)
    assert move_bounds_to_runs((0, 200, 400), sizes, runs_of([150, 100, 150])) == (0, 200, 400)
    assert move_bounds_to_runs((0, 400), sizes, runs_of([300, 100])) == (0, 400)
