"""The order of an epoch is fixed by seed and epoch, and is divided among ranks."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.errors import ConfigError
from dataprep.reading.epoch_order import (
    RUN_SAMPLES,
    Order,
    end_of_epoch,
    framework_seed,
    mixed_by_buffer,
    order_from_start,
    order_in_share,
    per_rank_batch,
    samples_of_rank,
    samples_of_worker,
    sequence_by_record,
    sequence_by_shard,
)

counts = st.integers(0, 300)
seeds = st.integers(0, 2**32)
worlds = st.integers(1, 100)
sizes = st.lists(st.integers(1, 60), min_size=1, max_size=9)


def parts(world_size: int, count: int, epoch: int = 2, **options: Any) -> list[list[int]]:
    """The samples of each rank, in its order."""
    order = Order(world_size=world_size, epoch=epoch, **options)
    sequence = sequence_by_record(order, count, epoch)
    ranks = range(world_size)
    return [samples_of_rank(replace(order, rank=rank), sequence, epoch).tolist() for rank in ranks]


@given(counts, seeds, worlds, st.integers(0, 300), st.integers(0, 320))
def test_ranks_share_everything(
    count: int, seed: int, world_size: int, more: int, start: int
) -> None:
    """``keep`` gives each remaining sample to one rank, for any global batch."""
    global_batch = world_size + more if more else None
    orders = parts(world_size, count, seed=seed, global_batch=global_batch, start=start)
    sequence = sequence_by_record(Order(seed=seed), count, 2).tolist()
    assert sorted(number for part in orders for number in part) == sorted(sequence[start:])
    assert more or max(map(len, orders)) - min(map(len, orders)) <= 1


@given(st.integers(1, 300), worlds, st.integers(0, 60), st.integers(0, 9))
def test_equal_steps(count: int, world_size: int, more: int, done: int) -> None:
    """``drop`` omits and ``pad`` repeats less than one global batch, and all batches are full."""
    global_batch = world_size + more
    start = min(done * global_batch, count // global_batch * global_batch)
    for even in ("drop", "pad"):
        orders = parts(world_size, count, global_batch=global_batch, start=start, even=even)
        counted_numbers = Counter(number for part in orders for number in part)
        sizes = [per_rank_batch(global_batch, rank, world_size) for rank in range(world_size)]
        steps = {len(part) // size for part, size in zip(orders, sizes, strict=True)}
        left = count - start if even == "drop" else count - start + global_batch - 1
        assert steps == {left // global_batch}
        assert all(len(part) % size == 0 for part, size in zip(orders, sizes, strict=True))
        if even == "drop":
            assert 0 <= count - start - counted_numbers.total() < global_batch
            assert set(counted_numbers.values()) <= {1}
        else:
            assert 0 <= counted_numbers.total() - (count - start) < global_batch
            assert {*sequence_by_record(Order(), count, 2)[start:].tolist()} <= {*counted_numbers}


@given(counts, worlds, worlds, st.integers(1, 40), st.integers(0, 9), st.integers(0, 9))
def test_another_number_of_ranks_goes_on(
    count: int, before: int, after: int, more: int, first: int, second: int
) -> None:
    """After steps of two worlds and the rest on a third one, each sample was read once."""
    global_batch = max(before, after) + more
    read = Counter[int]()
    start = 0
    for world_size, steps in ((before, first), (after, second), (1, None)):
        for rank, part in enumerate(
            parts(world_size, count, global_batch=global_batch, start=start)
        ):
            size = per_rank_batch(global_batch, rank, world_size)
            full = max(0, count - start) // global_batch
            taken_count = None if steps is None or steps > full else steps * size
            read.update(part[:taken_count])
        start = count if steps is None or steps > full else start + steps * global_batch
    assert read == Counter(range(count))


@given(st.integers(1, 10_000), worlds)
def test_a_global_batch_stays_the_same(global_batch: int, world_size: int) -> None:
    """The batches of the ranks add up to the global batch, and differ by one at most."""
    sizes = [per_rank_batch(global_batch, rank, world_size) for rank in range(world_size)]
    assert sum(sizes) == global_batch
    assert max(sizes) - min(sizes) <= 1


def test_8192_on_96_ranks() -> None:
    """Of a global batch of 8,192, the first 32 of 96 ranks have one sample more."""
    assert [per_rank_batch(8192, rank, 96) for rank in (0, 31, 32, 95)] == [86, 86, 85, 85]


@given(sizes, seeds, st.integers(1, 30))
def test_by_shard(samples: list[int], seed: int, run: int) -> None:
    """Each sample comes once, shards follow one another, and runs of neighbours stay together."""
    bounds = [0, *np.cumsum(samples).tolist()]
    sequence = sequence_by_shard(Order(seed=seed), bounds, 1, run)
    assert sorted(sequence.tolist()) == list(range(bounds[-1]))
    shards = np.searchsorted(bounds, sequence, "right")
    assert np.count_nonzero(np.diff(shards)) == len(samples) - 1
    for shard in range(len(samples)):
        runs = (sequence[shards == shard + 1] - bounds[shard]) // run
        assert np.count_nonzero(np.diff(runs)) == len(set(runs.tolist())) - 1


@given(sizes, st.integers(1, 6), st.integers(0, 40), st.sampled_from(["keep", "drop", "pad"]))
def test_shares_of_hosts(samples: list[int], local: int, more: int, even: Any) -> None:
    """Ranks of a host read its share, in equal steps if requested, and can be resumed."""
    world = local * len(samples)
    global_batch = world + more
    steps, samples_read = set(), 0
    of_hosts: list[set[int]] = [set() for _ in samples]
    for rank in range(world):
        host = rank // local
        requested_order = Order(rank=rank, world_size=world, even=even, global_batch=global_batch)
        order = order_in_share(requested_order, host, samples)
        assert order.rank_batch == requested_order.rank_batch
        sequence = sequence_by_record(order, samples[host], 0)
        part = samples_of_rank(order, sequence, 0).tolist()
        assert set(part) <= set(range(samples[host]))
        samples_read += len(part)
        of_hosts[host] |= set(part)
        if even != "keep":
            assert requested_order.rank_batch
            assert len(part) % requested_order.rank_batch == 0
            steps.add(len(part) // requested_order.rank_batch)
        resumed_part = samples_of_rank(
            order_in_share(replace(requested_order, start=global_batch), host, samples), sequence, 0
        ).tolist()
        if even != "keep" or samples[host] >= order.step_samples:
            assert part[requested_order.rank_batch :] == resumed_part or even == "pad"
    assert len(steps) == (even != "keep")
    assert even != "keep" or samples_read == sum(samples)
    assert even == "drop" or [*map(len, of_hosts)] == samples


@given(sizes, st.integers(1, 6), st.integers(0, 40), st.sampled_from(["keep", "drop", "pad"]))
def test_the_end_of_an_epoch(samples: list[int], local: int, more: int, even: Any) -> None:
    """A start belongs to the next epoch exactly if no rank of any host has a sample left."""
    world = local * len(samples)
    global_batch = world + more
    requested_order = Order(world_size=world, even=even, global_batch=global_batch, epoch=3)
    end = end_of_epoch(requested_order, samples)
    for start in range(global_batch, end + 1, global_batch):
        order = replace(requested_order, start=start)
        left = 0
        for rank in range(world):
            own_order = replace(order, rank=rank)
            count = samples[0]
            if len(samples) > 1:
                own_order = order_in_share(own_order, rank // local, samples)
                count = samples[rank // local]
            left += len(samples_of_rank(own_order, sequence_by_record(own_order, count, 3), 3))
        try:
            following = order_from_start(order, samples)
        except ConfigError:
            assert even == "drop"
            continue
        assert following == (order if left else replace(requested_order, epoch=4))
    if even != "drop":
        assert order_from_start(replace(requested_order, start=end), samples).epoch == 4
    with pytest.raises(ConfigError):
        order_from_start(replace(requested_order, start=end + 2 * global_batch), samples)


def test_ranks_that_do_not_fit_the_shares() -> None:
    """Three ranks on two hosts, and a rank with another host's share, are refused."""
    for rank, world_size in ((0, 3), (2, 4)):
        with pytest.raises(ConfigError, match=f"rank {rank} of {world_size} cannot read share 0"):
            order_in_share(Order(rank=rank, world_size=world_size), 0, [5, 5])
    alone = Order()
    assert order_in_share(alone, 1, [5, 5]) is alone


