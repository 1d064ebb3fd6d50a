"""Which shards they are and how long they took, by the manifest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import dataprep
from dataprep.sample import draw_tree
from iobench.data.made import fingerprint, making
from iobench.trial import Place


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A few images, sharded."""
    folder = tmp_path_factory.mktemp("made")
    draw_tree(folder / "photos", images=10, classes=2)
    asked = {"source": folder / "photos", "output": folder / "out", "image": {"size": 64}}
    config = dataprep.ShardConfig.model_validate(
        {key: str(value) if isinstance(value, Path) else value for key, value in asked.items()}
    )
    dataprep.shard(config)
    return folder / "out"


def test_a_manifest_tells_it(shards: Path) -> None:
    """Images, time and workers."""
    found = making(Place(str(shards), "shards"))
    assert found is not None
    assert found["samples"] == 10
    assert 0 < found["reencoded"] <= 10
    assert found["seconds"] > 0
    assert found["workers"] >= 1


@pytest.mark.parametrize(
    "place",
    [
        Place("/nowhere", "shards"),
        Place("/nowhere", "files"),
        Place("s3://bucket/out", "shards"),
        Place("/nowhere", "shards", decoded=True),
    ],
    ids=["missing", "files", "remote", "decoded"],
)
def test_others_tell_nothing(place: Place) -> None:
    """No error comes of it."""
    assert making(place) is None


def test_a_manifest_without_a_time_tells_nothing(shards: Path, tmp_path: Path) -> None:
    """As one of another program would be."""
    content = json.loads((shards / "train.manifest.json").read_text())
    content["run"].pop("seconds")
    (tmp_path / "train.manifest.json").write_text(json.dumps(content))
    assert making(Place(str(tmp_path), "shards")) is None


def test_the_same_shards_made_again_are_the_same(shards: Path, tmp_path: Path) -> None:
    """Others are others; what has no manifest tells nothing."""
    photos = shards.parent / "photos"
    for name, size in (("same", 64), ("other", 32)):
        asked = {"source": str(photos), "output": str(tmp_path / name), "image": {"size": size}}
        dataprep.shard(dataprep.ShardConfig.model_validate(asked))
    first = fingerprint(Place(str(shards), "shards"))
    assert first is not None
    assert fingerprint(Place(str(tmp_path / "same"), "shards")) == first
    assert fingerprint(Place(str(tmp_path / "other"), "shards")) != first
    assert fingerprint(Place(str(photos), "files")) is None
