"""A few images, and what tasks over them give."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from dataprep.job.worker import make_shard
from dataprep.sample import draw_tree
from dataprep.stores.memory import MemoryStore
from tests.commandline import objects
from tests.dataprep.job.tasks import FolderSource, make_tasks


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """24 images in three classes. Read only."""
    return draw_tree(tmp_path_factory.mktemp("job") / "photos", images=24, classes=3, seed=4).root


@pytest.fixture(scope="session")
def expected(images: Path) -> Mapping[str, bytes]:
    """Six shards of them, made one after another without any engine; shards and indexes."""
    store = MemoryStore("memory://expected-of-engines")
    for build in make_tasks(images, FolderSource(images), store, 6):
        make_shard(build(), lambda progress: None)
    return {k: v for k, v in objects(store).items() if not k.startswith("receipts/")}
