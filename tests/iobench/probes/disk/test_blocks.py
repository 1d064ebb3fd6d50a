"""One process's blocks."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from iobench.errors import TrialFailed, Unavailable
from iobench.probes.disk import blocks

pytestmark = pytest.mark.slow

BLOCK = 4096


@pytest.fixture
def file(disk_folder: Path) -> Path:
    """Four blocks."""
    path = disk_folder / "file"
    path.write_bytes(os.urandom(4 * BLOCK))
    return path


def test_a_read_is_a_whole_block(file: Path) -> None:
    """At any offset; what the file cannot give in full is a failure."""
    with blocks.reading(file, BLOCK, direct=False) as read:
        assert [read(offset) for offset in (0, 3 * BLOCK, BLOCK)] == [BLOCK] * 3
        with pytest.raises(TrialFailed, match="100 of 4,096 bytes"):
            read(4 * BLOCK - 100)


def test_a_write_is_a_whole_block_and_says_where(file: Path) -> None:
    """The offset stands in it, so that no two blocks are the same."""
    with blocks.writing(file, BLOCK, direct=False) as write:
        assert write(2 * BLOCK) == BLOCK
        assert write(3 * BLOCK) == BLOCK
    content = file.read_bytes()
    assert int.from_bytes(content[2 * BLOCK :][:8], "little") == 2 * BLOCK
    assert content[2 * BLOCK + 8 : 3 * BLOCK] == content[3 * BLOCK + 8 :]
    assert len(set(content[3 * BLOCK :])) > 200


def test_direct_reads_and_writes(direct_folder: Path) -> None:
    """Aligned memory is what O_DIRECT wants."""
    path = direct_folder / "file"
    path.write_bytes(bytes(2 * BLOCK))
    with blocks.writing(path, BLOCK, direct=True) as write:
        assert write(BLOCK) == BLOCK
    with blocks.reading(path, BLOCK, direct=True) as read:
        assert read(BLOCK) == BLOCK


@pytest.mark.parametrize("way", [blocks.reading, blocks.writing])
def test_a_file_system_that_refuses_direct_is_unavailable(
    file: Path, monkeypatch: pytest.MonkeyPatch, way: Any
) -> None:
    """Nothing falls back in silence."""
    opened = os.open

    def refusing(path: Path, flags: int, *rest: int) -> int:
        if flags & os.O_DIRECT:
            raise OSError(errno.EINVAL, "Invalid argument")
        return opened(path, flags, *rest)

    monkeypatch.setattr(os, "open", refusing)
    with pytest.raises(Unavailable, match="O_DIRECT is refused by"), way(file, BLOCK, direct=True):
        pass


def test_a_file_system_that_refuses_the_first_direct_read_is_unavailable(
    direct_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some let the file be opened."""
    path = direct_folder / "file"
    path.write_bytes(bytes(BLOCK))

    def refusing(*args: object) -> int:
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(os, "preadv", refusing)
    with (
        pytest.raises(Unavailable, match="O_DIRECT is refused by"),
        blocks.reading(path, BLOCK, direct=True),
    ):
        pass


@pytest.mark.parametrize("way", [blocks.reading, blocks.writing])
def test_memory_has_no_direct(file: Path, monkeypatch: pytest.MonkeyPatch, way: Any) -> None:
    """Newer kernels accept O_DIRECT on tmpfs, where it means nothing."""
    monkeypatch.setattr(blocks, "file_system", lambda path: "tmpfs")
    with pytest.raises(Unavailable, match="no device below"), way(file, BLOCK, direct=True):
        pass


def test_other_errors_stay_what_they_are(tmp_path: Path) -> None:
    """A file that is gone is not a matter of O_DIRECT."""
    with pytest.raises(FileNotFoundError), blocks.reading(tmp_path / "x", BLOCK, direct=True):
        pass
