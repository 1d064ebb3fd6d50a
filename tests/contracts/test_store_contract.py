"""Every store in ``dataprep.stores`` passes this suite."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from dataprep.errors import ObjectNotFound
from dataprep.stores import Buffer, Store
from dataprep.stores.memory import MemoryStore
from dataprep.stores.protocol import Close, GetVersioned, KeepsLocks
from dataprep.stores.s3 import S3Store

DATA = bytes(range(256)) * 5
KEYS = {
    "plain": "train-00000-of-00001",
    "nested": "a/b/c.rec",
    "spaces": "a folder/ two  spaces .jpg",
    "unicode": "Füße/日本語/🐟.jpg",
    "reserved": "100%/a+b&c=d?e#f%2F.jpg",
    "quotes": 'it\'s "<quoted>" \\x.jpg',
    "tab": "tab\there",
    "newline": "new\nline.jpg",
    "surrogate": "caf\udce9.jpg",
}


def keys(store: Store, prefix: str = "") -> list[str]:
    """The listed keys, sorted."""
    return sorted(info.key for info in store.list(prefix))


def test_versions_tell_one_object_from_the_next(store: Store) -> None:
    """A full or partial read returns the version of the object that is stored."""
    if not isinstance(store, GetVersioned):
        pytest.skip("the store returns no versions")
    store.put("key", DATA)
    first = store.version("key")
    assert first
    assert store.get_versioned("key") == (DATA, first)
    assert store.get_versioned("key", 5, 7) == (DATA[5:12], first)
    assert store.get_versioned("key", 5) == (DATA[5:], first)
    assert store.version("key") == first
    store.put("key", DATA[::-1])
    assert store.version("key") != first
    assert store.get_versioned("key", 0, 3) == (DATA[::-1][:3], store.version("key"))
    store.delete("key")
    for ask in (store.version, store.get_versioned):
        with pytest.raises(ObjectNotFound):
            ask("key")


def test_objects_of_one_folder_may_be_written_and_deleted_at_once(store: Store) -> None:
    """A store that removes empty folders makes them again, so that no writer fails."""

    def write_and_delete(thread: int) -> None:
        for _ in range(50):
            store.put(f"folder/{thread}", DATA)
            store.delete(f"folder/{thread}")
            store.create("folder/common", DATA)
            store.delete("folder/common")

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(write_and_delete, range(4)))
    assert keys(store) == []


@pytest.mark.parametrize(
    "wrap",
    [bytes, bytearray, memoryview, lambda data: memoryview(data).cast("I")],
    ids=["bytes", "bytearray", "memoryview", "memoryview-of-words"],
)
def test_any_buffer_is_stored_byte_by_byte(store: Store, wrap: Callable[[bytes], Buffer]) -> None:
    """Bytes, byte arrays and views of any item size are stored with the same bytes."""
    assert store.put("put", wrap(DATA)).bytes == len(DATA)
    assert store.create("created", wrap(DATA)) is True
    for key in ("put", "created"):
        assert store.get(key) == DATA
        assert store.head(key).bytes == len(DATA)


def test_a_stored_object_is_a_copy(store: Store) -> None:
    """Changing a buffer after it was stored does not change the object."""
    buffer = bytearray(b"before")
    store.put("key", buffer)
    buffer[:] = b"after!"
    assert store.get("key") == b"before"


def test_put_says_key_and_size_and_replaces(store: Store) -> None:
    """Put returns key and size. A second, shorter object replaces the first in each operation."""
    assert isinstance(store, Store)
    for data in (DATA, b"short"):
        for info in (store.put("a/key", data), store.head("a/key")):
            assert (info.key, info.bytes, info.problem) == ("a/key", len(data), None)
        assert store.get("a/key") == data
    assert keys(store) == ["a/key"]


def test_an_empty_object_is_an_object(store: Store) -> None:
    """An empty object is stored, listed and read, in full and by range, like any other object."""
    store.put("empty", b"")
    assert store.get("empty") == b""
    assert store.get_range("empty", 0, 10) == b""
    assert store.head("empty").bytes == 0
    assert [(info.key, info.bytes) for info in store.list()] == [("empty", 0)]


RANGES = {
    "all": (0, len(DATA), DATA),
    "first": (0, 1, DATA[:1]),
    "middle": (100, 50, DATA[100:150]),
    "last": (len(DATA) - 1, 1, DATA[-1:]),
    "over the end": (len(DATA) - 3, 10, DATA[-3:]),
    "at the end": (len(DATA), 10, b""),
    "past the end": (len(DATA) + 7, 10, b""),
    "nothing": (5, 0, b""),
}


def test_a_range_ends_where_the_object_ends(store: Store) -> None:
    """A range has the requested bytes, and fewer only at the end of the object."""
    store.put("key", DATA)
    for name, (offset, length, expected) in RANGES.items():
        assert store.get_range("key", offset, length) == expected, name


def test_create_stores_only_once(store: Store) -> None:
    """Create does not replace an existing object, even an equal one.

    A deleted key is free again.
    """
    assert store.create("folder/key", b"first") is True
    for data in (b"second", b"first"):
        assert store.create("folder/key", data) is False
    assert store.get("folder/key") == b"first"
    store.delete("folder/key")
    assert store.create("folder/key", b"second") is True
    assert store.get("folder/key") == b"second"


@pytest.mark.parametrize("how", ["create", "replace"])
def test_of_several_writers_one_wins(store: Store, how: str) -> None:
    """Of several threads that create one key or replace one version, exactly one succeeds."""
    version: list[str] = []
    if how == "replace":
        if not isinstance(store, KeepsLocks):
            pytest.skip("the store keeps no locks")
        store.put("key", b"before")
        version = [store.version("key")]
    together = Barrier(4, timeout=30)

    def write(number: int) -> bool:
        together.wait()
        won: bool = getattr(store, how)("key", b"%d" % number, *version)
        return won

    with ThreadPoolExecutor(4) as pool:
        written = list(pool.map(write, range(4)))
    assert written.count(True) == 1
    assert store.get("key") == b"%d" % written.index(True)


def test_only_the_version_that_was_read_is_replaced(store: Store) -> None:
    """Replace succeeds each time with the current version, and never with another version."""
    if not isinstance(store, KeepsLocks):
        pytest.skip("the store keeps no locks")
    store.put("folder/key", b"0")
    for content in (b"1", b"2"):
        before = store.version("folder/key")
        assert store.replace("folder/key", content, before) is True
        assert store.replace("folder/key", b"other", before) is False
        assert store.get("folder/key") == content
    before = store.version("folder/key")
    store.delete("folder/key")
    assert store.replace("folder/key", b"3", before) is False
    assert keys(store) == []


def test_the_age_of_an_object_counts_from_when_it_was_written(store: Store) -> None:
    """The age is in seconds by the store's clock, which may be truncated to whole seconds."""
    if not isinstance(store, KeepsLocks):
        pytest.skip("the store keeps no locks")
    store.put("key", DATA)
    assert -2.0 < store.age_s("key") < 3600.0
    with pytest.raises(ObjectNotFound):
        store.age_s("missing")


