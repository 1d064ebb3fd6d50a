"""Tests of dataprep.stores.memory."""

from __future__ import annotations

import hashlib
import pickle
import secrets

import pytest

from dataprep.errors import ObjectNotFound
from dataprep.stores import open_store
from dataprep.stores.memory import MemoryStore


@pytest.fixture
def uri() -> str:
    """A name that no other test uses."""
    return f"memory://{secrets.token_hex(6)}"


def test_one_name_is_one_store(uri: str) -> None:
    """Stores of one name share their objects, those of another name do not."""
    open_store(uri).put("key", b"data")
    assert MemoryStore(uri).get("key") == b"data"
    assert list(MemoryStore(uri + "/other").list()) == []


def test_pickling_in_one_process_shares(uri: str) -> None:
    """A pickled store is the same store, as threads of one process use it."""
    store = MemoryStore(uri)
    pickle.loads(pickle.dumps(store)).put("key", b"data")
    assert store.get("key") == b"data"


def test_the_etag_is_the_md5(uri: str) -> None:
    """Put, head and list give the MD5 of the bytes, as S3 does."""
    store = MemoryStore(uri)
    md5 = hashlib.md5(b"data").hexdigest()
    assert store.put("key", b"data").etag == md5
    assert store.head("key").etag == md5
    assert [info.etag for info in store.list()] == [md5]


def test_deleting_while_listing_is_no_error(uri: str) -> None:
    """An object deleted by another thread does not end a listing."""
    store = MemoryStore(uri)
    for name in "abc":
        store.put(name, b"x")
    listing = store.list()
    next(listing)
    store.delete("c")
    assert {info.key for info in listing} <= {"a", "b", "c"}


def test_the_error_names_key_and_store_on_one_line(uri: str) -> None:
    """A missing key is named together with the store, a line break within it escaped."""
    with pytest.raises(ObjectNotFound) as caught:
        MemoryStore(uri).get("two\nlines")
    assert str(caught.value) == f"no such object: 'two\\nlines' in {uri}"
