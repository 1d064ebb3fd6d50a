"""Encoded images are read by number and by shard."""

from __future__ import annotations

import contextlib
import gc
import json
import multiprocessing
import os
import pickle
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dataprep
from dataprep.errors import (
    CorruptRecord,
    DatasetChanged,
    ObjectNotFound,
    PermissionRefused,
    RecordError,
)
from dataprep.formats.protocol import Buffer
from dataprep.reading import record_reader as module
from dataprep.reading.dataset import Dataset
from dataprep.reading.record_reader import Records
from dataprep.stores import open_store
from dataprep.stores.local import LocalStore
from dataprep.stores.memory import MemoryStore
from tests.commandline import objects
from tests.dataprep.conftest import Calls
from tests.dataprep.reading.conftest import images_of, in_memory


def test_images_by_number(dataset: Dataset) -> None:
    """Each image is that of the data set, also by a pickled copy, and labels count from 0."""
    records = Records(dataset)
    assert len(records) == 120
    assert records.labels.tolist() == dataset.labels.tolist()
    assert [bytes(records.image(i)) for i in range(120)] == images_of(dataset)
    copy = pickle.loads(pickle.dumps(records))
    assert bytes(copy.image(119)) == bytes(records.image(119))


@pytest.mark.parametrize("remote", [False, True], ids=["disk", "memory"])
def test_many_images_at_once(output: Path, dataset: Dataset, remote: bool) -> None:
    """Images are read in any order, some of them twice, and neighbours are read together."""
    store = in_memory(objects(open_store(output))) if remote else dataset.store
    records = Records(dataprep.open(store.uri, format=dataset.format))
    images = images_of(dataset)
    for numbers in (range(120), [119, 3, 3, 50, 4], [], [*range(0, 120, 7), *range(9)]):
        assert [*map(bytes, records.fetch(numbers))] == [images[number] for number in numbers]


@pytest.mark.parametrize("remote", [False, True], ids=["disk", "memory"])
@pytest.mark.parametrize("batch", [1, 7, 64, 1_000])
def test_the_order_does_not_depend_on_windows(
    output: Path, dataset: Dataset, batch: int, remote: bool
) -> None:
    """A stream has the requested samples in their order, wherever its windows end."""
    store = in_memory(objects(open_store(output))) if remote else dataset.store
    records = Records(dataprep.open(store.uri, format=dataset.format))
    images = images_of(dataset)
    numbers = np.random.default_rng(batch).permutation(120)[:101]
    streamed = [(number, bytes(image)) for number, image in records.stream(numbers, batch)]
    assert streamed == [(number, images[number]) for number in numbers.tolist()]


@pytest.mark.parametrize(
    ("is_remote", "is_read_before"), [(False, False), (True, False), (True, True)]
)
def test_a_split_that_was_made_anew_is_noticed(
    output: Path, tmp_path: Path, is_remote: bool, is_read_before: bool
) -> None:
    """A replaced split is detected when a shard is opened, and when an object has a new version."""
    content = objects(open_store(output))
    store = in_memory(content) if is_remote else open_store(tmp_path / "out")
    if not is_remote:
        shutil.copytree(output, tmp_path / "out")
    dataset = dataprep.open(store.uri, format="recordio")
    records = Records(dataset)
    if is_read_before:
        records.image(0)
    manifest = json.loads(store.get("train.manifest.json"))
    manifest["created"] = "2000-01-01T00:00:00+00:00"
    store.put("train.manifest.json", json.dumps(manifest).encode())
    key = dataset.shards()[0].key
    store.put(key, store.get(key))
    with pytest.raises(DatasetChanged):
        records.image(0)


def test_a_changed_shard_beside_an_unchanged_one_is_noticed(output: Path) -> None:
    """A shard that was confirmed before does not confirm the shards that are read with it."""
    store = in_memory(objects(open_store(output)))
    dataset = dataprep.open(store.uri, format="recordio")
    records = Records(dataset)
    records.image(0)
    manifest = json.loads(store.get("train.manifest.json"))
    manifest["created"] = "2000-01-01T00:00:00+00:00"
    store.put("train.manifest.json", json.dumps(manifest).encode())
    last = dataset.shards()[-1].key
    store.put(last, store.get(last))
    with pytest.raises(DatasetChanged):
        records.fetch([0, len(records) - 1])


@pytest.mark.parametrize("key", ["../secret/{}", "/secret/{}", "tfrecord/../../secret/{}"])
def test_a_key_that_leads_out_of_the_output_is_refused(
    output: Path, tmp_path: Path, key: str
) -> None:
    """The store resolves the keys of a manifest, which may come from any author."""
    copy = tmp_path / "out"
    shutil.copytree(output, copy)
    manifest = copy / "train.manifest.json"
    content = json.loads(manifest.read_text())
    first = content["formats"]["tfrecord"]["shards"][0]
    (tmp_path / "secret").mkdir()
    name = first["key"].rpartition("/")[2]
    (copy / first["key"]).rename(tmp_path / "secret" / name)
    first["key"] = key.format(name).replace("/secret", f"{tmp_path}/secret", not key.find("/"))
    manifest.write_text(json.dumps(content))
    records = Records(dataprep.open(copy, format="tfrecord"), check=False)
    with pytest.raises(PermissionRefused, match="would leave"):
        records.image(0)


