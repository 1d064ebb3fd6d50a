"""Tests of dataprep.adapters.records."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import secrets
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dataprep
from dataprep.adapters import records as module
from dataprep.adapters.records import Records, feature_key, image_field
from dataprep.errors import CorruptRecord, ObjectNotFound, TruncatedRecord
from dataprep.formats.example import BytesList, Int64List, encode_example
from dataprep.stores import StoreOptions, open_store
from iobench.s3_server import MotoServer


def test_images_and_labels(dataset: dataprep.Dataset) -> None:
    """Every image is the data set's, and every label its 0-based one."""
    records = Records(dataset)
    assert len(records) == len(dataset) == 120
    assert records.labels.tolist() == dataset.labels.tolist()
    assert [bytes(records.image(i)) for i in range(120)] == [bytes(s.image) for s in dataset]


def test_by_shard(dataset: dataprep.Dataset) -> None:
    """Shards hold all samples, one after the other."""
    records = Records(dataset)
    seen: list[int] = []
    for number in range(len(records.shard_keys)):
        content = memoryview(records.shard(number))
        for index in records.samples_of(number):
            assert bytes(records.image_within(content, index)) == bytes(records.image(index))
            seen.append(index)
    assert seen == list(range(120))


def test_pickle(dataset: dataprep.Dataset) -> None:
    """A pickled copy opens its own files."""
    records = Records(dataset)
    records.image(0)
    copy = pickle.loads(pickle.dumps(records))
    assert copy._handles is None
    assert bytes(copy.image(119)) == bytes(records.image(119))


def test_threads(dataset: dataprep.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads share one connection, and few files stay open."""
    monkeypatch.setattr(module, "_OPEN_FILES", 2)
    records = Records(dataset)
    expected = [bytes(sample.image) for sample in dataset]
    with ThreadPoolExecutor(8) as pool:
        stores = set(pool.map(lambda _: id(records._opened().snapshot.store), range(8)))
        found = list(pool.map(lambda index: bytes(records.image(index)), [*range(120)] * 3))
    assert len(stores) == 1
    assert found == expected * 3
    assert records._handles is not None
    assert len(records._handles._files) == 2


def _in_child(records: Records, answer: multiprocessing.SimpleQueue[tuple[int, bytes]]) -> None:
    answer.put((id(records._opened().snapshot.store), bytes(records.image(7))))


def test_fork(output: Path, bucket: str, s3_server: MotoServer) -> None:
    """A forked process reads through a connection of its own, though its parent had one."""
    options = StoreOptions(endpoint_url=s3_server.url)
    remote, local = open_store(f"s3://{bucket}/x", options), open_store(output)
    for entry in local.list():
        remote.put(entry.key, local.get(entry.key))
    records = Records(dataprep.open(f"s3://{bucket}/x", options=options))
    expected, store = bytes(records.image(7)), id(records._opened().snapshot.store)
    context = multiprocessing.get_context("fork")
    answer: multiprocessing.SimpleQueue[tuple[int, bytes]] = context.SimpleQueue()
    child = context.Process(target=_in_child, args=(records, answer))
    child.start()
    other, image = answer.get()
    child.join()
    assert image == expected
    assert other != store


def test_memory(output: Path) -> None:
    """Any store will do."""
    memory = open_store(f"memory://{secrets.token_hex(4)}")
    local = open_store(output)
    for entry in local.list():
        memory.put(entry.key, local.get(entry.key))
    records = Records(dataprep.open(memory.uri))
    assert bytes(records.image(3)) == bytes(dataprep.open(output)[3].image)


def test_few_files_are_open(dataset: dataprep.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many shards there are, a bounded number is open, and all are closed at the end."""
    monkeypatch.setattr(module, "_OPEN_FILES", 2)
    records = Records(dataset)
    for index in range(0, 120, 7):
        records.image(index)
    assert open_shards() == 2
    del records
    assert open_shards() == 0


def open_shards() -> int:
    """How many shards this process has open."""
    gone = contextlib.suppress(FileNotFoundError)
    paths = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with gone:
            paths.append(str(descriptor.readlink()))
    return sum("/train-0" in path for path in paths)


@pytest.fixture
def copied(dataset: dataprep.Dataset, tmp_path: Path) -> tuple[Records, list[Path]]:
    """Records whose shards may be damaged."""
    assert isinstance(dataset.store.uri, str)
    shutil.copytree(dataset.store.uri, tmp_path / "copy")
    records = Records(dataprep.open(tmp_path / "copy", format=dataset.format))
    return records, [tmp_path / "copy" / key for key in records.shard_keys]


def test_truncated(copied: tuple[Records, list[Path]]) -> None:
    """A shard that ends early is told by its key."""
    records, paths = copied
    os.truncate(paths[0], 100)
    with pytest.raises(TruncatedRecord, match=records.shard_keys[0]):
        records.image(0)
    with pytest.raises(TruncatedRecord, match=records.shard_keys[0]):
        records.image(1)


def test_corrupt(copied: tuple[Records, list[Path]]) -> None:
    """A broken frame is told by its key."""
    records, paths = copied
    paths[0].write_bytes(b"\0" * paths[0].stat().st_size)
    with pytest.raises(CorruptRecord, match=records.shard_keys[0]):
        records.image(0)


def test_gone(copied: tuple[Records, list[Path]]) -> None:
    """A shard that is not there is an ObjectNotFound, as from any store."""
    records, paths = copied
    paths[0].unlink()
    with pytest.raises(ObjectNotFound, match=records.shard_keys[0]):
        records.image(0)


class TestImageField:
    @given(st.binary(max_size=40_000), st.binary(max_size=50), st.integers(0, 1000))
    def test_finds_it(self, image: bytes, text: bytes, label: int) -> None:
        """Of all features the image alone is found."""
        example = encode_example(
            {
                "image/class/text": BytesList([text]),
                "image/class/label": Int64List([label]),
                "image/encoded": BytesList([image]),
                "image/width": Int64List([label]),
            }
        )
        found = image_field(example)
        assert found is not None
        assert bytes(found) == image

    @pytest.mark.parametrize(
        "example",
        [
            encode_example({"image": BytesList([b"x"])}),
            encode_example({"image/encoded": Int64List([1, 2])}),
            encode_example({"image/encoded": BytesList([b"one", b"two"])}),
            encode_example({"image/encoded": BytesList([])}),
            encode_example({"image/encoded": BytesList([b"x" * 100])})[:-1],
            b"\x0a\x0dimage/encoded\x12",
            b"\x0a\x0dimage/encoded\x12\xff\xff",
        ],
        ids=["another", "numbers", "two", "none", "cut", "ends", "no size"],
    )
    def test_doubt(self, example: bytes) -> None:
        """What is not exactly one image is left to the full decoder."""
        assert image_field(example) is None

    @given(st.text(max_size=140), st.binary(max_size=300), st.text(max_size=9))
    def test_by_any_name(self, feature: str, image: bytes, other: str) -> None:
        """A layout may call it anything; a name too long to look for is left to the decoder."""
        others = {other: BytesList([b"no image"]), other + "/x": BytesList([b"nor this"])}
        example = encode_example({**others, feature: BytesList([image])})
        key = feature_key(feature)
        if len(feature.encode()) > 127:
            assert key == b""
            return
        found = image_field(example, key)
        assert found is not None
        assert bytes(found) == image
