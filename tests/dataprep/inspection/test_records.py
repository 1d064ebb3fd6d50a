"""Records by number."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dataprep
from dataprep.dataset import Dataset
from dataprep.errors import ConfigError
from dataprep.inspection.records import (
    OutputRecords,
    ShardRecords,
    fetch,
    fetch_some,
    spread_evenly,
)
from dataprep.inspection.target import ShardTarget, find_target
from dataprep.stores.memory import MemoryStore
from tests.dataprep.inspection.held import Counting


def shard_records(path: Path) -> ShardRecords:
    """Those of the shard at ``path``."""
    target = find_target(path)
    assert isinstance(target, ShardTarget)
    return ShardRecords(target)


@given(st.integers(0, 3000), st.integers(1, 200))
def test_spread(count: int, wanted: int) -> None:
    """As many as were wanted, or all, each once, in order, from one end to the other."""
    found = spread_evenly(count, wanted)
    assert len(found) == min(count, wanted)
    assert found == sorted(set(found))
    assert all(0 <= number < count for number in found)
    if count > wanted:
        gaps = {after - before for before, after in pairwise(found)}
        assert not gaps or max(gaps) - min(gaps) <= 1


def test_of_an_output(folder: Path, form: str) -> None:
    """Record N of an output is its sample N, with what the table of samples says of it."""
    dataset = dataprep.open(folder, format=form)
    records = OutputRecords(dataset)
    assert len(records) == len(dataset)
    shards = dataset.shards()
    for number in (0, 1, shards[1].samples.start, len(dataset) - 1):
        found = fetch(records, number)
        assert found.image == dataset[number].image
        assert found.sample == number
        assert found.known["source"] == dataset.written["source"][number]
        shard = next(shard for shard in shards if number in shard.samples)
        assert found.uri.endswith(shard.key)
        assert found.number == number - shard.samples.start


def test_one_range_request(memory: MemoryStore, form: str) -> None:
    """Of the shards, exactly the record is read."""
    store = Counting(memory.uri)
    records = OutputRecords(Dataset(store, "train", form))
    found = fetch(records, 40)
    assert store.ranges == [(found.uri.removeprefix(f"{memory.uri}/"), found.offset, found.length)]
    assert not [key for key in store.whole if key.startswith((f"{form}/", "index/"))]


def test_of_our_shard(folder: Path, shard: Path, form: str) -> None:
    """Record N of a shard of ours is the sample of its receipt."""
    dataset = dataprep.open(folder, format=form)
    records = shard_records(shard)
    assert len(records) == len(dataset.shards()[0])
    assert fetch(records, 7).image == dataset[7].image
    assert fetch(records, 7).known["source"] == dataset.written["source"][7]


def test_of_anybodys_shard(folder: Path, stray: Path, form: str) -> None:
    """Record N of any other shard is found by walking there."""
    dataset = dataprep.open(folder, format=form)
    records = shard_records(stray)
    found = fetch(records, 7)
    assert (found.image, found.known) == (dataset[7].image, {})
    assert len(records) == len(dataset.shards()[0])
    images = [record.image for record in fetch_some(records, range(len(records)))]
    assert images == [sample.image for sample in dataset.shards()[0]]


@pytest.mark.parametrize("number", [-1, 10_000])
def test_no_such_record(folder: Path, shard: Path, stray: Path, number: int) -> None:
    """A number that is not there is a wrong request, and counts from 0 are explained."""
    output = OutputRecords(dataprep.open(folder))
    for records in (output, shard_records(shard), shard_records(stray)):
        with pytest.raises(ConfigError, match=f"--record {number}.*count(ed)? from 0"):
            fetch(records, number)


def test_a_damaged_payload_among_several(shard: Path) -> None:
    """A record whose framing or checksum is wrong keeps its place, and loses its image."""
    records = shard_records(shard)
    place = records.place(2)[1]
    data = bytearray(shard.read_bytes())
    data[place.offset] ^= 1
    shard.write_bytes(data)
    first, second, third = fetch_some(records, [1, 2, 3])
    assert first.image
    assert third.image
    assert second.image is None
    assert f"record 2 at byte {place.offset}" in second.damage
