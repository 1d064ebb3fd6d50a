"""Files of the probe's own."""

from __future__ import annotations

import errno
import os
import subprocess
import zlib
from collections.abc import Callable, Iterator
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
    for name in (f".iobench-partial-{'0a' * 8}", f".iobench-write-{'ff' * 8}"):
        (tmp_path / name).touch()
    others = [".iobench-notes", ".iobench-write-ff", "read-5"]
    for name in others:
        (tmp_path / name).touch()
    clean(tmp_path)
    assert names(tmp_path) == others
    clean(tmp_path / "gone")


class TestSomebodyElsesFile:
    """Called as ours is: never read as ours, never overwritten, never removed."""

    def refused(self, folder: Path) -> None:
        """The trial fails, and says what to do."""
        match = (
            rf"{folder}/\.iobench-read-{SIZE} is there, and iobench did not make it: move it away"
        )
        with pytest.raises(TrialFailed, match=match):
            file_to_read(folder, SIZE, "t")
        clean(folder)

    @pytest.mark.parametrize("length", [5, SIZE, SIZE + 7])
    def test_with_other_content(self, tmp_path: Path, length: int) -> None:
        """Of the same size, or of another."""
        path = tmp_path / f".iobench-read-{SIZE}"
        path.write_bytes(b"x" * length)
        self.refused(tmp_path)
        assert path.read_bytes() == b"x" * length

    def test_a_link(self, tmp_path: Path) -> None:
        """What it points to would be measured, or replaced; also where that is ours."""
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        ours = file_to_read(elsewhere, SIZE, "t")
        path = tmp_path / ours.name
        path.symlink_to(ours)
        self.refused(tmp_path)
        assert path.is_symlink()
        ours.unlink()
        self.refused(tmp_path)
        assert path.is_symlink()

    def test_a_folder(self, tmp_path: Path) -> None:
        """It stays, with what is in it."""
        path = tmp_path / f".iobench-read-{SIZE}"
        path.mkdir()
        (path / "kept").touch()
        self.refused(tmp_path)
        assert (path / "kept").exists()

    def test_of_another_size_of_ours(self, tmp_path: Path) -> None:
        """A file of ours under the name of another size is somebody's doing."""
        file_to_read(tmp_path, 2 * SIZE, "t").rename(tmp_path / f".iobench-read-{SIZE}")
        self.refused(tmp_path)
        assert names(tmp_path) == [f".iobench-read-{SIZE}"]


@pytest.fixture(params=["full", "read-only"])
def mounted(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A small file system of its own: one that is full, or one that may not be written."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount")
    folder = tmp_path / "mounted"
    folder.mkdir()
    options = "size=4m" if request.param == "full" else "size=4m,ro"
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    done = subprocess.run(command, check=False, capture_output=True)
    if done.returncode:
        pytest.skip(f"nothing can be mounted here: {done.stderr.decode()}")
    if request.param == "full":
        (folder / "filler").write_bytes(bytes(4 * 2**20 - 2**16))
    yield request.param, folder
    subprocess.run(["umount", folder], check=True)


@pytest.mark.parametrize("make", [file_to_read, lambda *args: file_to_write(*args).__enter__()])
def test_disks_that_are_full_or_read_only(mounted: tuple[str, Path], make: Make) -> None:
    """Real ones: a clear line, and nothing is left on them or lost."""
    kind, folder = mounted
    before = names(folder)
    said = {
        "full": r"target 't' is full: 0 MB are free in .* \(tmpfs\), the test file takes 1 MB",
        "read-only": r"may not be written to: Read-only file system; .* give a folder on that disk",
    }
    with pytest.raises(TrialFailed, match=said[kind]):
        make(folder, SIZE, "t")
    assert names(folder) == before


def test_a_disk_that_fills_up_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Room that was there when it was asked for, and is not when it is taken."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount")
    command = ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(tmp_path)]
    if subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        monkeypatch.setattr("iobench.probes.disk._require_room", lambda *args: None)
        with pytest.raises(TrialFailed, match=r"is full: .*: No space left on device"):
            file_to_read(tmp_path, SIZE, "t")
        assert names(tmp_path) == []
    finally:
        subprocess.run(["umount", tmp_path], check=True)


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
