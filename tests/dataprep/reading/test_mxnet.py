"""``dataprep.to_mxnet`` works with MXNet itself."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dataprep
from dataprep.errors import ConfigError, CorruptRecord, DatasetError, ObjectNotFound
from dataprep.reading.augment import Augmentation, sample_rng
from dataprep.reading.dataset import Dataset
from dataprep.reading.epoch_order import Order
from dataprep.reading.normalisation import IMAGENET_MEAN, IMAGENET_STD
from dataprep.reading.record_reader import Records

pytestmark = [
    pytest.mark.frameworks,
    pytest.mark.filterwarnings("default"),
    pytest.mark.usefixtures("mx"),
]

PLAIN = Augmentation(size=280, random=False, normalise=False)
SMALL = Augmentation(size=32)


@pytest.fixture
def local(output: Path) -> Dataset:
    """The data set on disk, whose labels in records count from 1."""
    dataset = dataprep.open(output, format="recordio")
    assert dataset.manifest.formats["recordio"].label_offset == 1
    return dataset


@pytest.fixture(params=["disk", "s3"])
def dataset(local: Dataset, request: pytest.FixtureRequest) -> Dataset:
    """The data set on disk and on S3."""
    if request.param == "disk":
        return local
    opened: Callable[[str], Dataset] = request.getfixturevalue("on_s3")
    return opened("recordio")


def labels(batches: Any) -> list[int]:
    """The labels of one epoch in order."""
    return [int(label) for batch in batches for label in batch.label[0].asnumpy()]


def stored_bytes(folder: Path) -> int:
    """The size of all files in a folder, in bytes."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_epochs(dataset: Dataset) -> None:
    """Each epoch has each sample once, in another order. Only the last batch is smaller."""
    batches = dataprep.to_mxnet(dataset, batch_size=50, augmentation=SMALL)
    labels_of_epochs = []
    for _ in range(3):
        epoch = [(batch.data[0].shape[0], batch.pad, labels([batch])) for batch in batches]
        assert [(size, pad) for size, pad, _ in epoch] == [(50, 0), (50, 0), (20, 0)]
        labels_of_epochs.append([label for _, _, batch_labels in epoch for label in batch_labels])
        assert sorted(labels_of_epochs[-1]) == sorted(dataset.labels.tolist())
        batches.reset()
    assert labels_of_epochs[0] != labels_of_epochs[1] != labels_of_epochs[2]


def test_each_iteration_is_the_next_epoch(dataset: Dataset) -> None:
    """An iteration is the next epoch, with ``reset`` or without, after a break and a resume."""
    options: dict[str, Any] = {"batch_size": 20, "augmentation": SMALL}

    def of_epoch(epoch: int, **more: Any) -> list[int]:
        return labels(dataprep.to_mxnet(dataset, epoch=epoch, **more, **options))

    batches = dataprep.to_mxnet(dataset, start=40, **options)
    batches.reset()  # the epoch was not read
    assert labels(batches) == of_epoch(0, start=40)
    assert labels(batches) == of_epoch(1)
    batches.reset()
    batches.reset()
    unfinished = iter(batches)
    assert labels([next(unfinished)]) == of_epoch(2)[:20]
    assert labels(batches) == of_epoch(3)
    with pytest.raises(DatasetError, match="another epoch of this iterator has begun"):
        next(unfinished)
    batches.set_epoch(8)
    assert labels([batches.next()]) == of_epoch(8)[:20]
    assert labels(batches) == of_epoch(9)
    assert labels(dataprep.to_mxnet(dataset, start=120, **options)) == of_epoch(1)


