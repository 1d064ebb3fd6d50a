"""Tests of dataprep.archives.handles."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dataprep.archives.handles import Handle, Handles, Stamp, open_handle
from dataprep.errors import ObjectNotFound
from dataprep.stores import Store
from dataprep.stores.local import LocalStore
from dataprep.stores.memory import MemoryStore

DATA = bytes(range(256)) * 10


@pytest.fixture(params=["file", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """A store with one object."""
    opened: Store = (
        LocalStore(str(tmp_path))
        if request.param == "file"
        else MemoryStore(f"memory://{tmp_path}")
    )
    opened.put("deep/key", DATA)
    return opened


def test_ranges(store: Store) -> None:
    """Any range reads as the bytes there, shorter where the object ends."""
    handle = open_handle(store, "deep/key")
    assert handle.stamp.bytes == len(DATA)
    for offset, length in ((0, 10), (2550, 100), (7, 0), (9999, 5)):
        assert handle.fetch(offset, length) == DATA[offset : offset + length]


def test_stamps_change_with_the_content(store: Store) -> None:
    """Other bytes under the same key have another stamp; the same ones, unchanged, the same."""
    before = open_handle(store, "deep/key").stamp
    assert open_handle(store, "deep/key").stamp == before
    store.put("deep/key", DATA[::-1])
    assert open_handle(store, "deep/key").stamp != before


def test_what_is_not_there(store: Store) -> None:
    """A missing object, and what lies below a file, are said to be missing."""
    for key in ("nothing", "deep/key/below"):
        with pytest.raises(ObjectNotFound):
            open_handle(store, key)


def test_only_regular_files_are_opened(tmp_path: Path) -> None:
    """A folder is none of ours, nor a named pipe, whose other end nobody waits for."""
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for key in ("folder", "pipe"):
        with pytest.raises(ObjectNotFound, match="not a regular file"):
            open_handle(LocalStore(str(tmp_path)), key)


def test_a_file_that_was_replaced_is_still_read(tmp_path: Path) -> None:
    """An open file goes on as what it was, whatever takes its name."""
    store = LocalStore(str(tmp_path))
    store.put("key", DATA)
    handle = open_handle(store, "key")
    store.put("key", b"other")
    assert handle.fetch(0, 5) == DATA[:5]


def test_the_last_few_stay_open() -> None:
    """Handles are opened once while they are in use, and dropped when others were used since."""
    opened: list[str] = []

    class One:
        stamp = Stamp(1, "")

        def fetch(self, offset: int, length: int) -> bytes:
            return b""

    def open_one(key: str) -> Handle:
        opened.append(key)
        return One()

    handles = Handles(open_one)
    for _ in range(3):
        assert isinstance(handles["a"], One)
    assert opened == ["a"]
    for number in range(64):
        assert isinstance(handles[str(number)], One)
    assert isinstance(handles["63"], One)
    assert opened.count("63") == 1
    assert isinstance(handles["a"], One)
    assert opened.count("a") == 2


def test_descriptors_are_closed(tmp_path: Path) -> None:
    """A handle that nobody holds closes its file."""
    store = LocalStore(str(tmp_path))
    store.put("key", DATA)
    before = len(list(Path("/proc/self/fd").iterdir()))
    handle = open_handle(store, "key")
    assert len(list(Path("/proc/self/fd").iterdir())) == before + 1
    del handle
    assert len(list(Path("/proc/self/fd").iterdir())) == before
