"""Samples are assigned to splits and shards, and ordered, by names, seeds and sizes."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dataprep.job.split_plan import (
    LARGEST_TARGET,
    SMALLEST_TARGET,
    clamp_target,
    cut_into_shards,
    move_bounds_to_runs,
    shuffled,
    validation_mask,
)
from dataprep.names import to_bytes
from dataprep.output.keys import MAX_SHARD_BYTES, MIN_SHARD_BYTES
from tests.strategies import distinct_names

seeds = st.integers(-(2**63), 2**63 - 1)
targets = st.integers(1, 10**10)
predictions = st.lists(st.integers(0, 200_000_000), min_size=1, max_size=300).map(
    lambda sizes: np.array(sizes, np.int64)
)


def rows(names: list[str]) -> NDArray[np.int64]:
    """Every row."""
    return np.arange(len(names), dtype=np.int64)


def order(names: list[str], seed: int) -> list[str]:
    """The names in shuffled order."""
    return [names[row] for row in shuffled(names, rows(names), seed).tolist()]


@given(names=distinct_names, seed=seeds, data=st.data())
def test_order_depends_on_seed_and_names_alone(
    names: list[str], seed: int, data: st.DataObject
) -> None:
    """However the source was listed, the order is the same permutation of its names."""
    relisted = data.draw(st.permutations(names))
    assert order(names, seed) == order(relisted, seed)
    assert sorted(order(names, seed)) == sorted(names)


@given(names=distinct_names, seed=seeds)
def test_an_added_sample_moves_no_other(names: list[str], seed: int) -> None:
    """The other samples keep their relative order if any one sample is left out."""
    *rest, added = names
    assert [name for name in order(names, seed) if name != added] == order(rest, seed)


def test_the_order_is_the_documented_hash() -> None:
    """The order is that of keyed BLAKE2b hashes, so that other programs can compute it too."""
    names = [f"n{i}" for i in range(50)]

    def digest(name: str) -> bytes:
        key = (7).to_bytes(8, "little", signed=True)
        return hashlib.blake2b(to_bytes(name), digest_size=16, key=key, person=b"order").digest()

    assert order(names, 7) == sorted(names, key=digest)
    assert order(names, 7) != order(names, 8)
    assert order(names, 7) != names


def test_only_the_given_rows_are_shuffled() -> None:
    """Only the given rows appear in the order."""
    chosen = np.array([5, 1, 3], np.int64)
    assert sorted(shuffled([f"n{i}" for i in range(9)], chosen, 0).tolist()) == [1, 3, 5]
    assert shuffled([], np.array([], np.int64), 0).tolist() == []


@st.composite
def labelled(draw: st.DrawFn) -> tuple[list[str], NDArray[np.int32]]:
    """Names with a label for each."""
    names = draw(distinct_names)
    labels = draw(st.lists(st.integers(0, 4), min_size=len(names), max_size=len(names)))
    return names, np.array(labels, np.int32)


shares = st.fractions(Fraction(1, 100), Fraction(99, 100), max_denominator=100)


@given(sample=labelled(), share=shares, seed=seeds)
def test_every_class_gives_its_share(
    sample: tuple[list[str], NDArray[np.int32]], share: Fraction, seed: int
) -> None:
    """Each class gives its share, with halves rounded up, and keeps at least one sample.

    It gives at least one if it has two.
    """
    names, labels = sample
    mask = validation_mask(names, labels, rows(names), share, seed)
    taken_by_class = Counter(labels[mask].tolist())
    for label, count in Counter(labels.tolist()).items():
        rounded = int(count * share + Fraction(1, 2))
        assert taken_by_class[label] == min(max(rounded, 1), count - 1)


@given(sample=labelled(), share=shares, seed=seeds, data=st.data())
def test_the_split_depends_on_seed_and_names_alone(
    sample: tuple[list[str], NDArray[np.int32]],
    share: Fraction,
    seed: int,
    data: st.DataObject,
) -> None:
    """The same samples are held out for any order of the source's listing."""
    names, labels = sample
    again = np.array(data.draw(st.permutations(range(len(names)))), np.int64)
    relisted = [names[row] for row in again.tolist()]
    before = validation_mask(names, labels, rows(names), share, seed)
    after = validation_mask(relisted, labels[again], rows(names), share, seed)
    assert after.tolist() == before[again].tolist()


@given(sample=labelled(), share=shares, seed=seeds)
def test_an_added_sample_moves_at_most_one_other_to_the_other_split(
    sample: tuple[list[str], NDArray[np.int32]], share: Fraction, seed: int
) -> None:
    """If one sample is removed, at most one other, of its class, changes its split."""
    names, labels = sample
    with_it = validation_mask(names, labels, rows(names), share, seed)[:-1]
    without = validation_mask(names, labels, rows(names)[:-1], share, seed)
    moved = np.flatnonzero(with_it != without)
    assert len(moved) <= 1
    assert (labels[moved] == labels[-1]).all()


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
