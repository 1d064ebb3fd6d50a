"""Shards to walk through, the next ones fetched ahead."""

from __future__ import annotations

import itertools
import pickle
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import dataprep
from dataprep.dataset import Dataset
from dataprep.dataset import dataset as dataset_module
from dataprep.errors import CorruptRecord, ObjectNotFound
from dataprep.stores.memory import MemoryStore
from dataprep.stores.protocol import Versioned


class Watched(MemoryStore):
    """Notes when each shard is asked for, and how many are alive at once."""

    def __init__(self, uri: str) -> None:
        super().__init__(uri)
        self.asked: list[str] = []
        self.threads: set[int] = set()
        self.alive: list[weakref.ref[Any]] = []
        self.most_alive = 0
        self.second = threading.Event()

    def get_versioned(self, key: str, offset: int = 0, length: int | None = None) -> Versioned:
        """A buffer of its own for each whole shard, whose end can be seen."""
        found = super().get_versioned(key, offset, length)
        if length is not None or not key.startswith(("tfrecord/", "recordio/")):
            return found
        self.asked.append(key)
        if len(self.asked) == 2:
            self.second.set()
        self.threads.add(threading.get_ident())
        array = np.frombuffer(bytearray(found.data), np.uint8)
        self.alive.append(weakref.ref(array))
        self.most_alive = max(self.most_alive, sum(ref() is not None for ref in self.alive))
        return Versioned(array.data, found.version)  # type: ignore[arg-type]


class MeetingStore(MemoryStore):
    """Gives the first three shards only when all three have been asked for."""

    def __init__(self, uri: str) -> None:
        super().__init__(uri)
        self._meeting = threading.Barrier(3)
        self._asked = itertools.count()
        self.met = False

    def get_versioned(self, key: str, offset: int = 0, length: int | None = None) -> Versioned:
        """Wait for the others."""
        if key.startswith("tfrecord/") and next(self._asked) < 3:
            self._meeting.wait(60)
            self.met = True
        return super().get_versioned(key, offset, length)


@pytest.fixture(params=["tfrecord", "recordio"])
def watched(uri_of_dataset: str, request: pytest.FixtureRequest) -> tuple[Dataset, Watched]:
    """A data set of several shards, watched."""
    store = Watched(uri_of_dataset)
    return Dataset(store, "train", request.param), store


def test_what_they_are(uri_of_dataset: str) -> None:
    """Shards in the manifest's order; their samples are all of the data set's, in order."""
    dataset = dataprep.open(uri_of_dataset)
    shards = dataset.shards()
    entries = dataset.manifest.formats["tfrecord"].shards
    assert [(s.key, s.bytes, len(s), s.sha256) for s in shards] == [
        (entry.key, entry.bytes, entry.records, entry.sha256) for entry in entries
    ]
    assert [number for shard in shards for number in shard.samples] == list(range(120))
    assert [shard.number for shard in shards] == list(range(len(shards)))


def test_walking_through_one(watched: tuple[Dataset, Watched]) -> None:
    """A shard gives its own samples after one request, and another time again."""
    dataset, store = watched
    shard = dataset.shards()[1]
    assert [s.image for s in shard] == [dataset[i].image for i in shard.samples]
    assert store.asked == [shard.key]
    assert len(list(shard)) == len(shard)