def test_neighbours_are_one_request(output: Path, calls: Calls) -> None:
    """Neighbours are read by one request, because a request takes as long as many records."""
    records = Records(dataprep.open(in_memory(objects(open_store(output))).uri))
    read = calls(Records, "_read")
    records.fetch([8, 5, 7, 6])
    assert [len(where.positions) for _, where in read] == [4]


def test_one_request_confirms_the_shards_of_a_window(output: Path, calls: Calls) -> None:
    """Each shard is confirmed once, and shards that are read together share the request."""
    records = Records(dataprep.open(in_memory(objects(open_store(output))).uri))
    requests = calls(MemoryStore, "version")
    records.fetch(range(120))
    assert [key for _, key in requests] == ["train.manifest.json"]
    records.fetch(range(120))
    assert len(requests) == 1


def test_the_next_window_is_requested_before_the_first_is_confirmed(
    output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The request that confirms a window delays only the samples of this window."""
    records = Records(dataprep.open(in_memory(objects(open_store(output))).uri))
    requested_windows = threading.Semaphore(0)
    is_requested_before: list[bool] = []
    fetch, version = Records.fetch, MemoryStore.version

    def noting_fetch(records: Records, *arguments: Any, **options: Any) -> list[Buffer]:
        requested_windows.release()
        return fetch(records, *arguments, **options)

    def waiting_version(store: MemoryStore, key: str) -> str:
        if not is_requested_before:
            requested_windows.acquire()  # the first window
            is_requested_before.append(requested_windows.acquire(timeout=20))
        return version(store, key)

    monkeypatch.setattr(Records, "fetch", noting_fetch)
    monkeypatch.setattr(MemoryStore, "version", waiting_version)
    streamed = list(records.stream(np.arange(120), batch_samples=2))
    assert len(streamed) == 120
    assert is_requested_before == [True]


@pytest.mark.parametrize("layout", ["tfds", {"x" * 60: "encoded", "y": "label"}], ids=str)
def test_layouts(tree: Path, tmp_path: Path, layout: str | dict[str, str]) -> None:
    """The image is found under the name of each layout."""
    job = {"source": str(tree), "output": str(tmp_path / "out"), "layout": layout}
    dataprep.shard(dataprep.ShardConfig.model_validate(job))
    dataset = dataprep.open(tmp_path / "out")
    records = Records(dataset)
    assert [bytes(records.image(i)) for i in range(120)] == images_of(dataset)


def open_shards() -> int:
    """The number of shards that this process has open."""
    paths = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            paths.append(str(descriptor.readlink()))
    return sum("/train-0" in path for path in paths)


def test_threads_share_few_open_files(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight threads read with two open shards, and no shard is open afterwards."""
    monkeypatch.setattr(module, "_MAX_OPEN_FILES", 2)
    records = Records(dataset)
    with ThreadPoolExecutor(8) as pool:
        read_images = [bytes(image) for image in pool.map(records.image, [*range(120)] * 3)]
    assert read_images == images_of(dataset) * 3
    assert 2 <= open_shards() < len(dataset.shards())
    del records
    gc.collect()
    assert open_shards() == 0


def _in_child(records: Records, answer: multiprocessing.SimpleQueue[bytes]) -> None:
    """Read one image in a child process, and send it back."""
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
    """Records of a copy, and its first shard, which a test may damage."""
    assert isinstance(dataset.store, LocalStore)
    shutil.copytree(dataset.store.root, tmp_path / "copy")
    records = Records(dataprep.open(tmp_path / "copy", format=dataset.format))
    return records, tmp_path / "copy" / dataset.shards()[0].key


@pytest.mark.parametrize(
    ("damage", "kind", "index"),
    [
        (lambda path: os.truncate(path, 100), RecordError, 0),
        (lambda path: os.truncate(path, 100), RecordError, 1),
        (lambda path: path.write_bytes(b"\0" * path.stat().st_size), CorruptRecord, 0),
        (Path.unlink, ObjectNotFound, 0),
    ],
    ids=["inside", "before", "zeros", "missing"],
)
def test_a_damaged_shard(
    copied: tuple[Records, Path],
    damage: Callable[[Path], object],
    kind: type[Exception],
    index: int,
) -> None:
    """The error names the damaged shard."""
    records, path = copied
    damage(path)
    with pytest.raises(kind, match=path.name):
        records.image(index)


@pytest.mark.parametrize("check", [True, False])
def test_a_flipped_byte(copied: tuple[Records, Path], dataset: Dataset, check: bool) -> None:
    """A flipped byte is detected by the record's own checksum, or by that in the table."""
    _, path = copied
    location = dataset.place(5)
    data = bytearray(path.read_bytes())
    data[location.offset + location.length // 2] ^= 1
    path.write_bytes(data)
    opened = dataprep.open(path.parents[1], format=dataset.format, check=check)
    records = Records(opened)
    reads: list[Callable[[], object]] = [
        lambda: records.image(5),
        lambda: opened[5],
        lambda: list(opened),
    ]
    if dataset.format == "tfrecord" or check:
        for read in reads:
            with pytest.raises(CorruptRecord, match="00000"):
                read()
    else:
        assert [bool(read()) for read in reads] == [True] * 3
    assert bytes(records.image(4)) == images_of(dataset)[4]
