"""Tests of iobench.loaders.sources and of what loaders say is missing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import dataprep
from dataprep.errors import ManifestMissing
from iobench.clock import SystemClock
from iobench.errors import Unavailable
from iobench.loaders import LOADERS, LoaderSettings
from iobench.stored import open_shards
from iobench.trial import Place


@pytest.mark.parametrize(
    ("loader", "framework", "title"),
    [
        ("torch-map", "torch", "PyTorch"),
        ("torch-iterable", "torch", "PyTorch"),
        ("tf-data", "tensorflow", "TensorFlow"),
    ],
    ids=lambda value: value,
)
def test_missing_framework(
    monkeypatch: pytest.MonkeyPatch, loader: str, framework: str, title: str
) -> None:
    """A loader whose framework is not installed says what brings it."""
    monkeypatch.setitem(sys.modules, framework, None)
    said = rf"^{title} is not installed: pip install 'dataprep-iobench\[{framework}\]'$"
    with pytest.raises(Unavailable, match=said):
        LOADERS.load(loader)(Place("/data", "shards"), LoaderSettings(), SystemClock())


def test_pinned_memory_needs_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a CUDA device nothing is pinned, and nothing pretends to be."""
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    settings = LoaderSettings(pin_memory=True)
    with pytest.raises(Unavailable, match="pinned memory is for a CUDA device"):
        LOADERS.load("torch-map")(Place("/data", "shards"), settings, SystemClock())


def test_missing_format(tree: Path, tmp_path: Path) -> None:
    """A data set without the format says which it has, and how to get the other."""
    output = tmp_path / "out"
    config = {"source": str(tree), "output": str(output), "format": ("recordio",)}
    dataprep.shard(dataprep.ShardConfig.model_validate(config))
    place = Place(str(output), "shards")
    assert len(open_shards(place, "recordio")) == 120
    with pytest.raises(Unavailable, match="it has recordio: shard it with --format tfrecord"):
        open_shards(place, "tfrecord")


def test_nothing_there(tmp_path: Path) -> None:
    """An empty place is no data set."""
    with pytest.raises(ManifestMissing):
        open_shards(Place(str(tmp_path), "shards"), "tfrecord")
