"""The test files of the disk probe."""

from __future__ import annotations

import errno
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from iobench.errors import TrialFailed, Unavailable
from iobench.probes.disk import clean, file_to_read, file_to_write, folder_of_run
from tests.permissions import reachable_folder, unprivileged

pytestmark = pytest.mark.slow

Make = Callable[..., Any]
SIZE = 2**20 + 5


def names(folder: Path) -> list[str]:
    """List the names in a folder."""
    return sorted(path.name for path in folder.iterdir())


def test_a_file_to_read_is_made_once(tmp_path: Path) -> None:
    """Later trials read the same file; a shortened file is made again."""
    path = file_to_read(tmp_path, SIZE, "t")
    inode = path.stat().st_ino
    assert file_to_read(tmp_path, SIZE, "t").stat().st_ino == inode
    os.truncate(path, 10)
    content = file_to_read(tmp_path, SIZE, "t").read_bytes()
    assert names(tmp_path) == [f"read-{SIZE}"]
    # A file system that compresses must not be measured as faster than its disk.
    assert len(content) == SIZE
    assert len(zlib.compress(content)) > 0.99 * SIZE
    assert len({content[start : start + 512] for start in range(0, SIZE, 512)}) > 2000


def test_a_file_to_write_is_there_for_the_block_only(tmp_path: Path) -> None:
    """The file is removed, also when the block fails."""
    with file_to_write(tmp_path, SIZE, "t") as path:
        assert path.name.startswith("write-")
        assert path.stat().st_size == SIZE
    assert names(tmp_path) == []
    with pytest.raises(ZeroDivisionError), file_to_write(tmp_path, SIZE, "t"):
        raise ZeroDivisionError
    assert names(tmp_path) == []


def test_clean_removes_the_files_of_one_run(tmp_path: Path) -> None:
    """Files of killed trials are removed too; those of another run and all others stay."""
    own, theirs = (folder_of_run(tmp_path, run) for run in ("run-1", "run-10"))
    for folder in (own, theirs):
        file_to_read(folder, SIZE, "t")
        (folder / "write-of-a-killed-trial").touch()
    others = [".iobench-notes", f".iobench-read-{SIZE}", "read-5"]
    for name in others:
        (tmp_path / name).touch()
    clean(tmp_path, "run-1")
    assert names(tmp_path) == sorted([*others, theirs.name])
    assert names(theirs) == [f"read-{SIZE}", "write-of-a-killed-trial"]
    clean(tmp_path, "run-1")
    clean(tmp_path / "gone", "run-1")


@pytest.mark.parametrize("make", [file_to_read, lambda *args: file_to_write(*args).__enter__()])
def test_refusals(tmp_path: Path, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says why there is no file; no part of it is left."""
    with pytest.raises(Unavailable, match=r"target 't': .*/gone does not exist"):
        make(tmp_path / "gone" / "run", SIZE, "t")
    with pytest.raises(TrialFailed, match=r"target 't' is full: [\d.,]+ [kMGT]?B are free in"):
        make(tmp_path / "run", 2**60, "t")
    denied = pytest.raises(TrialFailed, match="cannot be written to: Permission denied")
    with reachable_folder() as folder, unprivileged(), denied:
        make(folder / "run", SIZE, "t")

    for code, message in ((errno.ENOSPC, "is full: .*No space left"), (errno.EROFS, "Read-only")):

        def refused(*args: int, code: int = code) -> None:
            raise OSError(code, os.strerror(code))

        monkeypatch.setattr(os, "posix_fallocate", refused)
        with pytest.raises(TrialFailed, match=message):
            make(tmp_path / "run", SIZE, "t")
    assert names(tmp_path / "run") == []
    (tmp_path / "file").touch()
    with pytest.raises(TrialFailed, match="is not a directory"):
        make(tmp_path / "file" / "run", SIZE, "t")
