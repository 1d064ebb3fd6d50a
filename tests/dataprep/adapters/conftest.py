"""A small data set in both formats."""

from __future__ import annotations

from pathlib import Path

import pytest

import dataprep


@pytest.fixture(scope="session")
def output(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The drawn tree in both formats, several shards each, labels in records from 1. Read only."""
    folder = tmp_path_factory.mktemp("adapters") / "out"
    config = dataprep.ShardConfig.model_validate(
        {
            "source": str(tree),
            "output": str(folder),
            "format": ("tfrecord", "recordio"),
            "image": {"mode": "exact", "size": 320, "upscale": True, "quality": 97},
            "shard_size": "1.2MB",
            "label_offset": {"tfrecord": 1, "recordio": 1},
        }
    )
    dataprep.shard(config)
    return folder


@pytest.fixture(params=["tfrecord", "recordio"])
def dataset(output: Path, request: pytest.FixtureRequest) -> dataprep.Dataset:
    """It, opened, in each format."""
    opened = dataprep.open(output, format=request.param)
    assert len(opened.manifest.formats[opened.format].shards) >= 3
    return opened
