"""A snapshot reads objects of a split from any store."""

from __future__ import annotations

import secrets
from typing import Any

from dataprep.output.snapshot import Snapshot
from dataprep.stores.memory import MemoryStore


class PlainStore:
    """A store without versions."""

    def __init__(self) -> None:
        self._store = MemoryStore(f"memory://{secrets.token_hex(6)}")
        self.uri = self._store.uri
        self.put = self._store.put
        self.get = self._store.get
        self.get_range = self._store.get_range


def test_a_range_of_an_object_in_a_store_without_versions() -> None:
    """Bytes are read from the offset, to the end or with a length, and have no version."""
    store: Any = PlainStore()
    store.put("key", b"abcdef")
    snapshot = Snapshot(store, "train", "", "")
    assert snapshot.get_unconfirmed("key", 0, None) == (b"abcdef", "")
    assert snapshot.get_unconfirmed("key", 2, None) == (b"cdef", "")
    assert snapshot.get_unconfirmed("key", 2, 3) == (b"cde", "")
