"""What is said where no complete split is there."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

import dataprep
from dataprep.cli.main import app
from dataprep.errors import ManifestMissing
from dataprep.stores.memory import MemoryStore


def why(store: MemoryStore | Path, split: str = "train") -> str:
    """The message of an ``open`` that fails."""
    with pytest.raises(ManifestMissing) as caught:
        dataprep.open(store.uri if isinstance(store, MemoryStore) else store, split)
    return str(caught.value)


def test_shards_are_missing(changeable: MemoryStore) -> None:
    """A job that was interrupted says how far it got, and what finishes it."""
    changeable.delete("train.manifest.json")
    receipts = [info.key for info in changeable.list("receipts/")]
    changeable.delete(receipts[0])
    said = why(changeable)
    assert "no train.manifest.json there" in said
    assert f"{len(receipts) - 1} of {len(receipts)} shards have receipts" in said
    assert "run dataprep shard again, it resumes" in said


def test_only_the_manifest_is_missing(changeable: MemoryStore) -> None:
    """The same where only the last step is left."""
    changeable.delete("train.manifest.json")
    count = sum(1 for _ in changeable.list("receipts/"))
    assert f"{count} of {count} shards have receipts" in why(changeable)


@pytest.mark.parametrize("job", [b"", b"{}", b"[]", b'{"shards": 1e999}', b"[" * 10**5])
def test_the_job_file_cannot_be_read(changeable: MemoryStore, job: bytes) -> None:
    """How many shards there should be is then not known; how many there are is."""
    changeable.delete("train.manifest.json")
    changeable.put("train.job.json", job)
    count = sum(1 for _ in changeable.list("receipts/"))
    assert f"{count} shards of it made" in why(changeable)


def test_another_split(changeable: MemoryStore) -> None:
    """The splits that are there are named, and which of them are complete."""
    assert "no test.manifest.json there; it has 'train'" in why(changeable, "test")
    changeable.delete("train.manifest.json")
    assert "it has 'train' (not complete)" in why(changeable, "test")


def test_other_objects(tmp_path: Path) -> None:
    """Something else is said to be there."""
    (tmp_path / "notes.txt").write_text("x")
    assert "1 other object, such as 'notes.txt'" in why(tmp_path)


@pytest.mark.parametrize("name", ["", "nowhere"])
def test_nothing(tmp_path: Path, name: str) -> None:
    """An empty folder, and none at all."""
    assert why(tmp_path / name).endswith("no train.manifest.json there, nor anything else")


def test_on_the_command_line(tmp_path: Path) -> None:
    """It is a wrong request: exit code 2, one line."""
    result = CliRunner().invoke(app, ["inspect", str(tmp_path), "--record", "1", "--split", "a"])
    assert result.exit_code == 2
    assert result.stderr.startswith("dataprep: no complete split 'a'")
    assert result.stderr.count("\n") == 1
