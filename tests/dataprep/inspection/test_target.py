"""What a path or URI names."""

from __future__ import annotations

from pathlib import Path

import pytest

from dataprep.errors import ManifestMissing
from dataprep.inspection.target import OutputTarget, ShardTarget, find_target, splits_of
from dataprep.stores import open_store
from dataprep.stores.memory import MemoryStore


def test_a_folder(folder: Path) -> None:
    """A folder is an output, with or without a slash at its end."""
    assert isinstance(find_target(folder), OutputTarget)
    assert isinstance(find_target(f"{folder}/"), OutputTarget)


def test_our_shard(shard: Path, form: str) -> None:
    """A shard within its output has its receipt, and the format of its folder."""
    found = find_target(shard)
    assert isinstance(found, ShardTarget)
    assert found.receipt is not None
    assert (found.format, found.info.key) == (form, f"{form}/{shard.name}")
    assert found.uri == str(shard)
    assert len(found.rows) == found.receipt.formats[form].records


def test_anybodys_shard(stray: Path) -> None:
    """A file elsewhere has none."""
    found = find_target(stray)
    assert isinstance(found, ShardTarget)
    assert (found.receipt, found.format, found.rows) == (None, None, [])


def test_a_relative_path(shard: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name without a folder is found, with its receipt."""
    monkeypatch.chdir(shard.parent)
    found = find_target(shard.name)
    assert isinstance(found, ShardTarget)
    assert found.receipt is not None


@pytest.mark.parametrize("damage", [b"", b"{}", None])
def test_without_a_sound_receipt(folder: Path, shard: Path, damage: bytes | None) -> None:
    """Where the receipt is missing or none, the shard is told as anybody's."""
    receipt = folder / "receipts" / f"{shard.name.removesuffix('.rec')}.json"
    receipt.unlink()
    if damage is not None:
        receipt.write_bytes(damage)
    found = find_target(shard)
    assert isinstance(found, ShardTarget)
    assert found.receipt is None


def test_in_memory(memory: MemoryStore, form: str) -> None:
    """Shards in memory are found by URI, those of an output with their receipt."""
    assert isinstance(find_target(memory.uri), OutputTarget)
    key = next(info.key for info in memory.list(f"{form}/train-"))
    found = find_target(f"{memory.uri}/{key}")
    assert isinstance(found, ShardTarget)
    assert found.receipt is not None
    memory.put("x.rec", memory.get(key))
    lone = find_target(f"{memory.uri}/x.rec")
    assert isinstance(lone, ShardTarget)
    assert lone.receipt is None


def test_nothing(tmp_path: Path) -> None:
    """What is not there is taken for an output, of which there is nothing."""
    found = find_target(tmp_path / "nowhere")
    assert isinstance(found, OutputTarget)
    with pytest.raises(ManifestMissing, match="there is nothing"):
        splits_of(found.store)


def test_splits(folder: Path) -> None:
    """The splits of an output are named, those that are not complete too."""
    (folder / "train.manifest.json").unlink()
    assert splits_of(open_store(folder)) == ["train", "validation"]


def test_other_files(tmp_path: Path) -> None:
    """In a folder of other files one is named, to be looked into."""
    (tmp_path / "a.rec").write_bytes(b"")
    with pytest.raises(ManifestMissing, match=r"1 other object.*'a\.rec': name one"):
        splits_of(open_store(tmp_path))
