"""A data set that is replaced while it is read gives only its own samples, or an error."""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from dataprep.checking import verify
from dataprep.errors import DatasetChanged, ObjectNotFound, SourceChanged
from dataprep.output import keys
from dataprep.reading.dataset import Dataset
from dataprep.reading.record_reader import Records
from dataprep.sources.records import RecordsSource
from dataprep.stores import Store
from dataprep.stores.memory import MemoryStore
from tests.changing import ChangingOutput, Step, make_changing_output

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def changing_output(tmp_path_factory: pytest.TempPathFactory) -> ChangingOutput:
    """Two data sets whose shards have the same names and sizes, one made in place of the other."""
    return make_changing_output(tmp_path_factory.mktemp("changing"))


@pytest.fixture
def dataset(store: Store, changing_output: ChangingOutput) -> Dataset:
    """The first data set, opened in the store."""
    for key, data in changing_output.before.items():
        store.put(key, data)
    return Dataset(store, "train", "tfrecord")


def test_the_two_differ_in_images_alone(changing_output: ChangingOutput) -> None:
    """Both data sets have the same keys and sizes, so that only the content distinguishes them."""
    after = dict(changing_output.before)
    for key, data in changing_output.steps:
        after[key] = data or b""
    shards = [key for key in changing_output.before if key.startswith(("tfrecord/", "recordio/"))]
    assert len(shards) >= 4
    assert all(len(changing_output.before[key]) == len(after[key]) for key in shards)
    assert not set(changing_output.images) & set(changing_output.later_images)


def test_the_manifest_is_removed_before_all_else(changing_output: ChangingOutput) -> None:
    """``--overwrite`` removes the manifest first and writes the next manifest last."""
    assert changing_output.steps[0] == Step(keys.manifest("train"), None)
    assert changing_output.steps[-1].key == keys.manifest("train")
    assert changing_output.steps[-1].data is not None


def all_of(dataset: Dataset, changing_output: ChangingOutput) -> list[bytes]:
    """All images, read from the first to the last."""
    return [bytes(sample.image) for sample in dataset]


def one_by_one(dataset: Dataset, changing_output: ChangingOutput) -> list[bytes]:
    """All images, read by number with the table of samples that was read before."""
    return [bytes(dataset[number].image) for number in range(len(dataset))]


def by_records(dataset: Dataset, changing_output: ChangingOutput) -> list[bytes]:
    """All images, read by number as torch's map style does."""
    records = Records(dataset)
    return [bytes(records.image(number)) for number in range(len(records))]


def by_shards(dataset: Dataset, changing_output: ChangingOutput) -> list[bytes]:
    """All images, read in whole shards as torch's iterable style does."""
    records = Records(dataset)
    return [bytes(image) for shard in dataset.shards() for image in records.fetch(shard.samples)]


def in_another_process(dataset: Dataset, changing_output: ChangingOutput) -> list[bytes]:
    """All images, read by a pickled copy as in a worker process."""
    return all_of(pickle.loads(pickle.dumps(dataset)), changing_output)


def copied_records(dataset: Dataset, changing_output: ChangingOutput) -> list[bytes]:
    """All images, read by a pickled copy of the reader of torch's map style."""
    records = pickle.loads(pickle.dumps(Records(dataset)))
    return [bytes(records.image(number)) for number in range(len(records))]


READERS = [all_of, one_by_one, by_records, by_shards, in_another_process, copied_records]
Read = Callable[[Dataset, ChangingOutput], list[bytes]]


@pytest.mark.parametrize("known_values", [True, False], ids=["read-before", "not-read-before"])
@pytest.mark.parametrize("read", READERS, ids=lambda read: read.__name__)
def test_after_any_step_all_is_of_the_first_or_nothing(
    store: Store, dataset: Dataset, changing_output: ChangingOutput, read: Read, known_values: bool
) -> None:
    """At any step of an overwrite, the opened data set gives samples of its own or an error."""
    assert len(dataset.labels) == len(changing_output.images)  # this reads the table of samples
    if known_values:
        assert read(dataset, changing_output) == list(changing_output.images)
    for number, step in enumerate(changing_output.steps):
        step.apply(store)
        if number in looked_at(changing_output.steps):
            with contextlib.suppress(DatasetChanged):
                assert read(dataset, changing_output) == list(changing_output.images)
    with pytest.raises(DatasetChanged, match="it has another manifest"):
        read(dataset, changing_output)


def looked_at(steps: Sequence[Step]) -> set[int]:
    """The first steps, the steps around the first and the last shard, and the last steps."""
    shards = [n for n, step in enumerate(steps) if step.data and step.key.startswith("tfrecord/")]
    return {0, 1, shards[0] - 1, shards[0], shards[-1], len(steps) - 2, len(steps) - 1}


