"""A few images, and the expected output of tasks over them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from dataprep.drawn import draw_tree
from dataprep.errors import DataprepError
from dataprep.job.shard_making import make_shard
from dataprep.stores.local import LocalStore
from dataprep.stores.memory import MemoryStore
from tests.dataprep.job.tasks import FailingSource, FolderSource, make_tasks, shards


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """24 images in three classes. Read only."""
    return draw_tree(tmp_path_factory.mktemp("job") / "photos", images=24, classes=3, seed=4).root


@pytest.fixture(scope="session")
def expected(images: Path) -> Mapping[str, bytes]:
    """Shards and indexes of six tasks over the images, made in order without an engine."""
    store = MemoryStore("memory://expected-of-engines")
    for build in make_tasks(images, FolderSource(images), store, 6):
        make_shard(build(), lambda progress: None)
    return shards(store)


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    """An empty store."""
    store = LocalStore(str(tmp_path / "out"))
    store.prepare()
    return store


@pytest.fixture
def failing(images: Path, tmp_path: Path) -> Callable[..., FailingSource]:
    """A function that makes a source with one file that cannot be read at first."""
    (tmp_path / "notes").mkdir()
    name = sorted(str(path.relative_to(images)) for path in images.rglob("*.JPEG"))[8]

    def make(times: int, error: DataprepError) -> FailingSource:
        return FailingSource(images, tmp_path / "notes", {name}, times, error)

    return make
