"""Tests of dataprep.to_mxnet, with MXNet itself."""

from __future__ import annotations

import os
import shutil
import threading
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dataprep
from dataprep.adapters.frameworks import import_framework
from dataprep.augment import Augmentation, sample_rng
from dataprep.errors import ConfigError, DatasetError, ObjectNotFound
from dataprep.stores import StoreOptions, open_store
from iobench.s3_server import MotoServer
from tests.open_files import unnamed_bytes

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("default")]

PLAIN = Augmentation(size=280, random=False, normalise=False)


@pytest.fixture(scope="module")
def mx() -> Any:
    """MXNet, if it is there."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return import_framework("mxnet")
    except ImportError as error:
        pytest.skip(str(error))


@pytest.fixture
def local(mx: Any, output: Path) -> dataprep.Dataset:
    """The data set on disk; labels in its records count from 1."""
    dataset = dataprep.open(output, format="recordio")
    assert dataset.manifest.formats["recordio"].label_offset == 1
    return dataset


@pytest.fixture
def remote(local: dataprep.Dataset, bucket: str, s3_server: MotoServer) -> dataprep.Dataset:
    """The data set on S3."""
    options = StoreOptions(endpoint_url=s3_server.url)
    store = open_store(f"s3://{bucket}/out", options)
    for entry in local.store.list():
        store.put(entry.key, local.store.get(entry.key))
    return dataprep.open(store.uri, format="recordio", options=options)


def labels(batches: Any) -> list[int]:
    """The labels of one epoch in order."""
    return [int(label) for batch in batches for label in batch.label[0].asnumpy()]


def test_epochs(local: dataprep.Dataset) -> None:
    """Each epoch has each sample once, counted from 0, in another order; the last is short."""
    batches = dataprep.to_mxnet(local, batch_size=50, augmentation=Augmentation(size=32))
    seen = []
    for _ in range(3):
        sizes = []
        found: list[int] = []
        for batch in batches:
            sizes.append(batch.data[0].shape[0])
            assert batch.pad == 0
            found += labels([batch])
        assert sizes == [50, 50, 20]
        assert sorted(found) == sorted(local.labels.tolist())
        seen.append(found)
        batches.reset()
    assert seen[0] != seen[1] != seen[2]


def test_order_is_of_seed_and_epoch(local: dataprep.Dataset) -> None:
    """Any epoch can be gone to, and is the same again."""
    options: dict[str, Any] = {"batch_size": 20, "augmentation": Augmentation(size=32)}
    batches = dataprep.to_mxnet(local, seed=1, **options)
    first = labels(batches)
    batches.reset()
    second = labels(batches)
    batches.set_epoch(0)
    assert labels(batches) == first
    assert labels(dataprep.to_mxnet(local, seed=1, epoch=1, **options)) == second
    assert labels(dataprep.to_mxnet(local, seed=2, **options)) != first


def test_shapes(mx: Any, local: dataprep.Dataset) -> None:
    """What is announced is what comes."""
    batches = dataprep.to_mxnet(local, batch_size=8, augmentation=Augmentation(size=48))
    assert isinstance(batches, mx.io.DataIter)
    batch = batches.next()
    assert [tuple(shape) for _, shape in batches.provide_data] == [batch.data[0].shape]
    assert [tuple(shape) for _, shape in batches.provide_label] == [batch.label[0].shape]
    assert batch.data[0].shape == (8, 3, 48, 48)
    assert batch.data[0].dtype == batch.label[0].dtype == np.float32


def test_images(local: dataprep.Dataset) -> None:
    """Unshuffled and not augmented, images are the stored ones beside their labels."""
    batches = dataprep.to_mxnet(local, batch_size=16, augmentation=PLAIN, shuffle=False)
    place = 0
    for batch in batches:
        pairs = zip(batch.data[0].asnumpy(), batch.label[0].asnumpy(), strict=True)
        for image, label in pairs:
            expected = PLAIN(local[place].image, sample_rng(0, 0, 0)).astype(float)
            assert int(label) == local[place].label
            # Both have cut 280 of 320 pixels, so that nothing is interpolated.
            assert np.abs(image - expected).mean() < 2
            place += 1
    assert place == 120


def test_normalised(local: dataprep.Dataset) -> None:
    """Mean and deviation are ImageNet's, and colours change only when asked to."""
    raw, normalised = (
        dataprep.to_mxnet(
            local,
            batch_size=120,
            shuffle=False,
            augmentation=Augmentation(size=280, random=False, normalise=normalise),
        )
        .next()
        .data[0]
        .asnumpy()
        for normalise in (False, True)
    )
    mean, deviation = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
    expected = (raw / 255 - mean[:, None, None]) / deviation[:, None, None]
    assert np.allclose(normalised, expected, atol=1e-4)


def test_remote(remote: dataprep.Dataset, tmp_path: Path) -> None:
    """Copied shard by shard it is the same epoch in the same whole batches."""
    limit = 2 * max(shard.bytes for shard in remote.manifest.formats["recordio"].shards)
    batches = dataprep.to_mxnet(
        remote,
        batch_size=16,
        augmentation=PLAIN,
        shuffle=False,
        cache_dir=tmp_path,
        cache_bytes=limit,
    )
    place = 0
    held = []
    for _ in range(2):
        sizes = []
        for batch in batches:
            held.append(unnamed_bytes(tmp_path))
            sizes.append(batch.data[0].shape[0])
            for image, label in zip(batch.data[0].asnumpy(), batch.label[0].asnumpy(), strict=True):
                sample = remote[place % 120]
                expected = PLAIN(sample.image, sample_rng(0, 0, 0)).astype(float)
                assert int(label) == sample.label
                assert np.abs(image - expected).mean() < 2
                place += 1
        assert sizes == [16] * 7 + [8]
        assert unnamed_bytes(tmp_path) == 0
        batches.reset()
    assert place == 240
    assert 0 < max(held) <= limit


