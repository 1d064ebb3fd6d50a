"""An output in two formats, in memory and on a disk, and shards that are nobody's."""

from __future__ import annotations

import secrets
import shutil
from pathlib import Path

import pytest

import dataprep
from dataprep.stores.memory import MemoryStore


@pytest.fixture(scope="session")
def made(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Several shards in both formats, a validation split, one file that fails. Read only."""
    folder = tmp_path_factory.mktemp("inspected")
    source = Path(shutil.copytree(tree, folder / "photos"))
    broken = next(iter(sorted(source.iterdir()))) / "broken\x1b[31m.JPEG"
    broken.write_bytes(b"\xff\xd8\xff no image")
    config = dataprep.ShardConfig.model_validate(
        {
            "source": str(source),
            "output": str(folder / "out"),
            "format": ("tfrecord", "recordio"),
            "image": {"size": 224},
            "shard_size": "1.2MB",
            "validation": "20%",
            "max_failures": 1,
            "dask": {"workers": 2, "processes": False},
        }
    )
    dataprep.shard(config)
    return folder / "out"


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """A copy on a disk, to be changed."""
    return Path(shutil.copytree(made, tmp_path / "out"))


@pytest.fixture
def memory(made: Path) -> MemoryStore:
    """A copy in memory, to be changed."""
    store = MemoryStore(f"memory://{secrets.token_hex(6)}")
    for path in made.rglob("*"):
        if path.is_file():
            store.put(str(path.relative_to(made)), path.read_bytes())
    return store


@pytest.fixture(params=["tfrecord", "recordio"])
def form(request: pytest.FixtureRequest) -> str:
    """Each format."""
    return str(request.param)


@pytest.fixture
def shard(folder: Path, form: str) -> Path:
    """The first shard, where it belongs."""
    return sorted((folder / form).glob("train-*"))[0]


@pytest.fixture
def stray(shard: Path, form: str, tmp_path: Path) -> Path:
    """The same file by itself, as anybody's."""
    name = "stray.rec" if form == "recordio" else "stray.tfrecord"
    return Path(shutil.copy(shard, tmp_path / name))
