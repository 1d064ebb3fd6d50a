"""The kernel's two answers to what is in memory."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from iobench import residency

PAGES = 50


@pytest.fixture
def descriptor(tmp_path: Path) -> Iterator[int]:
    """An open file whose last page is not full."""
    path = tmp_path / "file"
    path.write_bytes(b"x" * (PAGES * mmap.PAGESIZE - 5))
    opened = os.open(path, os.O_RDONLY)
    yield opened
    os.close(opened)


def test_pages_are_counted_in_full() -> None:
    """A started page is a page."""
    size = mmap.PAGESIZE
    assert [residency.pages(n) for n in (0, 1, size, size + 1)] == [0, 1, 1, 2]


def test_what_was_just_written_is_counted(descriptor: int) -> None:
    """No more pages than the file has."""
    assert residency.resident_pages(descriptor) == PAGES


def test_both_ways_agree(descriptor: int) -> None:
    """mincore and cachestat see the same page cache."""
    size = os.fstat(descriptor).st_size
    counted = residency._cachestat(descriptor)
    if counted is None:
        pytest.skip("this kernel has no cachestat")
    assert min(counted, PAGES) == residency._mincore(descriptor, size)


def test_an_overlay_is_asked_by_mincore(descriptor: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """cachestat looks at the overlay's own page cache, which is always empty."""
    monkeypatch.setattr(residency, "_cachestat", lambda descriptor: 0)
    assert residency.resident_pages(descriptor, "overlay") == PAGES
    assert residency.resident_pages(descriptor, "ext4") == 0


def test_mincore_is_not_believed_for_files_of_others(
    descriptor: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel calls every page resident of files that we could not write."""
    monkeypatch.setattr(residency, "_cachestat", lambda descriptor: None)
    monkeypatch.setattr(residency, "_may_write", lambda descriptor: False)
    assert residency.resident_pages(descriptor) is None


def test_an_empty_file_has_no_pages(tmp_path: Path) -> None:
    """Nothing to map."""
    path = tmp_path / "empty"
    path.touch()
    with path.open("rb") as file:
        assert residency.resident_pages(file.fileno()) == 0
