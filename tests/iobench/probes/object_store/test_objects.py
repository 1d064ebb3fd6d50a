"""The objects that trials read and write."""

from __future__ import annotations

import zlib
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.stores.memory import MemoryStore
from iobench.probes.object_store import objects as probe_objects

pytestmark = pytest.mark.slow

BYTES = st.integers(1, 10**9)


@given(BYTES, BYTES)
def test_objects_to_read_are_bounded(object_bytes: int, pool_bytes: int) -> None:
    """There is at least one object, and no more than the pool may hold."""
    objects = probe_objects.whole_objects(object_bytes, pool_bytes)
    assert objects.bytes == object_bytes
    assert objects.count == 1 or objects.count * object_bytes <= pool_bytes
    assert 1 <= objects.count <= 64


@given(BYTES, BYTES, st.integers(0, 10**6))
def test_ranges_lie_inside_their_objects(length: int, pool_bytes: int, number: int) -> None:
    """Every range ends within its object."""
    objects = probe_objects.ranged_objects(length, pool_bytes)
    start = probe_objects.range_offset(number, objects.bytes, length)
    assert 0 <= start <= objects.bytes - length


def test_ranges_spread_over_the_object() -> None:
    """A thousand ranges start in every tenth of an object about equally often."""
    offsets = [probe_objects.range_offset(number, 10_000_000, 5_000) for number in range(1000)]
    tenths = Counter(offset // 1_000_000 for offset in offsets)
    assert len(tenths) == 10
    assert all(90 <= count <= 110 for count in tenths.values())


@given(BYTES, BYTES, st.integers(1, 1024))
def test_the_written_bytes_are_bounded(
    object_bytes: int, pool_bytes: int, connections: int
) -> None:
    """All streams together write no more than the pool may hold, or one key each."""
    ring = probe_objects.keys_per_stream(object_bytes, pool_bytes, connections)
    assert ring == 1 or ring * connections * object_bytes <= pool_bytes


def test_content_is_the_same_always_and_cannot_be_compressed() -> None:
    """Bytes depend on size and number only, and differ between objects."""
    content = probe_objects.random_body(100_000, 3)
    assert content == probe_objects.random_body(100_000, 3)
    assert content != probe_objects.random_body(100_000, 4)
    assert len(zlib.compress(content)) >= len(content) == 100_000
    assert len(set(probe_objects.bodies_to_write(1_000))) == 4


def test_equal_objects_are_not_put_again() -> None:
    """Only missing objects, and those of another size, are put."""
    store = MemoryStore("memory://pool-test")
    objects = probe_objects.Objects(1_000, 3)
    store.put(objects.key(1), b"short")
    kept = store.put(objects.key(2), b"x" * 1_000)
    probe_objects.put_missing(store, objects)
    assert store.get(objects.key(0)) == probe_objects.random_body(1_000, 0)
    assert store.get(objects.key(1)) == probe_objects.random_body(1_000, 1)
    assert store.head(objects.key(2)).etag == kept.etag
