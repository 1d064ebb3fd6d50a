"""The order of an epoch."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.assign import Order, epoch_order, framework_seed, mixed, order_within
from dataprep.errors import ConfigError

counts = st.integers(0, 300)
seeds = st.integers(0, 2**32)


@given(counts, seeds, st.integers(0, 9), st.integers(1, 9), st.booleans())
def test_ranks_share_everything(
    count: int, seed: int, epoch: int, world_size: int, shuffle: bool
) -> None:
    """Every sample belongs to one rank, and parts differ by one at most."""
    parts = [
        epoch_order(Order(shuffle, seed, rank, world_size), count, epoch)
        for rank in range(world_size)
    ]
    assert sorted(number for part in parts for number in part) == list(range(count))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_the_order_depends_on_seed_and_epoch_only() -> None:
    """These orders never change, so that a run of an earlier version can be repeated."""
    order = Order(seed=7)
    assert epoch_order(order, 10, 0) == [8, 0, 7, 1, 3, 6, 2, 4, 5, 9]
    assert epoch_order(order, 10, 1) != epoch_order(order, 10, 0)
    assert epoch_order(Order(seed=8), 10, 0) != epoch_order(order, 10, 0)
    assert order_within(order, range(20, 28), 0, 5) == [27, 20, 21, 25, 24, 23, 26, 22]
    assert list(mixed(order, range(8), 4, 0)) == [3, 1, 5, 0, 6, 7, 2, 4]
    assert framework_seed(order, 3, 1) == 475_238_277


def test_without_shuffling_the_order_is_that_of_the_data_set() -> None:
    """In every epoch, for shards and for samples within them."""
    order = Order(shuffle=False, seed=1)
    assert epoch_order(order, 9, 4) == list(range(9))
    assert order_within(order, range(5, 9), 4, 2) == [5, 6, 7, 8]


@given(st.integers(0, 50), st.integers(0, 40), seeds, st.integers(0, 9))
def test_samples_within_a_shard(start: int, length: int, seed: int, shard: int) -> None:
    """Each comes once."""
    samples = range(start, start + length)
    assert sorted(order_within(Order(seed=seed), samples, 0, shard)) == list(samples)


@given(counts, st.integers(1, 40), seeds, st.integers(0, 3))
def test_a_buffer_mixes_a_stream(count: int, size: int, seed: int, worker: int) -> None:
    """Each item comes once, and at most ``size`` places early."""
    found = list(mixed(Order(seed=seed), range(count), size, 0, worker))
    assert sorted(found) == list(range(count))
    assert all(number - place <= size for place, number in enumerate(found))


def test_streams_of_random_numbers_differ() -> None:
    """Shards, epochs, workers and parts are shuffled differently."""
    order, samples = Order(), range(30)
    within = [order_within(order, samples, epoch, shard) for epoch in (0, 1) for shard in (0, 1)]
    buffers = [list(mixed(order, samples, 9, *key)) for key in ((0, 0), (0, 1), (1, 0))]
    assert len({*map(tuple, within), *map(tuple, buffers)}) == 7
    seeds = [framework_seed(order, epoch, part) for epoch in (0, 1) for part in (0, 1)]
    assert len(set(seeds)) == 4


@pytest.mark.parametrize(("rank", "world_size"), [(1, 1), (-1, 2), (0, 0)])
def test_a_rank_out_of_range(rank: int, world_size: int) -> None:
    """It is refused at once."""
    with pytest.raises(ConfigError, match=f"rank {rank} of {world_size}"):
        Order(rank=rank, world_size=world_size)
