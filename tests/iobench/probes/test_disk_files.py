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
from iobench.probes.disk import clean, file_to_read, file_to_write
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
    made = path.stat().st_ino
    assert file_to_read(tmp_path, SIZE, "t").stat().st_ino == made
    os.truncate(path, 10)
    content = file_to_read(tmp_path, SIZE, "t").read_bytes()
    assert names(tmp_path) == [f".iobench-read-{SIZE}"]
    # A file system that compresses must not be measured as faster than its disk.
    assert len(content) == SIZE
    assert len(zlib.compress(content)) > 0.99 * SIZE
    assert len({content[start : start + 512] for start in range(0, SIZE, 512)}) > 2000


def test_a_file_to_write_is_there_for_the_block_only(tmp_path: Path) -> None:
    """The file is removed, also when the block fails."""
    with file_to_write(tmp_path, SIZE, "t") as path:
        assert path.name.startswith(".iobench-write-")
        assert path.stat().st_size == SIZE
    assert names(tmp_path) == []
    with pytest.raises(ZeroDivisionError), file_to_write(tmp_path, SIZE, "t"):
        raise ZeroDivisionError
    assert names(tmp_path) == []


def test_clean_removes_ours_and_nothing_else(tmp_path: Path) -> None:
    """Files of killed trials are removed too; other files stay."""
    file_to_read(tmp_path, SIZE, "t")
    for name in (f".iobench-partial-{'0a' * 8}", f".iobench-write-{'ff' * 8}"):
        (tmp_path / name).touch()
    others = [".iobench-notes", ".iobench-write-ff", "read-5"]
    for name in others:
        (tmp_path / name).touch()
    clean(tmp_path)
    assert names(tmp_path) == others
    clean(tmp_path / "gone")


@pytest.mark.parametrize("kind", ["other content", "shorter", "link", "folder", "another size"])
def test_somebody_elses_file(tmp_path: Path, kind: str) -> None:
    """A file that iobench did not make is neither read, overwritten nor removed."""
    path = tmp_path / f".iobench-read-{SIZE}"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    match kind:
        case "link":
            path.symlink_to(file_to_read(elsewhere, SIZE, "t"))
        case "folder":
            path.mkdir()
        case "another size":
            file_to_read(elsewhere, 2 * SIZE, "t").rename(path)
        case _:
            path.write_bytes(b"x" * (SIZE if kind == "other content" else 5))
    before = path.lstat()
    match = rf"{path} exists, and iobench did not make it: move it away"
    with pytest.raises(TrialFailed, match=match):
        file_to_read(tmp_path, SIZE, "t")
    clean(tmp_path)
    after = path.lstat()
    assert (after.st_ino, after.st_mtime, after.st_size) == (
        *(before.st_ino, before.st_mtime, before.st_size),
    )


@pytest.mark.parametrize("make", [file_to_read, lambda *args: file_to_write(*args).__enter__()])
def test_refusals(tmp_path: Path, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says why there is no file; no part of it is left."""
    with pytest.raises(Unavailable, match=r"target 't': .*/gone does not exist"):
        make(tmp_path / "gone", SIZE, "t")
    with pytest.raises(TrialFailed, match=r"target 't' is full: .* MB are free"):
        make(tmp_path, 2**60, "t")
    denied = pytest.raises(TrialFailed, match="may not be written to: Permission denied")
    with reachable_folder() as folder, unprivileged(), denied:
        make(folder, SIZE, "t")

    for code, said in ((errno.ENOSPC, "is full: .*No space left"), (errno.EROFS, "Read-only")):

        def refused(*args: int, code: int = code) -> None:
            raise OSError(code, os.strerror(code))

        monkeypatch.setattr(os, "posix_fallocate", refused)
        with pytest.raises(TrialFailed, match=said):
            make(tmp_path, SIZE, "t")
    assert names(tmp_path) == []
    (tmp_path / "file").touch()
    with pytest.raises(TrialFailed, match="is not a directory"):
        make(tmp_path / "file", SIZE, "t")
