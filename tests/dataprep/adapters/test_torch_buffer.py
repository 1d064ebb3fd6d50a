"""Samples in sequence, mixed by a bounded buffer."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

import dataprep
from dataprep.errors import ConfigError

torch = pytest.importorskip("torch")

Pairs = list[tuple[bytes, int]]


def pairs(dataset: dataprep.Dataset, buffer: int, seed: int = 0, epoch: int = 0) -> Pairs:
    """(image, label) in the order in which they come, without workers."""
    return list(
        dataprep.to_torch(dataset, iterable=True, shuffle_buffer=buffer, seed=seed, epoch=epoch)
    )


@pytest.mark.parametrize("buffer", [1, 7, 119, 120, 1000])
def test_each_sample_comes_once(dataset: dataprep.Dataset, buffer: int) -> None:
    """Whether the buffer is smaller than the data or not, with its own label."""
    expected = Counter((bytes(sample.image), sample.label) for sample in dataset)
    assert Counter(pairs(dataset, buffer)) == expected


def test_the_order_is_of_seed_and_epoch(dataset: dataprep.Dataset) -> None:
    """And comes back with both."""
    first = pairs(dataset, 20, seed=1)
    assert pairs(dataset, 20, seed=1) == first
    assert pairs(dataset, 20, seed=1, epoch=1) != first
    assert pairs(dataset, 20, seed=2) != first
    assert pairs(dataset, 0, seed=1) != first


def test_shards_are_mixed(dataset: dataprep.Dataset) -> None:
    """Without a buffer the samples of a shard come together; with one they do not."""
    place = {bytes(sample.image): number for number, sample in enumerate(dataset)}
    shards = dataset.places.shards

    def changes(found: Pairs) -> int:
        order = [int(shards[place[image]]) for image, _ in found]
        return sum(a != b for a, b in pairwise(order))

    assert changes(pairs(dataset, 0)) == len(set(shards.tolist())) - 1
    assert changes(pairs(dataset, 60)) > 30


def test_a_sample_comes_early_by_the_buffer_at_most(dataset: dataprep.Dataset) -> None:
    """What a bounded buffer cannot do: bring the last to the beginning."""
    arrived = {image: number for number, (image, _) in enumerate(pairs(dataset, 0, seed=3))}
    left = [arrived[image] for image, _ in pairs(dataset, 10, seed=3)]
    assert all(number - place <= 10 for place, number in enumerate(left))
    assert max(number - place for place, number in enumerate(left)) > 0


def test_what_it_held_is_told(dataset: dataprep.Dataset) -> None:
    """The most, by what was there at a time: its samples, and the one that arrives."""
    records = dataprep.to_torch(dataset, iterable=True, shuffle_buffer=10)
    assert records.buffer_bytes == 0
    list(records)
    sizes = sorted(len(sample.image) for sample in dataset)
    assert sum(sizes[:11]) <= records.buffer_bytes <= sum(sizes[-11:])
    assert dataprep.to_torch(dataset, iterable=True).buffer_bytes == 0


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
def test_workers_tell_what_they_held(dataset: dataprep.Dataset) -> None:
    """Though they are other processes; each has a buffer of its own."""
    records = dataprep.to_torch(dataset, iterable=True, shuffle_buffer=10)
    loader = torch.utils.data.DataLoader(records, batch_size=None, num_workers=2)
    found = Counter(image for image, _ in loader)
    assert found == Counter(bytes(sample.image) for sample in dataset)
    sizes = sorted(len(sample.image) for sample in dataset)
    assert 2 * sum(sizes[:11]) <= records.buffer_bytes <= 2 * sum(sizes[-11:])


def test_batches_go_through_it_too(dataset: dataprep.Dataset) -> None:
    """The same order as of single samples."""
    batches = dataprep.to_torch(
        dataset, iterable=True, shuffle_buffer=20, seed=1, batch_size=16, threads=0
    )
    found = [bytes(image) for images, _ in batches for image in images]
    assert found == [image for image, _ in pairs(dataset, 20, seed=1)]


def test_without_shuffling_there_is_none(dataset: dataprep.Dataset) -> None:
    """The order is that of the data set."""
    records = dataprep.to_torch(dataset, iterable=True, shuffle_buffer=20, shuffle=False)
    assert [image for image, _ in records] == [bytes(sample.image) for sample in dataset]


@pytest.mark.parametrize(("buffer", "iterable"), [(-1, True), (10, False)])
def test_a_buffer_is_of_the_iterable_style(
    dataset: dataprep.Dataset, buffer: int, iterable: bool
) -> None:
    """The map style has an order already."""
    with pytest.raises(ConfigError, match=f"shuffle_buffer {buffer}: samples, from 0 on"):
        dataprep.to_torch(dataset, iterable=iterable, shuffle_buffer=buffer)
