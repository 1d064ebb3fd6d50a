"""Class folders as samples."""

from __future__ import annotations

import shutil
from pathlib import Path

import dataprep
from dataprep.sources import open_source
from iobench.image_files import image_files


def test_labels_are_those_of_the_shards(tree: Path, tmp_path: Path) -> None:
    """A file has the label that sharding its folder gives it; what is no image has none."""
    root = Path(shutil.copytree(tree, tmp_path / "photos"))
    for path in [next(root.iterdir()) / "notes.txt", root / "labels.csv", root / "README"]:
        path.write_text("not an image")
    files = image_files(open_source(str(root)).list())
    output = tmp_path / "out"
    config = {"source": str(root), "output": str(output)}
    dataprep.shard(dataprep.ShardConfig.model_validate(config))
    dataset = dataprep.open(output)
    table = dataset.samples[dataset.samples["status"] == "written"]
    assert dict(zip(files.names, files.labels.tolist(), strict=True)) == dict(
        zip(table["source"], table["label"], strict=True)
    )
    assert files.classes == len(dataset.label_space.labels)


def test_sizes_are_those_of_the_files(tree: Path) -> None:
    """In the order of the names."""
    files = image_files(open_source(str(tree)).list())
    assert files.sizes.tolist() == [(tree / name).stat().st_size for name in files.names]