def test_list_gives_every_key_and_size(store: Store) -> None:
    """A listing has each object once, with its size. An empty store lists nothing."""
    assert keys(store) == keys(store, "no/such/") == []
    for number in range(12):
        store.put(f"folder-{number % 3}/{number}", bytes(number))
    ordered = sorted((info.key, info.bytes, info.problem) for info in store.list())
    assert ordered == sorted((f"folder-{n % 3}/{n}", n, None) for n in range(12))


PREFIXES = {
    "": ["a/b/1", "a/b/2", "a/bc", "ab", "c"],
    "a": ["a/b/1", "a/b/2", "a/bc", "ab"],
    "a/": ["a/b/1", "a/b/2", "a/bc"],
    "a/b": ["a/b/1", "a/b/2", "a/bc"],
    "a/b/": ["a/b/1", "a/b/2"],
    "a/b/2": ["a/b/2"],
    "a/b/2/": [],
    "b": [],
    "c": ["c"],
    "c/": [],
}


def test_a_prefix_is_a_beginning_of_keys(store: Store) -> None:
    """A prefix selects the keys that begin with it: a folder, or part of a name."""
    for key in PREFIXES[""]:
        store.put(key, b"x")
    assert {prefix: keys(store, prefix) for prefix in PREFIXES} == PREFIXES