def test_some_in_another_order(watched: tuple[Dataset, Watched]) -> None:
    """``iterate`` takes shards in whatever order they are given."""
    dataset, store = watched
    first, *_, last = dataset.shards()
    found = [sample.image for sample in dataset.iterate([last, first])]
    assert found == [dataset[i].image for i in (*last.samples, *first.samples)]
    assert store.asked == [last.key, first.key]
    assert list(dataset.iterate([])) == []


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two shards are as much as may be in memory."""
    monkeypatch.setattr(dataset_module, "_HELD_BYTES", 0)


@pytest.mark.usefixtures("large")
def test_one_ahead(watched: tuple[Dataset, Watched]) -> None:
    """While one large shard is decoded the next is fetched, on its own thread, and no further."""
    dataset, store = watched
    keys = [shard.key for shard in dataset.shards()]
    samples: Iterator[object] = iter(dataset)
    next(samples)
    assert store.second.wait(60)  # asked for although nobody wants its samples yet
    samples = itertools.chain([None], samples)
    for number, shard in enumerate(dataset.shards()):
        for _ in shard.samples:
            next(samples)
            assert len(store.asked) <= number + 2
    assert store.asked == keys
    assert threading.get_ident() not in store.threads


def test_small_ones_are_fetched_together(uri_of_dataset: str) -> None:
    """Small shards are fetched at the same time: three are asked for before one is there."""
    store = MeetingStore(uri_of_dataset)
    dataset = Dataset(store)
    assert len(dataset.shards()) >= 3
    assert len(list(dataset)) == 120
    assert store.met


@pytest.mark.usefixtures("large")
def test_at_most_two_in_memory(watched: tuple[Dataset, Watched]) -> None:
    """However many large shards there are, two are held at a time, and none at the end."""
    dataset, store = watched
    assert len(dataset.shards()) >= 3
    kept = [sample.image for sample in dataset]
    assert len(kept) == 120
    assert store.most_alive == 2
    assert not [ref for ref in store.alive if ref() is not None]


def test_an_iterator_that_is_dropped(watched: tuple[Dataset, Watched]) -> None:
    """It leaves no thread behind."""
    before = set(threading.enumerate())
    samples: Iterator[object] = iter(watched[0])
    next(samples)
    assert set(threading.enumerate()) > before
    del samples
    assert set(threading.enumerate()) == before


def test_two_iterators(watched: tuple[Dataset, Watched]) -> None:
    """Two walks at the same time do not disturb each other."""
    dataset, _ = watched
    pairs = list(zip(dataset, dataset, strict=True))
    assert len(pairs) == 120
    assert all(one.image == other.image for one, other in pairs)


def test_a_shard_that_is_gone(changeable: MemoryStore) -> None:
    """What was read before comes first, then the store's own error."""
    dataset = dataprep.open(changeable.uri)
    first, second, *_ = dataset.shards()
    changeable.delete(second.key)
    samples = iter(dataset)
    assert len(list(itertools.islice(samples, len(first)))) == len(first)
    with pytest.raises(ObjectNotFound, match=second.key):
        next(samples)


def test_a_damaged_shard(changeable: MemoryStore) -> None:
    """The samples before the damage come first, then its place."""
    dataset = dataprep.open(changeable.uri)
    place = dataset.place(5)
    data = bytearray(changeable.get(place.key))
    data[place.offset] ^= 1
    changeable.put(place.key, data)
    samples = iter(dataset)
    assert len(list(itertools.islice(samples, 5))) == 5
    with pytest.raises(CorruptRecord, match=f"record 5 at byte {place.offset}"):
        next(samples)


def test_pickled(uri_of_dataset: str) -> None:
    """A shard crosses to a worker process, in little space, and opens the data set there."""
    shard = dataprep.open(uri_of_dataset).shards()[1]
    data = pickle.dumps(shard)
    assert len(data) < 3000
    copy = pickle.loads(data)
    assert copy == shard
    assert [sample.label for sample in copy] == [sample.label for sample in shard]


@pytest.mark.parametrize("twice", [True, False], ids=["longer", "empty"])
def test_a_shard_of_another_number_of_records_is_not_taken_for_whole(
    changeable: MemoryStore, twice: bool
) -> None:
    """Cut just where a record ends it reads well, and samples would lack without a word."""
    with dataprep.open(changeable.uri, format="tfrecord") as found:
        shard = found.shards()[0]
        changeable.put(shard.key, changeable.get(shard.key) * 2 * twice)
        read = iter(shard)
        assert len(list(itertools.islice(read, len(shard) * twice))) == len(shard) * twice
        with pytest.raises(CorruptRecord, match=rf"{shard.key}: .* tells of {len(shard)}; run"):
            next(read)
