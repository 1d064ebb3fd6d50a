"""Encoded images by number and by shard."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import pickle
import secrets
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import dataprep
from dataprep.adapters import records as module
from dataprep.adapters.records import Records
from dataprep.dataset import Dataset
from dataprep.errors import CorruptRecord, ObjectNotFound, RecordError
from dataprep.stores import open_store
from dataprep.stores.local import LocalStore


def stored(dataset: Dataset) -> list[bytes]:
    """The images that must come out."""
    return [bytes(sample.image) for sample in dataset]


def test_images_by_number(dataset: Dataset) -> None:
    """Each image is that of the data set, also through a pickled copy; labels count from 0."""
    records = Records(dataset)
    assert len(records) == 120
    assert records.labels.tolist() == dataset.labels.tolist()
    assert [bytes(records.image(i)) for i in range(120)] == stored(dataset)
    copy = pickle.loads(pickle.dumps(records))
    assert bytes(copy.image(119)) == bytes(records.image(119))


def test_images_by_shard(dataset: Dataset) -> None:
    """The shards have all samples, one after the other."""
    records = Records(dataset)
    found: list[bytes] = []
    for number in range(len(records.shard_keys)):
        content = memoryview(records.shard(number))
        samples = records.samples_of(number)
        assert samples.start == len(found)
        found += [bytes(records.image_within(content, index)) for index in samples]
    assert found == stored(dataset)


def test_any_store(output: Path) -> None:
    """A store without files works as well."""
    memory = open_store(f"memory://{secrets.token_hex(4)}")
    for entry in (local := open_store(output)).list():
        memory.put(entry.key, local.get(entry.key))
    assert bytes(Records(dataprep.open(memory.uri)).image(3)) == dataprep.open(output)[3].image


@pytest.mark.parametrize("layout", ["tfds", {"x" * 60: "encoded", "y": "label"}], ids=str)
def test_layouts(tree: Path, tmp_path: Path, layout: str | dict[str, str]) -> None:
    """The image is found whatever the layout calls it."""
    job = {"source": str(tree), "output": str(tmp_path / "out"), "layout": layout}
    dataprep.shard(dataprep.ShardConfig.model_validate(job))
    dataset = dataprep.open(tmp_path / "out")
    records = Records(dataset)
    assert [bytes(records.image(i)) for i in range(120)] == stored(dataset)


def open_shards() -> int:
    """How many shards this process has open."""
    paths = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            paths.append(str(descriptor.readlink()))
    return sum("/train-0" in path for path in paths)


def test_threads_share_few_open_files(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight threads read the right images with two shards open; none is open afterwards."""
    monkeypatch.setattr(module, "_OPEN_FILES", 2)
    records = Records(dataset)
    with ThreadPoolExecutor(8) as pool:
        found = [bytes(image) for image in pool.map(records.image, [*range(120)] * 3)]
    assert found == stored(dataset) * 3
    assert 2 <= open_shards() < len(records.shard_keys)
    del records
    gc.collect()
    assert open_shards() == 0


def _in_child(records: Records, answer: multiprocessing.SimpleQueue[bytes]) -> None:
    answer.put(bytes(records.image(7)))


def test_a_forked_process_reads_s3(on_s3: Callable[[str], Dataset]) -> None:
    """Parent and child both read after the fork, although the parent was connected before."""
    records = Records(on_s3("tfrecord"))
    expected = bytes(records.image(7))
    context = multiprocessing.get_context("fork")
    answer: multiprocessing.SimpleQueue[bytes] = context.SimpleQueue()
    child = context.Process(target=_in_child, args=(records, answer))
    child.start()
    assert answer.get() == expected == bytes(records.image(7))
    child.join()


@pytest.fixture
def copied(dataset: Dataset, tmp_path: Path) -> tuple[Records, Path]:
    """Records of a copy, and its first shard, which may be damaged."""
    assert isinstance(dataset.store, LocalStore)
    shutil.copytree(dataset.store.root, tmp_path / "copy")
    records = Records(dataprep.open(tmp_path / "copy", format=dataset.format))
    return records, tmp_path / "copy" / records.shard_keys[0]


@pytest.mark.parametrize("index", [0, 1])
def test_a_truncated_shard(copied: tuple[Records, Path], index: int) -> None:
    """Inside a record or before it: the error names the shard."""
    records, path = copied
    os.truncate(path, 100)
    with pytest.raises(RecordError, match=records.shard_keys[0]):
        records.image(index)


def test_a_damaged_shard(copied: tuple[Records, Path]) -> None:
    """The error names the shard."""
    records, path = copied
    path.write_bytes(b"\0" * path.stat().st_size)
    with pytest.raises(CorruptRecord, match=records.shard_keys[0]):
        records.image(0)


def test_a_missing_shard(copied: tuple[Records, Path]) -> None:
    """ObjectNotFound, as from any store."""
    records, path = copied
    path.unlink()
    with pytest.raises(ObjectNotFound, match=records.shard_keys[0]):
        records.image(0)