def test_the_order_depends_on_seed_and_epoch_only() -> None:
    """These orders never change, so that training can continue with a later version."""
    order = Order(seed=7)
    assert sequence_by_record(order, 10, 0).tolist() == [8, 0, 7, 1, 3, 6, 2, 4, 5, 9]
    assert sequence_by_record(order, 10, 1).tolist() != sequence_by_record(order, 10, 0).tolist()
    assert (
        sequence_by_record(replace(order, seed=8), 10, 0).tolist()
        != sequence_by_record(order, 10, 0).tolist()
    )
    assert sequence_by_shard(order, [0, 3, 8], 0, 2).tolist() == [0, 1, 2, 3, 4, 7, 6, 5]
    assert list(mixed_by_buffer(order, range(8), 4, 0)) == [3, 1, 5, 0, 6, 7, 2, 4]
    assert framework_seed(order, 3, 1) == 475_238_277


def test_without_shuffling_the_order_is_that_of_the_data_set() -> None:
    """Without shuffling, the order of every epoch is that of the data set, by record and shard."""
    order = Order(shuffle=False, seed=1)
    assert sequence_by_record(order, 9, 4).tolist() == list(range(9))
    assert sequence_by_shard(order, [0, 4, 9], 4).tolist() == list(range(9))


@given(st.integers(0, 200), st.integers(1, 20), st.integers(1, 9))
def test_workers_share_batches(count: int, batch: int, workers: int) -> None:
    """The batches of workers, taken in turn, are those of one process."""
    numbers = np.arange(count)
    shares = [
        samples_of_worker(numbers, batch, worker, workers).tolist() for worker in range(workers)
    ]
    taken_numbers: list[int] = []
    for step in range(-(-count // batch)):
        share = shares[step % workers]
        taken_numbers += share[:batch]
        del share[:batch]
    assert taken_numbers == numbers.tolist()


@given(counts, st.integers(1, 40), seeds, st.integers(0, 3))
def test_a_buffer_mixes_a_stream(count: int, size: int, seed: int, worker: int) -> None:
    """Each item comes once, and at most ``size`` positions early."""
    orders = list(mixed_by_buffer(Order(seed=seed), range(count), size, 0, worker))
    assert sorted(orders) == list(range(count))
    assert all(number - position <= size for position, number in enumerate(orders))


def test_streams_of_random_numbers_differ() -> None:
    """Epochs, shards, workers and parts are shuffled differently."""
    order, bounds = Order(), [0, 2 * RUN_SAMPLES, 4 * RUN_SAMPLES]
    shuffled = [sequence_by_shard(order, bounds, epoch) for epoch in (0, 1)]
    within = [numbers[numbers < 2 * RUN_SAMPLES] for numbers in shuffled]
    within += [numbers[numbers >= 2 * RUN_SAMPLES] - 2 * RUN_SAMPLES for numbers in shuffled]
    buffers = [list(mixed_by_buffer(order, range(30), 9, *key)) for key in ((0, 0), (0, 1), (1, 0))]
    assert len({*(tuple(generator.tolist()) for generator in within), *map(tuple, buffers)}) == 7
    seeds = [framework_seed(order, epoch, part) for epoch in (0, 1) for part in (0, 1)]
    assert len(set(seeds)) == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rank": 1}, "rank 1 of 1"),
        ({"rank": -1, "world_size": 2}, "rank -1 of 2"),
        ({"world_size": 0}, "rank 0 of 0"),
        ({"even": "most"}, "it is keep, drop or pad"),
        ({"start": -1}, "start -1: it is at least 0"),
        ({"start": np.int64(-2)}, "start -2: it is at least 0"),
        ({"seed": np.int64(-1)}, "seed -1: it is at least 0"),
        ({"seed": -1}, "seed -1: it is at least 0"),
        ({"seed": -1, "shuffle": False}, "seed -1: it is at least 0"),
        ({"world_size": 4, "global_batch": 3}, "a global batch of 3 for 4 ranks"),
    ],
    ids=str,
)
def test_out_of_range(options: dict[str, Any], message: str) -> None:
    """A value out of range is refused when the object is created."""
    with pytest.raises(ConfigError, match=message):
        Order(**options)


@pytest.mark.parametrize("seed", [None, (1, 2)], ids=str)
def test_a_seed_of_another_type_without_shuffling(seed: Any) -> None:
    """An order that is not shuffled needs no seed."""
    assert sequence_by_record(Order(shuffle=False, seed=seed), 4, 0).tolist() == [0, 1, 2, 3]
