"""Tests of iobench.loaders.folder."""

from __future__ import annotations

from pathlib import Path

import dataprep
from dataprep.sources import open_source
from iobench.loaders.folder import labelled


def test_labels_are_those_of_the_shards(tree: Path, tmp_path: Path) -> None:
    """A file has the label that sharding its folder gives it; what is no image has none."""
    (tree / "notes.txt").touch()
    try:
        names, labels = labelled(open_source(str(tree)).list())
    finally:
        (tree / "notes.txt").unlink()
    output = tmp_path / "out"
    config = {"source": str(tree), "output": str(output)}
    dataprep.shard(dataprep.ShardConfig.model_validate(config))
    table = dataprep.open(output).samples
    assert dict(zip(names, labels.tolist(), strict=True)) == dict(
        zip(table["source"], table["label"], strict=True)
    )