@pytest.mark.parametrize("read", READERS, ids=lambda read: read.__name__)
@pytest.mark.parametrize("until", ["half", "all"])
def test_a_change_at_the_moment_of_reading(
    store: Store,
    dataset: Dataset,
    changing_output: ChangingOutput,
    read: Read,
    until: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A shard that is replaced between its check and its reading is not returned."""
    assert len(dataset.labels) == len(changing_output.images)
    steps = list(
        changing_output.steps[: len(changing_output.steps) - (3 if until == "half" else 0)]
    )
    read_truly = type(store).get_versioned  # type: ignore[attr-defined]

    def read_late(self: Store, key: str, *location: int) -> Any:
        if key.startswith("tfrecord/"):
            while steps:
                steps.pop(0).apply(store)
        return read_truly(self, key, *location)

    monkeypatch.setattr(type(store), "get_versioned", read_late)
    monkeypatch.setattr(
        "dataprep.reading.record_reader.LocalStore", type(None)
    )  # it opens no files itself
    with pytest.raises(DatasetChanged):
        read(dataset, changing_output)


def test_the_same_manifest_again(
    store: Store, dataset: Dataset, changing_output: ChangingOutput
) -> None:
    """Reading fails while the manifest is missing, and continues once the same manifest is back."""
    assert next(iter(dataset)).image == changing_output.images[0]
    key = keys.manifest("train")
    store.delete(key)
    with pytest.raises(DatasetChanged, match="its manifest is gone"):
        pickle.loads(pickle.dumps(dataset))
    for name, data in changing_output.before.items():
        if name.startswith("tfrecord/") or name == key:
            store.put(name, data)
    assert all_of(dataset, changing_output) == list(changing_output.images)
    assert copied_records(dataset, changing_output) == list(changing_output.images)


def test_a_shard_that_is_missing_is_said_to_be(
    store: Store, dataset: Dataset, changing_output: ChangingOutput
) -> None:
    """If only a shard is missing, the error names the shard and reports no changed data set."""
    key = dataset.shards()[0].key
    store.delete(key)
    with pytest.raises(ObjectNotFound, match=f"{key} is missing"):
        all_of(dataset, changing_output)
    with pytest.raises(ObjectNotFound, match=f"{key} is missing"):
        by_records(dataset, changing_output)


def test_a_change_during_verification(
    store: Store, changing_output: ChangingOutput, dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A split that is replaced while it is verified raises an error instead of a list of faults."""
    steps, get = list(changing_output.steps), type(store).get

    def get_late(self: Store, key: str) -> bytes:
        data = get(self, key)
        while steps and key.startswith("tfrecord/"):
            steps.pop(0).apply(store)
        return data

    options = getattr(store, "options", None)
    assert all(verification.ok for verification in verify(store.uri, options=options))
    monkeypatch.setattr(type(store), "get", get_late)
    with pytest.raises(DatasetChanged):
        verify(store.uri, options=options)
    assert not steps
    assert all(verification.ok for verification in verify(store.uri, options=options))


class Plain:
    """A store of another package that returns no versions."""

    def __init__(self, inner: MemoryStore) -> None:
        self.uri = inner.uri
        self.get, self.get_range = inner.get, inner.get_range
        self.list, self.head = inner.list, inner.head


def test_a_store_without_versions(changing_output: ChangingOutput) -> None:
    """Without versions, the manifest is read again after each object, with the same guarantee."""
    store = MemoryStore("memory://plain")
    for key, data in changing_output.before.items():
        store.put(key, data)
    plain: Any = Plain(store)
    dataset = Dataset(plain, "train", "tfrecord")
    assert one_by_one(dataset, changing_output) == list(changing_output.images)
    for step in changing_output.steps:
        step.apply(store)
        with pytest.raises(DatasetChanged):
            dataset[5]


def test_shards_as_a_source(
    store: Store, dataset: Dataset, changing_output: ChangingOutput
) -> None:
    """A job that reads these shards as its source stops and takes no sample of other shards."""
    source = RecordsSource(store.uri, getattr(store, "options", None))
    listing = source.list()
    source = pickle.loads(pickle.dumps(source))
    assert source.read(listing.located(3)) in changing_output.images
    for step in changing_output.steps:
        step.apply(store)
    with pytest.raises(SourceChanged, match="the data set changed"):
        source.read(listing.located(3))


@pytest.mark.parametrize("data", [b"", b'{"schema": 999}'], ids=["damaged", "of-a-newer-version"])
def test_a_manifest_that_can_no_longer_be_read(store: Store, dataset: Dataset, data: bytes) -> None:
    """A manifest that is there, but cannot be read, is not called missing."""
    store.put(keys.manifest("train"), data)
    with pytest.raises(DatasetChanged, match="its manifest can no longer be read"):
        pickle.loads(pickle.dumps(dataset))