def test_delete_removes_once_and_again(store: Store) -> None:
    """Deleting a missing key, a folder or a path below an object removes nothing and succeeds."""
    store.put("a/key", DATA)
    store.put("a/other", DATA)
    for key in ("a/key", "a/key", "never/there", "a", "a/other/below"):
        store.delete(key)
    assert keys(store) == ["a/other"]
    with pytest.raises(ObjectNotFound):
        store.get("a/key")


@pytest.mark.parametrize(
    "ask",
    [
        lambda store, key: store.get(key),
        lambda store, key: store.get_range(key, 0, 10),
        lambda store, key: store.get_range(key, 0, 0),
        lambda store, key: store.head(key),
    ],
    ids=["get", "range", "empty-range", "head"],
)
def test_a_missing_key_is_not_found(store: Store, ask: Callable[[Store, str], object]) -> None:
    """A missing key, a folder and a path below an object raise ObjectNotFound with the key."""
    store.put("a/key", DATA)
    for key in ("missing", "a/missing", "a", "a/key/below"):
        with pytest.raises(ObjectNotFound, match=key) as caught:
            ask(store, key)
        assert isinstance(caught.value, FileNotFoundError)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS.keys())
def test_odd_keys_survive(store: Store, key: str, request: pytest.FixtureRequest) -> None:
    """Spaces, Unicode, reserved and control characters in a key are returned unchanged."""
    if "s3" in request.node.callspec.params.values() and key == KEYS["newline"]:
        pytest.skip("moto's server has no route for a newline")
    if isinstance(store, S3Store) and key == KEYS["surrogate"]:
        pytest.skip("keys on S3 are UTF-8")
    store.put(key, DATA)
    assert keys(store) == [key]
    assert store.get(key) == DATA
    assert store.get_range(key, 3, 4) == DATA[3:7]
    assert store.head(key).key == key
    assert store.create(key, b"other") is False
    store.delete(key)
    assert keys(store) == []


def test_a_pickled_store_is_the_same_store(store: Store) -> None:
    """A pickled store, as in a worker, has the same objects, which are not part of the pickle."""
    store.put("before", DATA)
    store.put("large", bytes(100_000))
    pickled = pickle.dumps(store)
    assert len(pickled) < 5_000
    copy = pickle.loads(pickled)
    assert copy.uri == store.uri
    assert copy.get("before") == DATA
    copy.put("after", b"copy")
    assert store.get("after") == b"copy"


def test_threads_share_a_store(store: Store) -> None:
    """Objects that several threads store at once are all stored, each with its own bytes."""
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: store.put(f"k/{number}", b"%d" % number), range(24)))
        read = list(pool.map(lambda number: store.get(f"k/{number}"), range(24)))
    assert read == [b"%d" % number for number in range(24)]


def test_prepare_and_tidy_leave_objects_alone(store: Store) -> None:
    """Preparing and tidying add and remove no object, in any order and number."""
    store.prepare()
    store.put("a/key", DATA)
    store.tidy()
    store.prepare()
    store.tidy()
    assert [(info.key, info.bytes) for info in store.list()] == [("a/key", len(DATA))]
    assert store.get("a/key") == DATA
    store.put("a/later", DATA)
    assert keys(store) == ["a/key", "a/later"]


def test_free_space_is_a_number_or_unknown(store: Store) -> None:
    """Free space is a positive number of bytes, or None if the store does not know it."""
    free = store.free_bytes()
    assert free is None or (free > 0 and not isinstance(store, MemoryStore | S3Store))


def test_the_uri_is_one_line_without_credentials(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The URI names the root in one line, and contains no credentials and no query."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "topsecret")
    assert store.uri
    assert "@" not in store.uri
    assert "topsecret" not in store.uri + repr(pickle.dumps(store))
    assert store.uri == store.uri.strip().splitlines()[0]


def test_a_store_that_was_closed_is_still_of_use(store: Store) -> None:
    """A closed store that has connections opens new ones with the next request."""
    store.put("a/key", DATA)
    if isinstance(store, Close):
        store.close()
        store.close()
    assert store.get("a/key") == DATA
    assert store.get_range("a/key", 5, 10) == DATA[5:15]
