"""A data set that is replaced while a framework reads it raises an error; see tests/contracts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import dataprep
from dataprep.errors import DatasetChanged
from dataprep.stores.local import LocalStore
from tests.changing import ChangingOutput, make_changing_output
from tests.dataprep.reading.conftest import in_memory

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def changing_output(tmp_path_factory: pytest.TempPathFactory) -> ChangingOutput:
    """Two data sets whose shards have the same names and sizes. The second replaces the first."""
    return make_changing_output(tmp_path_factory.mktemp("changing"))


@pytest.fixture
def store(changing_output: ChangingOutput, tmp_path: Path) -> LocalStore:
    """The first data set on disk."""
    local_store = LocalStore(str(tmp_path / "out"))
    local_store.prepare()
    for key, data in changing_output.before.items():
        local_store.put(key, data)
    return local_store


def overwrite(store: LocalStore, changing_output: ChangingOutput) -> None:
    """Make all changes of the overwrite."""
    for step in changing_output.steps:
        step.apply(store)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("style", ["map", "iterable", "batches"])
def test_torch(
    store: LocalStore, changing_output: ChangingOutput, style: str, workers: int
) -> None:
    """Each style in processes of a DataLoader raises DatasetChanged."""
    torch = pytest.importorskip("torch")
    dataset = dataprep.open(store.uri)
    options: dict[str, Any] = {"batch_size": 4, "threads": 0} if style == "batches" else {}
    images = dataprep.to_torch(dataset, iterable=style != "map", **options)
    loader = torch.utils.data.DataLoader(images, batch_size=None, num_workers=workers)
    before = [image for item in loader for image in _images(item)]
    assert sorted(before) == sorted(changing_output.images)
    overwrite(store, changing_output)
    if not workers:  # its files are open and do not change
        assert sorted(i for item in loader for i in _images(item)) == sorted(changing_output.images)
    else:
        with pytest.raises(DatasetChanged):
            list(loader)


def _images(item: Any) -> list[bytes]:
    """The encoded images of a sample or of a batch."""
    return [item[0]] if isinstance(item[0], bytes) else list(item[0])


@pytest.mark.frameworks
@pytest.mark.filterwarnings("default")
def test_tf_data(tf: Any, changing_output: ChangingOutput) -> None:
    """Samples that are read later raise the error, and earlier ones are of the first data set."""
    memory = in_memory(changing_output.before)
    made_of = dataprep.to_tf(dataprep.open(memory.uri), batch_size=4, decode=False)
    read_images = [image for images, _ in made_of for image in images.numpy()]
    assert sorted(read_images) == sorted(changing_output.images)
    for step in changing_output.steps:
        step.apply(memory)
    with pytest.raises(tf.errors.OpError, match="the data set changed"):
        next(iter(made_of))


@pytest.mark.frameworks
@pytest.mark.filterwarnings("default")
@pytest.mark.usefixtures("mx")
def test_mxnet(changing_output: ChangingOutput) -> None:
    """MXNet refuses the changed data as tf.data does."""
    memory = in_memory(changing_output.before)
    dataset = dataprep.open(memory.uri, format="recordio")
    batches = dataprep.to_mxnet(dataset, batch_size=4)
    assert sum(batch.data[0].shape[0] for batch in batches) == len(changing_output.images)
    for step in changing_output.steps:
        step.apply(memory)
    batches.reset()
    with pytest.raises(DatasetChanged):
        next(batches)
