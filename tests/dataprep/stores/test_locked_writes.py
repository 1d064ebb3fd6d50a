"""Writes check the lock of their run, and replace only objects that were compared."""

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

OWN_BYTES, OTHER_BYTES, OLD_BYTES = b"of this run", b"of another run", b"of an earlier run"
LARGE_OBJECT = bytes(9 * 2**20)


@pytest.fixture(params=["memory", "folder"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """An empty store, with ETags or without."""
    if request.param == "memory":
        return MemoryStore(f"memory://{secrets.token_hex(6)}")
    return LocalStore(str(tmp_path / "out"))


def lock_for(checks: int, after_last: Callable[[], object] = lambda: None) -> LockCheck:
    """A lock that is lost after a number of checks. ``after_last`` is called at the last check."""
    done = 0

    def check_lock() -> None:
        nonlocal done
        done += 1
        if done > checks:
            raise LeaseLost("another run has taken over")
        if done == checks:
            after_last()

    return check_lock


def test_nothing_is_created_without_the_lock(store: Store) -> None:
    """The lock is checked before the first attempt."""
    with pytest.raises(LeaseLost):
        put_under_lock(store, "key", OWN_BYTES, lock_for(0))
    with pytest.raises(ObjectNotFound):
        store.head("key")


def test_nothing_is_replaced_after_the_lock_is_lost(store: Store) -> None:
    """The lock is checked again after the stored bytes were compared."""
    store.put("key", OLD_BYTES)
    with pytest.raises(LeaseLost):
        put_under_lock(store, "key", OWN_BYTES, lock_for(1))
    assert store.get("key") == OLD_BYTES


def test_only_the_version_that_was_compared_is_replaced(store: Store) -> None:
    """Another run takes over and writes just after the lock was checked for the second time."""
    store.put("key", OLD_BYTES)
    with pytest.raises(LeaseLost):
        put_under_lock(store, "key", OWN_BYTES, lock_for(2, lambda: store.put("key", OTHER_BYTES)))
    assert store.get("key") == OTHER_BYTES


@pytest.mark.parametrize("position", [0, len(LARGE_OBJECT) - 1], ids=["first", "last"])
def test_different_bytes_of_the_same_size_are_replaced(store: Store, position: int) -> None:
    """All bytes are compared, also those of a large object."""
    different = bytearray(LARGE_OBJECT)
    different[position] = 1
    store.put("key", bytes(different))
    put_under_lock(store, "key", LARGE_OBJECT, lock_for(2))
    assert store.get("key") == LARGE_OBJECT


def test_equal_bytes_are_not_written_again(store: Store) -> None:
    """A resumed run confirms an object that an earlier run has stored."""
    assert isinstance(store, MemoryStore | LocalStore)
    store.put("key", LARGE_OBJECT)
    version = store.version("key")
    put_under_lock(store, "key", LARGE_OBJECT, lock_for(1))
    assert store.version("key") == version
