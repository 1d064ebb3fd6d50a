"""Files of the probe's own."""

from __future__ import annotations

import errno
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from iobench.errors import TrialFailed, Unavailable
from iobench.probes.disk import clean
from iobench.probes.disk.testfile import file_to_read, file_to_write
from tests.permissions import reachable_folder, unprivileged

Make = Callable[..., Any]
SIZE = 2**20 + 5


def names(folder: Path) -> list[str]:
    """What lies there."""
    return sorted(path.name for path in folder.iterdir())


def test_the_name_says_whose_it_is(tmp_path: Path) -> None:
    """Somebody who finds one knows what to do with it."""
    path = file_to_read(tmp_path, SIZE, "t")
    assert path.name == f".iobench-read-{SIZE}"
    assert path.stat().st_size == SIZE


def test_content_cannot_be_compressed(tmp_path: Path) -> None:
    """Or a file system that compresses would be measured as faster than its disk."""
    content = file_to_read(tmp_path, SIZE, "t").read_bytes()
    assert len(zlib.compress(content)) > 0.99 * SIZE
    assert len({content[start : start + 512] for start in range(0, SIZE, 512)}) > 2000


def test_a_file_is_made_once(tmp_path: Path) -> None:
    """Later trials of the same size read the same file; one that was cut is made again."""
    path = file_to_read(tmp_path, SIZE, "t")
    made = path.stat().st_ino
    assert file_to_read(tmp_path, SIZE, "t").stat().st_ino == made
    os.truncate(path, 10)
    assert file_to_read(tmp_path, SIZE, "t").stat().st_size == SIZE
    assert names(tmp_path) == [path.name]


def test_a_file_to_write_is_there_for_the_block_only(tmp_path: Path) -> None:
    """Gone afterwards, also when the block fails."""
    with file_to_write(tmp_path, SIZE, "t") as path:
        assert path.name.startswith(".iobench-write-")
        assert path.stat().st_size == SIZE
    assert names(tmp_path) == []
    with pytest.raises(ZeroDivisionError), file_to_write(tmp_path, SIZE, "t"):
        raise ZeroDivisionError
    assert names(tmp_path) == []


def test_clean_removes_ours_and_nothing_else(tmp_path: Path) -> None:
    """What killed trials left goes too; other people's files stay."""
    file_to_read(tmp_path, SIZE, "t")
    for name in (".iobench-partial-0a1b", ".iobench-write-ff", ".iobench-notes", "read-5"):
        (tmp_path / name).touch()
    clean(tmp_path)
    assert names(tmp_path) == [".iobench-notes", "read-5"]
    clean(tmp_path / "gone")


@pytest.mark.parametrize("make", [file_to_read, lambda *args: file_to_write(*args).__enter__()])
class TestRefusals:
    """Why there is no file, in words."""

    def test_no_folder(self, tmp_path: Path, make: Make) -> None:
        """A target that is not mounted here is skipped."""
        with pytest.raises(Unavailable, match=r"target 't': .*/gone does not exist"):
            make(tmp_path / "gone", SIZE, "t")

    def test_no_directory(self, tmp_path: Path, make: Make) -> None:
        """A file is no target."""
        (tmp_path / "file").touch()
        with pytest.raises(TrialFailed, match="is not a directory"):
            make(tmp_path / "file", SIZE, "t")

    def test_not_writable(self, make: Make) -> None:
        """The test file cannot be made."""
        refused = pytest.raises(TrialFailed, match="may not be written to: Permission denied")
        with reachable_folder() as folder, unprivileged(), refused:
            make(folder, SIZE, "t")

    def test_no_room(self, tmp_path: Path, make: Make) -> None:
        """A file that will not fit is not begun."""
        with pytest.raises(TrialFailed, match=r"target 't' is full: .* MB are free"):
            make(tmp_path, 2**60, "t")
        assert names(tmp_path) == []

    def test_full_while_writing(
        self, tmp_path: Path, make: Make, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Nothing is left of the attempt."""

        def full(*args: int) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(os, "posix_fallocate", full)
        with pytest.raises(TrialFailed, match=r"is full: .*No space left"):
            make(tmp_path, SIZE, "t")
        assert names(tmp_path) == []
