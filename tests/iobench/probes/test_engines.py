"""Reading and writing the blocks of a file, and their order."""

from __future__ import annotations

import errno
import itertools
import os
from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.errors import TrialFailed, Unavailable
from iobench.probes.blocks import open_blocks, random_offsets, sequential_offsets
from iobench.probes.settings import DiskOperation

pytestmark = pytest.mark.slow

BLOCK = 4096
block_counts = st.integers(0, 500)
processes = st.integers(1, 40)


@pytest.fixture
def file(disk_folder: Path) -> Path:
    """Return a file of four blocks."""
    path = disk_folder / "file"
    path.write_bytes(os.urandom(4 * BLOCK))
    return path


def test_a_read_is_a_whole_block(file: Path) -> None:
    """A block is read at any offset; a block behind the end is a failure."""
    with open_blocks(file, "read", BLOCK, direct=False) as read:
        assert [read(offset) for offset in (0, 3 * BLOCK, BLOCK)] == [BLOCK] * 3
        with pytest.raises(TrialFailed, match="100 of 4,096 bytes"):
            read(4 * BLOCK - 100)


def test_a_write_is_a_whole_block_and_says_where(file: Path) -> None:
    """A written block contains its offset, so that all blocks differ."""
    with open_blocks(file, "write", BLOCK, direct=False) as write:
        assert write(2 * BLOCK) == BLOCK
        assert write(3 * BLOCK) == BLOCK
    content = file.read_bytes()
    assert int.from_bytes(content[2 * BLOCK :][:8], "little") == 2 * BLOCK
    assert content[2 * BLOCK + 8 : 3 * BLOCK] == content[3 * BLOCK + 8 :]
    assert len(set(content[3 * BLOCK :])) > 200


@pytest.mark.parametrize(("operation", "call"), [("read", "open"), ("read", "preadv")])
def test_a_file_system_that_refuses_direct_is_unavailable(
    direct_folder: Path, monkeypatch: pytest.MonkeyPatch, operation: DiskOperation, call: str
) -> None:
    """O_DIRECT is not replaced silently, also if only the first read is refused."""
    path = direct_folder / "file"
    path.write_bytes(bytes(BLOCK))
    monkeypatch.setattr(os, call, Mock(side_effect=OSError(errno.EINVAL, "Invalid argument")))
    with (
        pytest.raises(Unavailable, match="O_DIRECT is refused by"),
        open_blocks(path, operation, BLOCK, direct=True),
    ):
        pass


def test_other_errors_stay_what_they_are(tmp_path: Path) -> None:
    """A missing file is not reported as a refusal of O_DIRECT."""
    with (
        pytest.raises(FileNotFoundError),
        open_blocks(tmp_path / "x", "read", BLOCK, direct=True),
    ):
        pass


@given(block_counts, st.integers(0, BLOCK - 1), processes)
def test_sequential_regions_follow_each_other(blocks: int, rest: int, count: int) -> None:
    """Regions cover the file from its start, without an uneven rest."""
    parts = sequential_offsets(blocks * BLOCK + rest, BLOCK, count)
    assert len(parts) == count
    assert len({len(part) for part in parts}) == 1
    all_offsets = list(itertools.chain(*parts))
    assert all_offsets == list(range(0, len(all_offsets) * BLOCK, BLOCK))
    assert blocks - count < len(all_offsets) <= blocks


@given(block_counts, processes, st.integers(0, 600), st.integers(0, 5))
def test_random_blocks_are_whole_and_come_once(
    blocks: int, count: int, at_most: int, seed: int
) -> None:
    """Each block belongs to one process and occurs once."""
    parts = random_offsets(blocks * BLOCK, BLOCK, count, max_blocks=at_most, seed=seed)
    assert len(parts) == count
    all_offsets = list(itertools.chain(*parts))
    assert len(set(all_offsets)) == len(all_offsets) == min(blocks, at_most) // count * count
    assert all(offset % BLOCK == 0 and 0 <= offset < blocks * BLOCK for offset in all_offsets)
    assert parts == random_offsets(blocks * BLOCK, BLOCK, count, max_blocks=at_most, seed=seed)


def test_another_seed_is_another_order() -> None:
    """Different seeds give different orders."""
    first, second = (random_offsets(2**22, BLOCK, 1, max_blocks=9999, seed=seed) for seed in (0, 1))
    assert sorted(first[0]) == sorted(second[0])
    assert first != second != sequential_offsets(2**22, BLOCK, 1)
