"""Tests of dataprep.stores.past_cache."""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from dataprep.stores.past_cache import write_all

SIZE = 5 * 2**20 + 1234


@pytest.fixture
def pages() -> Iterator[memoryview]:
    """Memory that begins at a page, filled with something that does not repeat by pages."""
    with mmap.mmap(-1, SIZE) as memory:
        memory.write(os.urandom(SIZE))
        view = memoryview(memory)
        yield view
        view.release()


@pytest.fixture
def modes(monkeypatch: pytest.MonkeyPatch) -> list[tuple[bool, int]]:
    """Each write that is tried: whether past the cache, and of how many bytes."""
    found = []
    write = os.write

    def seen(descriptor: int, data: memoryview) -> int:
        flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
        found.append((bool(flags & os.O_DIRECT), len(data)))
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", seen)
    return found


def written(path: Path, data: memoryview | bytes) -> bytes:
    """What a file holds after ``write_all``, and that its descriptor is as before."""
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY)
    try:
        flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
        write_all(descriptor, data)
        assert fcntl.fcntl(descriptor, fcntl.F_GETFL) == flags
    finally:
        os.close(descriptor)
    return path.read_bytes()


@pytest.mark.skipif(not hasattr(os, "O_DIRECT"), reason="the system has no O_DIRECT")
def test_whole_blocks_go_past_the_cache_and_the_rest_the_usual_way(
    tmp_path: Path, pages: memoryview, modes: list[tuple[bool, int]]
) -> None:
    """Page-aligned memory is offered to the disk but for its last bytes, which are no block."""
    assert written(tmp_path / "file", pages) == pages
    whole = SIZE // 4096 * 4096
    assert modes[0] == (True, whole)
    assert modes[-1] == (False, SIZE - whole) or (False, SIZE) in modes  # no file system for it


@pytest.mark.parametrize("start", [1, 512, 4095])
def test_memory_that_begins_at_no_page_is_written_all_the_same(
    tmp_path: Path, pages: memoryview, start: int
) -> None:
    """Whether the file system takes such memory or refuses it, the bytes arrive."""
    assert written(tmp_path / "file", pages[start:]) == pages[start:]


def test_small_files_are_written_the_usual_way(
    tmp_path: Path, pages: memoryview, modes: list[tuple[bool, int]]
) -> None:
    """Below 4 MiB nothing else is tried."""
    assert written(tmp_path / "file", pages[:100_000]) == pages[:100_000]
    assert modes == [(False, 100_000)]


@pytest.mark.parametrize("number", [errno.EINVAL, errno.EOPNOTSUPP])
def test_a_file_system_that_refuses_midway_gets_the_rest_the_usual_way(
    tmp_path: Path, pages: memoryview, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Nothing is lost or written twice where some blocks went past the cache and then no more."""
    write, calls = os.write, iter(range(100))

    def refusing(descriptor: int, data: memoryview) -> int:
        call = next(calls)
        if call == 1:
            raise OSError(number, os.strerror(number))
        return write(descriptor, data[: 2**20])

    monkeypatch.setattr(os, "write", refusing)
    assert written(tmp_path / "file", pages) == pages


def test_a_system_without_such_writes_uses_the_cache(
    tmp_path: Path, pages: memoryview, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on macOS, where there is no ``O_DIRECT``."""
    monkeypatch.delattr(os, "O_DIRECT", raising=False)
    assert written(tmp_path / "file", pages) == pages


def test_a_full_disk_is_told(
    tmp_path: Path, pages: memoryview, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Errors that are none of the way stay errors, and the descriptor is as before."""

    def full(descriptor: int, data: memoryview) -> int:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "write", full)
    with (tmp_path / "file").open("wb") as file, pytest.raises(OSError, match="full"):
        write_all(file.fileno(), pages)
