"""Tests of dataprep.to_tf, with TensorFlow itself."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dataprep
from dataprep.adapters.frameworks import import_framework
from dataprep.augment import Augmentation, sample_rng
from dataprep.errors import ConfigError
from dataprep.stores import StoreOptions, open_store
from iobench.s3_server import MotoServer

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("default")]


@pytest.fixture(scope="module")
def tf() -> Any:
    """TensorFlow, if it is there."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return import_framework("tensorflow")
    except ImportError as error:
        pytest.skip(str(error))


@pytest.fixture
def local(tf: Any, output: Path) -> dataprep.Dataset:
    """The data set on disk."""
    return dataprep.open(output, format="tfrecord")


@pytest.fixture(params=["disk", "s3"])
def dataset(local: dataprep.Dataset, request: pytest.FixtureRequest) -> dataprep.Dataset:
    """The data set, read by TensorFlow's reader and by ours."""
    if request.param == "disk":
        return local
    bucket: str = request.getfixturevalue("bucket")
    server: MotoServer = request.getfixturevalue("s3_server")
    options = StoreOptions(endpoint_url=server.url)
    remote = open_store(f"s3://{bucket}/out", options)
    for entry in local.store.list():
        remote.put(entry.key, local.store.get(entry.key))
    return dataprep.open(remote.uri, options=options)


def stored(dataset: dataprep.Dataset) -> list[tuple[bytes, int]]:
    """What must come out."""
    return [(bytes(sample.image), sample.label) for sample in dataset]


def samples(made: Any) -> list[tuple[Any, int]]:
    """Everything that came out."""
    return [(image, int(label)) for image, label in made.as_numpy_iterator()]


def test_encoded(dataset: dataprep.Dataset) -> None:
    """Without decoding and shuffling it is the data set, labels counted from 0."""
    made = dataprep.to_tf(dataset, decode=False, shuffle=False, parallel_calls=0)
    assert samples(made) == stored(dataset)


@pytest.mark.parametrize("calls", [0, 1, 3, None])
def test_each_sample_once(dataset: dataprep.Dataset, calls: int | None) -> None:
    """Shuffled, with any number of threads, every sample comes once an epoch."""
    made = dataprep.to_tf(dataset, decode=False, parallel_calls=calls)
    first, second = samples(made), samples(made)
    assert sorted(first) == sorted(second) == sorted(stored(dataset))
    assert first != stored(dataset)


def test_epoch_by_number(tf: Any, dataset: dataprep.Dataset) -> None:
    """Images and order are those of seed and epoch."""

    def made(**options: Any) -> tuple[list[int], Any]:
        found = samples(dataprep.to_tf(dataset, augmentation=Augmentation(size=16), **options))
        return [label for _, label in found], np.stack([image for image, _ in found])

    labels, images = made(seed=1, epoch=0)
    again = made(seed=1, epoch=0)
    assert again[0] == labels
    assert np.array_equal(again[1], images)
    assert made(seed=1, epoch=1)[0] != labels
    assert made(seed=2, epoch=0)[0] != labels


@pytest.mark.parametrize("global_seed", [0, 7])
def test_the_global_seed_has_no_part(tf: Any, local: dataprep.Dataset, global_seed: int) -> None:
    """Order is of seed and epoch, whatever seed the program has for other things."""
    expected = samples(dataprep.to_tf(local, decode=False))
    tf.random.set_seed(global_seed)
    try:
        assert samples(dataprep.to_tf(local, decode=False)) == expected
    finally:
        tf.random.set_seed(None)


def test_epoch_by_variable(tf: Any, local: dataprep.Dataset) -> None:
    """A variable that is assigned before an iteration makes it that epoch."""
    epoch = tf.Variable(0, dtype=tf.int64)
    options: dict[str, Any] = {"decode": False}
    made = dataprep.to_tf(local, epoch=epoch, **options)
    for number in (2, 0, 5):
        epoch.assign(number)
        assert samples(made) == samples(dataprep.to_tf(local, epoch=number, **options))