@pytest.fixture
def churn() -> Iterator[None]:
    """Another thread of this process that opens and closes files all the time."""
    stop = threading.Event()

    def run() -> None:
        while not stop.is_set():
            for descriptor in [os.open(os.devnull, os.O_RDONLY) for _ in range(20)]:
                os.close(descriptor)

    thread = threading.Thread(target=run)
    thread.start()
    yield
    stop.set()
    thread.join()


@pytest.mark.usefixtures("churn")
def test_remote_while_files_come_and_go(remote: dataprep.Dataset, tmp_path: Path) -> None:
    """ImageRecordIter looks at all that lies beside its files: nothing does that changes."""
    batches = dataprep.to_mxnet(remote, batch_size=50, augmentation=PLAIN, cache_dir=tmp_path)
    for _ in range(5):
        assert len(labels(batches)) == 120
        batches.reset()


def test_closed_early(remote: dataprep.Dataset, tmp_path: Path) -> None:
    """Nothing that was copied stays behind."""
    batches = dataprep.to_mxnet(
        remote, batch_size=16, augmentation=Augmentation(size=32), cache_dir=tmp_path
    )
    batches.next()
    assert unnamed_bytes(tmp_path) > 0
    batches.close()
    assert unnamed_bytes(tmp_path) == 0


def test_augmentation_is_of_seed_and_epoch(remote: dataprep.Dataset, tmp_path: Path) -> None:
    """Crops come back with seed and epoch, differ with either, and from group to group."""

    def images(seed: int, epoch: int) -> Any:
        batches = dataprep.to_mxnet(
            remote,
            batch_size=120,
            augmentation=Augmentation(size=32),
            shuffle=False,
            seed=seed,
            epoch=epoch,
            threads=2,
            cache_bytes=2 * max(s.bytes for s in remote.manifest.formats["recordio"].shards),
        )
        return batches.next().data[0].asnumpy()

    first = images(1, 0)
    assert np.array_equal(images(1, 0), first)
    for other in (images(1, 1), images(2, 0)):
        assert not any(np.array_equal(*pair) for pair in zip(first, other, strict=True))


@pytest.mark.parametrize("damage", ["missing", "short"])
def test_damaged_shards(mx: Any, output: Path, tmp_path: Path, damage: str) -> None:
    """What ImageRecordIter passes over, or dies of, is an error that names the shard."""
    copy = Path(shutil.copytree(output, tmp_path / "out"))
    dataset = dataprep.open(copy, format="recordio")
    shard = copy / dataset.manifest.formats["recordio"].shards[1].key
    if damage == "missing":
        shard.unlink()
    else:
        shard.write_bytes(shard.read_bytes()[:-100])
    batches = dataprep.to_mxnet(dataset, batch_size=8, augmentation=Augmentation(size=32))
    with pytest.raises((ObjectNotFound, DatasetError), match=shard.name):
        batches.next()


def test_a_path_that_means_something_else(mx: Any, output: Path, tmp_path: Path) -> None:
    """Semicolons part paths and the like; that is said at once."""
    copy = Path(shutil.copytree(output, tmp_path / "a;b"))
    with pytest.raises(ConfigError, match="';' in a path"):
        dataprep.to_mxnet(dataprep.open(copy, format="recordio"), batch_size=8)


def test_refused(local: dataprep.Dataset, remote: dataprep.Dataset, output: Path) -> None:
    """What cannot be is said before anything is read."""
    with pytest.raises(ConfigError, match="format='recordio'"):
        dataprep.to_mxnet(dataprep.open(output, format="tfrecord"), batch_size=8)
    with pytest.raises(ConfigError, match="layout='CHW'"):
        dataprep.to_mxnet(local, batch_size=8, augmentation=Augmentation(layout="HWC"))
    with pytest.raises(ConfigError, match="do not hold two shards"):
        dataprep.to_mxnet(remote, batch_size=8, cache_bytes=1000)


def test_several_labels(mx: Any, tree: Path, tmp_path: Path) -> None:
    """Records with three labels each give their class, from 0."""
    images = sorted(tree.glob("*/*"))[:10]
    lines = [f"{i}\t{i % 3}\t{i / 4}\t-1.5\t{path}\n" for i, path in enumerate(images)]
    (tmp_path / "x.lst").write_text("".join(lines))
    config = dataprep.ShardConfig.model_validate(
        {
            "source": str(tmp_path / "x.lst"),
            "kind": "listing",
            "output": str(tmp_path / "out"),
            "format": ("recordio",),
            "label_offset": {"recordio": 1},
        }
    )
    dataprep.shard(config)
    dataset = dataprep.open(tmp_path / "out")
    made = dataprep.to_mxnet(dataset, batch_size=4, augmentation=PLAIN, shuffle=False)
    assert labels(made) == dataset.labels.tolist()
    assert sorted(dataset.labels.tolist()) == sorted(i % 3 for i in range(10))


def test_webp_is_refused(local: dataprep.Dataset) -> None:
    """MXNet's wheel decodes none, which is said before its threads find out."""
    config = {**local.manifest.config, "image": {"encoding": "webp"}}
    local.manifest = replace(local.manifest, config=config)
    with pytest.raises(ConfigError, match=r"MXNet does not decode WebP: .*dataprep\.to_torch"):
        dataprep.to_mxnet(local, batch_size=4)
