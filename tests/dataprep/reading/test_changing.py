"""A data set that is made anew while a framework reads it; see also tests/contracts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import dataprep
from dataprep.errors import DatasetChanged
from dataprep.stores.local import LocalStore
from tests.changing import Remade, remade
from tests.dataprep.reading.conftest import in_memory

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Remade:
    """Two data sets whose shards have the same names and sizes, one made in place of the other."""
    return remade(tmp_path_factory.mktemp("changing"))


@pytest.fixture
def store(made: Remade, tmp_path: Path) -> LocalStore:
    """The first of them on disk."""
    found = LocalStore(str(tmp_path / "out"))
    found.prepare()
    for key, data in made.before.items():
        found.put(key, data)
    return found


def overwrite(store: LocalStore, made: Remade) -> None:
    """All steps of it."""
    for step in made.steps:
        step.apply(store)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("style", ["map", "iterable", "batches"])
def test_torch(store: LocalStore, made: Remade, style: str, workers: int) -> None:
    """Each style in processes of DataLoader ends in DatasetChanged."""
    torch = pytest.importorskip("torch")
    dataset = dataprep.open(store.uri)
    options: dict[str, Any] = {"batch_size": 4, "threads": 0} if style == "batches" else {}
    images = dataprep.to_torch(dataset, iterable=style != "map", **options)
    loader = torch.utils.data.DataLoader(images, batch_size=None, num_workers=workers)
    before = [image for item in loader for image in _images(item)]
    assert sorted(before) == sorted(made.images)
    overwrite(store, made)
    if not workers:  # its files are open, and stay what they were
        assert sorted(i for item in loader for i in _images(item)) == sorted(made.images)
    else:
        with pytest.raises(DatasetChanged):
            list(loader)


def _images(item: Any) -> list[bytes]:
    return [item[0]] if isinstance(item[0], bytes) else list(item[0])


@pytest.mark.frameworks
@pytest.mark.filterwarnings("default")
def test_tf_data(tf: Any, made: Remade) -> None:
    """The next samples that are read raise the error; those before are of the first data set."""
    memory = in_memory(made.before)
    made_of = dataprep.to_tf(dataprep.open(memory.uri), batch_size=4, decode=False)
    found = [image for images, _ in made_of for image in images.numpy()]
    assert sorted(found) == sorted(made.images)
    for step in made.steps:
        step.apply(memory)
    with pytest.raises(tf.errors.OpError, match="the data set changed"):
        next(iter(made_of))


@pytest.mark.frameworks
@pytest.mark.filterwarnings("default")
@pytest.mark.usefixtures("mx")
def test_mxnet(made: Remade) -> None:
    """As tf.data."""
    memory = in_memory(made.before)
    dataset = dataprep.open(memory.uri, format="recordio")
    batches = dataprep.to_mxnet(dataset, batch_size=4)
    assert sum(batch.data[0].shape[0] for batch in batches) == len(made.images)
    for step in made.steps:
        step.apply(memory)
    batches.reset()
    with pytest.raises(DatasetChanged):
        next(batches)
