"""Tests of dataprep.adapters.shard_cache."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest

from dataprep.adapters.shard_cache import copied_ahead
from dataprep.errors import ObjectNotFound
from dataprep.manifest import ShardEntry
from dataprep.stores.memory import MemoryStore
from tests.open_files import unnamed_bytes


@pytest.fixture
def store() -> MemoryStore:
    """Five shards of ten bytes."""
    memory = MemoryStore(f"memory://{secrets.token_hex(4)}")
    for number in range(5):
        memory.put(f"recordio/{number}", bytes([number]) * 10)
    return memory


SHARDS = [ShardEntry(f"recordio/{number}", 10, 1, "") for number in range(5)]


@pytest.mark.parametrize(
    ("limit", "sizes"), [(20, [1] * 5), (40, [1, 2, 2]), (200, [1, 2, 2])], ids=str
)
def test_groups(store: MemoryStore, tmp_path: Path, limit: int, sizes: list[int]) -> None:
    """All shards come once, in order, as files; never more than the limit lies there."""
    seen = []
    for group in copied_ahead(store, SHARDS, tmp_path, limit):
        assert unnamed_bytes(tmp_path) <= limit
        assert all(path.read_bytes() == store.get(shard.key) for path, shard in group)
        seen.append([shard for _, shard in group])
    assert [len(group) for group in seen] == sizes
    assert [shard for group in seen for shard in group] == SHARDS
    assert unnamed_bytes(tmp_path) == 0


def test_no_names(store: MemoryStore, tmp_path: Path) -> None:
    """Only links could stay behind when the process is killed, and they are gone at the end."""
    for group in copied_ahead(store, SHARDS, tmp_path, 40):
        assert unnamed_bytes(tmp_path) > 0
        files = [path for path in tmp_path.rglob("*") if not path.is_dir()]
        assert all(path.is_symlink() for path in files)
        assert sorted(files) == sorted(path for path, _ in group)
    assert list(tmp_path.iterdir()) == []


def test_few_files(store: MemoryStore, tmp_path: Path) -> None:
    """However small the shards, few files are open."""
    many = [SHARDS[number % 5] for number in range(300)]
    groups = [len(group) for group in copied_ahead(store, many, tmp_path, 10**9)]
    assert sum(groups) == 300
    assert max(groups) <= 64


def test_closed_early(store: MemoryStore, tmp_path: Path) -> None:
    """Nothing stays behind when the rest is not wanted."""
    groups = copied_ahead(store, SHARDS, tmp_path, 20)
    next(groups)
    assert unnamed_bytes(tmp_path) > 0
    groups.close()
    assert unnamed_bytes(tmp_path) == 0


def test_a_shard_that_is_gone(store: MemoryStore, tmp_path: Path) -> None:
    """An error of the store is raised where its shard would come, and nothing stays behind."""
    store.delete("recordio/2")
    groups = copied_ahead(store, SHARDS, tmp_path, 20)
    next(groups)
    next(groups)
    with pytest.raises(ObjectNotFound, match="recordio/2"):
        next(groups)
    assert unnamed_bytes(tmp_path) == 0


def test_no_shards(store: MemoryStore, tmp_path: Path) -> None:
    """Of nothing there are no groups."""
    assert list(copied_ahead(store, [], tmp_path, 20)) == []