def test_each_iteration_is_an_epoch(dataset: dataprep.Dataset) -> None:
    """Iterating again is the next epoch, and one that begins there is the same."""
    options: dict[str, Any] = {"augmentation": Augmentation(size=16), "batch_size": 120}
    made = dataprep.to_tf(dataset, epoch=3, **options)
    assert len(made) == 1
    passes = [next(iter(made.as_numpy_iterator())) for _ in range(2)]
    for number, (images, labels) in enumerate(passes):
        again = dataprep.to_tf(dataset, epoch=3 + number, **options)
        expected = next(iter(again.as_numpy_iterator()))
        assert np.array_equal(images, expected[0])
        assert np.array_equal(labels, expected[1])
    assert not np.array_equal(passes[0][1], passes[1][1])


@pytest.mark.parametrize("normalise", [True, False])
@pytest.mark.parametrize("random", [True, False])
def test_batches(local: dataprep.Dataset, normalise: bool, random: bool) -> None:
    """Batches are (N, size, size, 3) with int64 labels; the last one is short."""
    augmentation = Augmentation(size=40, random=random, jitter=0.4, noise=0.1, normalise=normalise)
    made = list(dataprep.to_tf(local, batch_size=50, augmentation=augmentation))
    assert [tuple(images.shape) for images, _ in made] == [
        (count, 40, 40, 3) for count in (50, 50, 20)
    ]
    images, labels = made[0]
    assert images.dtype.name == ("float32" if normalise else "uint8")
    assert labels.dtype.name == "int64"
    low, high = float(images.numpy().min()), float(images.numpy().max())
    assert (-2.2 < low < -1 < 1 < high < 2.7) if normalise else (low < 30 and high > 220)


def test_evaluation_is_that_of_numpy(local: dataprep.Dataset) -> None:
    """The centre is cut, scaled and normalised as ``Augmentation`` does it, but for rounding."""
    augmentation = Augmentation(size=280, random=False, layout="HWC")
    made = samples(dataprep.to_tf(local, augmentation=augmentation, shuffle=False))
    for (image, _), sample in zip(made[:20], local, strict=False):
        expected = augmentation(sample.image, sample_rng(0, 0, 0))
        # Both have cut 280 of 320 pixels, so that nothing is interpolated.
        assert np.abs(image - expected).mean() < 0.06


def test_augmentation_is_random(local: dataprep.Dataset) -> None:
    """Crops and flips differ from sample to sample and from epoch to epoch."""
    options: dict[str, Any] = {"augmentation": Augmentation(size=32), "shuffle": False}
    images = np.stack([image for image, _ in samples(dataprep.to_tf(local, **options))])
    others = np.stack([image for image, _ in samples(dataprep.to_tf(local, epoch=1, **options))])
    assert not any(np.array_equal(*pair) for pair in zip(images, others, strict=True))


def test_another_format(output: Path) -> None:
    """RecordIO is not for TensorFlow."""
    with pytest.raises(ConfigError, match="format='tfrecord'"):
        dataprep.to_tf(dataprep.open(output, format="recordio"))


@pytest.mark.parametrize(
    "layout", ["tfds", {"x": "encoded", "y": "label", "a": "values", "w": "width"}], ids=str
)
@pytest.mark.parametrize("where", ["disk", "memory"])
def test_layouts(
    tf: Any, tree: Path, tmp_path: Path, layout: str | dict[str, str], where: str
) -> None:
    """Features are found by the layout of the data set, with TensorFlow's reader and ours."""
    output = str(tmp_path / "out") if where == "disk" else f"memory://{tmp_path}"
    config = dataprep.ShardConfig.model_validate(
        {
            "source": str(tree),
            "output": output,
            "layout": layout,
            "image": {"size": 64},
            "label_offset": {"tfrecord": 5},
        }
    )
    dataprep.shard(config)
    dataset = dataprep.open(output)
    made = dataprep.to_tf(dataset, decode=False, shuffle=False, parallel_calls=0)
    assert samples(made) == stored(dataset)
    assert min(dataset.labels) == 0
