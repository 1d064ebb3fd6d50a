"""Writes of a run that may lose its lock: when they ask for it, and what they replace."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path

import pytest

from dataprep.errors import LeaseLost, ObjectNotFound
from dataprep.stores import Store
from dataprep.stores.local import LocalStore
from dataprep.stores.locked_writes import LockCheck, put_under_lock
from dataprep.stores.memory import MemoryStore

MINE, THEIRS, OLD = b"mine, as I make it", b"theirs, as they do", b"old, from long ago"
LONG = bytes(9 * 2**20)


@pytest.fixture(params=["memory", "folder"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """An empty store, with ETags or without."""
    if request.param == "memory":
        return MemoryStore(f"memory://{secrets.token_hex(6)}")
    return LocalStore(str(tmp_path / "out"))


def lock(calls: int, then: Callable[[], object] = lambda: None) -> LockCheck:
    """A lock that is held for so many calls; ``then`` happens as the last of them returns."""
    asked = 0

    def check_lock() -> None:
        nonlocal asked
        asked += 1
        if asked > calls:
            raise LeaseLost("another run has taken over")
        if asked == calls:
            then()

    return check_lock


def test_nothing_is_created_without_the_lock(store: Store) -> None:
    """The lock is asked for before the first attempt."""
    with pytest.raises(LeaseLost):
        put_under_lock(store, "key", MINE, lock(0))
    with pytest.raises(ObjectNotFound):
        store.head("key")


def test_nothing_is_replaced_once_the_lock_is_lost(store: Store) -> None:
    """It is asked for again after the stored bytes were compared."""
    store.put("key", OLD)
    with pytest.raises(LeaseLost):
        put_under_lock(store, "key", MINE, lock(1))
    assert store.get("key") == OLD


def test_only_the_version_that_was_compared_is_replaced(store: Store) -> None:
    """Another run takes over and writes just after the lock was asked for the second time."""
    store.put("key", OLD)
    with pytest.raises(LeaseLost):
        put_under_lock(store, "key", MINE, lock(2, lambda: store.put("key", THEIRS)))
    assert store.get("key") == THEIRS


@pytest.mark.parametrize("byte", [0, len(LONG) - 1], ids=["first", "last"])
def test_other_bytes_of_the_same_size_are_replaced(store: Store, byte: int) -> None:
    """All bytes are compared, also those of a large object."""
    other = bytearray(LONG)
    other[byte] = 1
    store.put("key", bytes(other))
    put_under_lock(store, "key", LONG, lock(2))
    assert store.get("key") == LONG


def test_equal_bytes_are_not_written_again(store: Store) -> None:
    """A resumed run confirms what an earlier one has stored."""
    assert isinstance(store, MemoryStore | LocalStore)
    store.put("key", LONG)
    version = store.version("key")
    put_under_lock(store, "key", LONG, lock(1))
    assert store.version("key") == version