def test_epochs_and_ranks_that_are_refused(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A start beyond the end, epochs without a step and missing ranks are refused."""
    options: dict[str, Any] = {"batch_size": 70, "augmentation": SMALL}
    with pytest.raises(ConfigError, match="start 500 is beyond the end"):
        dataprep.to_mxnet(dataset, start=500, **options)
    with pytest.raises(ConfigError, match="even='drop' leaves no step"):
        dataprep.to_mxnet(dataset, rank=0, world_size=2, even="drop", **options)
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.warns(UserWarning, match="to_mxnet reads all samples in this process"):
        dataprep.to_mxnet(dataset, **options)


def test_the_order_depends_on_seed_and_epoch(dataset: Dataset) -> None:
    """Any epoch can be selected, and repeats its order."""
    options: dict[str, Any] = {"batch_size": 20, "augmentation": SMALL}
    batches = dataprep.to_mxnet(dataset, seed=1, **options)
    first = labels(batches)
    batches.reset()
    second = labels(batches)
    batches.set_epoch(0)
    assert labels(batches) == first
    assert labels(dataprep.to_mxnet(dataset, seed=1, epoch=1, **options)) == second
    assert labels(dataprep.to_mxnet(dataset, seed=2, **options)) != first


def test_shapes(mx: Any, local: Dataset) -> None:
    """Batches have the announced shapes."""
    batches = dataprep.to_mxnet(local, batch_size=8, augmentation=Augmentation(size=48))
    assert isinstance(batches, mx.io.DataIter)
    batch = batches.next()
    assert [tuple(shape) for _, shape in batches.provide_data] == [batch.data[0].shape]
    assert [tuple(shape) for _, shape in batches.provide_label] == [batch.label[0].shape]
    assert batch.data[0].shape == (8, 3, 48, 48)
    assert batch.data[0].dtype == batch.label[0].dtype == np.float32


def test_images(dataset: Dataset, tmp_path: Path) -> None:
    """Without shuffling and augmentation, the images and labels are the stored ones.

    Temporary files for ImageRecordIter are removed.
    """
    batches = dataprep.to_mxnet(
        dataset, batch_size=16, augmentation=PLAIN, shuffle=False, cache_dir=tmp_path
    )
    copied, position = [], 0
    for batch in batches:
        copied.append(stored_bytes(tmp_path))
        for image, label in zip(batch.data[0].asnumpy(), batch.label[0].asnumpy(), strict=True):
            sample = dataset[position]
            assert int(label) == sample.label
            # Both crop 280 of 320 pixels, so that nothing is interpolated.
            expected = PLAIN(sample.image, sample_rng(0, 0, 0)).astype(float)
            assert np.abs(image - expected).mean() < 2
            position += 1
    assert position == 120
    assert max(copied) > 0
    assert list(tmp_path.iterdir()) == []


def test_normalised(local: Dataset) -> None:
    """Images are normalised by ImageNet's mean and standard deviation."""
    raw, normalised = (
        dataprep.to_mxnet(
            local, batch_size=120, shuffle=False, augmentation=replace(PLAIN, normalise=normalise)
        )
        .next()
        .data[0]
        .asnumpy()
        for normalise in (False, True)
    )
    mean, deviation = np.array(IMAGENET_MEAN), np.array(IMAGENET_STD)
    expected = (raw / 255 - mean[:, None, None]) / deviation[:, None, None]
    assert np.allclose(normalised, expected, atol=1e-4)


@pytest.mark.parametrize("colours", [{"jitter": 0.4}, {"noise": 0.5}], ids=str)
def test_augmentation_depends_on_seed_and_epoch(dataset: Dataset, colours: Any) -> None:
    """Crops, flips and colours repeat with seed and epoch, and differ with another of them."""

    def images(seed: int, epoch: int, **options: Any) -> Any:
        augmentation = Augmentation(size=32, normalise=False, **options)
        batches = dataprep.to_mxnet(
            dataset,
            batch_size=120,
            augmentation=augmentation,
            shuffle=False,
            seed=seed,
            epoch=epoch,
            threads=2,
        )
        return batches.next().data[0].asnumpy()

    first = images(1, 0, **colours)
    assert np.array_equal(images(1, 0, **colours), first)
    for other in (images(1, 1, **colours), images(2, 0, **colours)):
        assert not any(np.array_equal(*pair) for pair in zip(first, other, strict=True))
    assert not np.array_equal(images(1, 0), first)


@pytest.fixture
def churn() -> Iterator[None]:
    """A thread that opens and closes files all the time."""
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
def test_several_files(
    on_s3: Callable[[str], Dataset], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every epoch has all samples if it is read from several local files in turn."""
    dataset = on_s3("recordio")
    monkeypatch.setattr("dataprep.reading.mxnet.LOCAL_FILE_BYTES", 100_000)
    batches = dataprep.to_mxnet(dataset, batch_size=9, augmentation=PLAIN, cache_dir=tmp_path)
    for _ in range(5):
        assert len(labels(batches)) == 120
        batches.reset()


def test_closed_early(on_s3: Callable[[str], Dataset], tmp_path: Path) -> None:
    """Temporary files are removed if the iteration ends early."""
    batches = dataprep.to_mxnet(
        on_s3("recordio"), batch_size=16, augmentation=SMALL, cache_dir=tmp_path
    )
    batches.next()
    assert stored_bytes(tmp_path) > 0
    batches.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("even", ["keep", "drop", "pad"])
def test_ranks(local: Dataset, even: Any) -> None:
    """Ranks have the order of torch's iterable style."""
    records = Records(local)
    for rank in range(3):
        options: dict[str, Any] = {"rank": rank, "world_size": 3, "even": even, "start": 21}
        batches = dataprep.to_mxnet(local, batch_size=7, augmentation=SMALL, epoch=2, **options)
        order = Order(global_batch=21, epoch=2, **options)
        for epoch in (2, 3):
            assert labels(batches) == records.labels[records.samples_of_rank(order, epoch)].tolist()
            batches.reset()


@pytest.mark.parametrize("damage", ["missing", "short", "flipped"])
def test_a_damaged_shard(output: Path, tmp_path: Path, damage: str) -> None:
    """The error names the damaged shard."""
    copy = Path(shutil.copytree(output, tmp_path / "out"))
    dataset = dataprep.open(copy, format="recordio")
    shard = copy / dataset.shards()[1].key
    if damage == "missing":
        shard.unlink()
    elif damage == "short":
        shard.write_bytes(shard.read_bytes()[:-100])
    else:
        shard.write_bytes(shard.read_bytes()[:-100] + bytes(100))
    batches = dataprep.to_mxnet(dataset, batch_size=8, augmentation=SMALL)
    with pytest.raises((ObjectNotFound, CorruptRecord), match=shard.name):
        list(batches)


def test_several_labels(tree: Path, tmp_path: Path) -> None:
    """Records with three labels have their class as label, from 0."""
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
    batches = dataprep.to_mxnet(dataset, batch_size=4, augmentation=PLAIN, shuffle=False)
    assert labels(batches) == dataset.labels.tolist()
    assert sorted(dataset.labels.tolist()) == sorted(i % 3 for i in range(10))


def test_refused(local: Dataset) -> None:
    """A request that MXNet cannot fulfil is refused before anything is read."""
    with pytest.raises(ConfigError, match="layout='CHW'"):
        dataprep.to_mxnet(local, batch_size=8, augmentation=Augmentation(layout="HWC"))
    config = {**local.manifest.config, "image": {"encoding": "webp"}}
    local.manifest = replace(local.manifest, config=config)
    with pytest.raises(ConfigError, match=r"does not decode WebP: .*dataprep\.to_torch"):
        dataprep.to_mxnet(local, batch_size=4)
