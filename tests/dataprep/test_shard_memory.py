"""Memory in which shards grow."""

from __future__ import annotations

import random
from weakref import WeakValueDictionary

import pytest

from dataprep import shard_memory
from dataprep.shard_memory import ShardMemory


@pytest.fixture
def mapped(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of maps that are made; none are kept that others left."""
    monkeypatch.setattr(shard_memory, "_KEPT", WeakValueDictionary())
    sizes: list[int] = []
    real = shard_memory._mapped

    def seen(size: int) -> object:
        sizes.append(size)
        return real(size)

    monkeypatch.setattr(shard_memory, "_mapped", seen)
    return sizes


def test_memory_keeps_what_is_appended() -> None:
    """Whatever kind of buffer it comes in."""
    memory = ShardMemory()
    for part in (b"one", bytearray(b"two"), memoryview(b"three")):
        memory.write(part)
    assert bytes(memory.view()) == b"onetwothree"
    assert bytes(memory.view(3, 6)) == b"two"
    assert len(memory) == 11


def test_memory_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Past what it began with, also by one write far past it; views of before stay as they were."""
    monkeypatch.setattr(shard_memory, "_FIRST_BYTES", 4096)
    chance = random.Random(0)
    memory, expected, views = ShardMemory(), b"", []
    for size in (4000, 90, 20_000, 0, 50_000):
        part = chance.randbytes(size)
        memory.write(part)
        expected += part
        views.append((memory.view(), expected))
    assert all(bytes(view) == content for view, content in views)


def test_what_one_leaves_another_grows_in(mapped: list[int]) -> None:
    """Empty at first, and with nothing behind its end but what it was itself given."""
    one, beside = ShardMemory(), ShardMemory()
    one.write(b"before")
    beside.write(b"beside")
    one.leave()
    other = ShardMemory()
    assert len(mapped) == 2
    assert (len(other), bytes(other.view())) == (0, b"")
    other.write(b"a")
    assert (bytes(other.view()), bytes(beside.view())) == (b"a", b"beside")


def test_no_two_grow_in_the_same(mapped: list[int]) -> None:
    """What was left is given away once."""
    one = ShardMemory()
    one.leave()
    two, three = ShardMemory(), ShardMemory()
    two.write(b"two")
    three.write(b"three")
    assert (bytes(two.view()), bytes(three.view())) == (b"two", b"three")
    assert len(mapped) == 2


def test_an_idle_process_keeps_none(mapped: list[int]) -> None:
    """What was left goes with the last that grew beside it."""
    one, beside = ShardMemory(), ShardMemory()
    one.leave()
    del one, beside
    ShardMemory()
    assert len(mapped) == 3
