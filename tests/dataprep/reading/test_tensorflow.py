"""``dataprep.to_tf`` works with TensorFlow itself."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import dataprep
from dataprep.errors import ConfigError
from dataprep.reading.augment import EVALUATION_SHARE, Augmentation, sample_rng
from dataprep.reading.dataset import Dataset
from dataprep.reading.epoch_order import Order
from dataprep.reading.record_reader import Records
from tests.commandline import FORMATS
from tests.dataprep.reading.conftest import stored_samples

pytestmark = [
    pytest.mark.frameworks,
    pytest.mark.filterwarnings("default"),
    pytest.mark.usefixtures("tf"),
]


@pytest.fixture
def local(output: Path) -> Dataset:
    """The data set on disk."""
    return dataprep.open(output, format="tfrecord")


@pytest.fixture(params=["disk", "s3"])
def dataset(local: Dataset, request: pytest.FixtureRequest) -> Dataset:
    """The data set on disk and on S3."""
    if request.param == "disk":
        return local
    opened: Callable[[str], Dataset] = request.getfixturevalue("on_s3")
    return opened("tfrecord")


def samples(batches: Any) -> list[tuple[Any, int]]:
    """All samples of the batches."""
    return [(image, int(label)) for image, label in batches.as_numpy_iterator()]


def images(dataset: Dataset, **options: Any) -> Any:
    """All images of an iteration as one array."""
    return np.stack([image for image, _ in samples(dataprep.to_tf(dataset, **options))])


def test_unshuffled(dataset: Dataset) -> None:
    """Without shuffling, the encoded images and labels from 0 are those of the data set."""
    batches = dataprep.to_tf(dataset, decode=False, shuffle=False, parallel_calls=0)
    assert samples(batches) == stored_samples(dataset)


@pytest.mark.parametrize("calls", [0, 1, 3, None])
def test_each_sample_once(dataset: Dataset, calls: int | None) -> None:
    """With shuffling and any number of threads, every sample comes once in an epoch."""
    batches = dataprep.to_tf(dataset, decode=False, parallel_calls=calls)
    first, second = samples(batches), samples(batches)
    assert sorted(first) == sorted(second) == sorted(stored_samples(dataset))
    assert first != second
    assert first != stored_samples(dataset)


def test_each_iteration_is_an_epoch(dataset: Dataset) -> None:
    """Order and augmentation depend on seed and epoch, and any epoch can be the first."""
    options: dict[str, Any] = {"augmentation": Augmentation(size=16), "batch_size": 120}
    batches = dataprep.to_tf(dataset, epoch=3, **options)
    assert len(batches) == 1
    passes = [next(iter(batches.as_numpy_iterator())) for _ in range(2)]
    for number, (pixels, labels) in enumerate(passes):
        again = dataprep.to_tf(dataset, epoch=3 + number, **options)
        expected = next(iter(again.as_numpy_iterator()))
        assert np.array_equal(pixels, expected[0])
        assert np.array_equal(labels, expected[1])
    other = next(iter(dataprep.to_tf(dataset, epoch=3, seed=1, **options).as_numpy_iterator()))
    assert not np.array_equal(passes[0][1], passes[1][1])
    assert not np.array_equal(passes[0][1], other[1])


def test_whole_epochs_after_a_resume(local: Dataset) -> None:
    """The first epoch is the rest, and the following ones are complete."""
    batches = dataprep.to_tf(local, epoch=2, start=40, decode=False)
    assert [len(samples(batches)) for _ in range(3)] == [80, 120, 120]
    after_end = dataprep.to_tf(local, epoch=2, start=120, decode=False)
    assert samples(after_end) == samples(dataprep.to_tf(local, epoch=3, decode=False))


def test_epochs_and_ranks_that_are_refused(local: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """A start beyond the end, epochs without a step and missing ranks are refused."""
    with pytest.raises(ConfigError, match="start 500 is beyond the end"):
        dataprep.to_tf(local, start=500)
    with pytest.raises(ConfigError, match="even='drop' leaves no step"):
        dataprep.to_tf(local, batch_size=70, rank=0, world_size=2, even="drop")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.warns(UserWarning, match="to_tf reads all samples in this process"):
        dataprep.to_tf(local)


def test_epoch_by_variable(tf: Any, local: Dataset) -> None:
    """A variable that is assigned before an iteration selects its epoch."""
    epoch = tf.Variable(0, dtype=tf.int64)
    batches = dataprep.to_tf(local, epoch=epoch, decode=False)
    for number in (2, 0, 5):
        epoch.assign(number)
        assert samples(batches) == samples(dataprep.to_tf(local, epoch=number, decode=False))


def test_a_buffer_mixes_shards(local: Dataset) -> None:
    """Without a buffer, shards follow one another."""
    positions = {image: number for number, (image, _) in enumerate(stored_samples(local))}
    changes = []
    for buffer in (0, 60):
        mixed = samples(dataprep.to_tf(local, decode=False, shuffle_buffer=buffer))
        assert sorted(mixed) == sorted(stored_samples(local))
        shards = [int(local.places.shards[positions[image]]) for image, _ in mixed]
        changes.append(sum(a != b for a, b in pairwise(shards)))
    assert changes[0] == len(local.shards()) - 1 < changes[1]
    with pytest.raises(ConfigError, match="shuffle_buffer -1: give 0 for no buffer"):
        dataprep.to_tf(local, shuffle_buffer=-1)


@pytest.mark.parametrize("even", ["keep", "drop", "pad"])
def test_ranks(output: Path, even: Any) -> None:
    """Ranks have the order of torch's iterable style, in all formats."""
    for format in FORMATS:
        dataset = dataprep.open(output, format=format)
        every = Records(dataset)
        images = stored_samples(dataset)
        for rank in range(3):
            options: dict[str, Any] = {"rank": rank, "world_size": 3, "even": even, "start": 21}
            batches = dataprep.to_tf(dataset, batch_size=7, decode=False, epoch=2, **options)
            order = Order(global_batch=21, epoch=2, **options)
            expected = [images[number] for number in every.samples_of_rank(order, 2)]
            samples_read = [
                (image, int(label))
                for batch in batches.as_numpy_iterator()
                for image, label in zip(*batch, strict=True)
            ]
            assert samples_read == expected
            assert len(samples(batches.unbatch())) == len(every.samples_of_rank(order, 3))


@pytest.mark.parametrize("global_seed", [0, 7])
def test_the_global_seed_has_no_effect(tf: Any, local: Dataset, global_seed: int) -> None:
    """The order does not depend on TensorFlow's global seed."""
    expected = samples(dataprep.to_tf(local, decode=False))
    tf.random.set_seed(global_seed)
    try:
        assert samples(dataprep.to_tf(local, decode=False)) == expected
    finally:
        tf.random.set_seed(None)


@pytest.mark.parametrize("normalise", [True, False])
@pytest.mark.parametrize("random", [True, False])
def test_batches(local: Dataset, normalise: bool, random: bool) -> None:
    """Batches are (N, size, size, 3) with int64 labels, and only the last one is smaller."""
    augmentation = Augmentation(size=40, random=random, jitter=0.4, noise=0.1, normalise=normalise)
    batches = list(dataprep.to_tf(local, batch_size=50, augmentation=augmentation))
    assert [tuple(pixels.shape) for pixels, _ in batches] == [
        (count, 40, 40, 3) for count in (50, 50, 20)
    ]
    pixels, labels = batches[0]
    assert pixels.dtype.name == ("float32" if normalise else "uint8")
    assert labels.dtype.name == "int64"
    low, high = float(pixels.numpy().min()), float(pixels.numpy().max())
    assert (-2.2 < low < -1 < 1 < high < 2.7) if normalise else (low < 30 and high > 220)


def test_evaluation_is_that_of_the_other_adapters(local: Dataset) -> None:
    """The centre is cropped, scaled and normalised like ``Augmentation``, except for rounding."""
    augmentation = Augmentation(size=280, random=False, layout="HWC")
    evaluated = images(local, augmentation=augmentation, shuffle=False)
    for image, sample in zip(evaluated[:20], local, strict=False):
        # Both crop 280 of 320 pixels, so that nothing is interpolated.
        assert np.abs(image - augmentation(sample.image, sample_rng(0, 0, 0))).mean() < 0.06


def test_augmentation_is_random(local: Dataset) -> None:
    """Crops and flips differ from epoch to epoch."""
    options: dict[str, Any] = {"augmentation": Augmentation(size=32), "shuffle": False}
    pairs = zip(images(local, **options), images(local, epoch=1, **options), strict=True)
    assert not any(np.array_equal(*pair) for pair in pairs)


@pytest.mark.parametrize(
    "layout", ["tfds", {"x": "encoded", "y": "label", "a": "values", "w": "width"}], ids=str
)
def test_layouts(tree: Path, tmp_path: Path, layout: str | dict[str, str]) -> None:
    """The layout of the data set gives the names of the features."""
    output = str(tmp_path / "out")
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
    batches = dataprep.to_tf(dataset, decode=False, shuffle=False, parallel_calls=0)
    assert samples(batches) == stored_samples(dataset)
    assert min(dataset.labels) == 0


@pytest.mark.parametrize("encoding", ["png", "webp"])
@pytest.mark.parametrize("mode", ["RGB", "L", "RGBA"])
def test_other_encodings(tf: Any, tmp_path: Path, encoding: str, mode: str) -> None:
    """TensorFlow resizes the library's pixels: three channels, with transparent ones white."""
    (tmp_path / "photos" / "a").mkdir(parents=True)
    colours, alpha = np.mgrid[0:256, 0:256].astype(np.uint8)
    pixels = np.dstack([colours, 255 - colours, colours, alpha])
    image = Image.fromarray(pixels if mode == "RGBA" else pixels[..., :3])
    image.convert(mode).save(tmp_path / "photos" / "a" / "x.png")
    config = {
        "source": str(tmp_path / "photos"),
        "output": str(tmp_path / "out"),
        "image": {"encoding": encoding, "alpha": "keep"},
    }
    dataprep.shard(dataprep.ShardConfig.model_validate(config))
    dataset = dataprep.open(tmp_path / "out")
    assert dataset.manifest.encoding == encoding.upper()
    plain = Augmentation(size=100, random=False, normalise=False)
    (decoded_image,) = images(dataset, augmentation=plain)
    side = round(256 * EVALUATION_SHARE)
    top = (256 - side) // 2
    part = dataset.images[0][top : top + side, top : top + side]
    assert np.array_equal(
        decoded_image, np.round(tf.image.resize(part, (100, 100))).astype(np.uint8)
    )
    random = Augmentation(size=32, normalise=False)
    first, again, other = (images(dataset, augmentation=random, epoch=e) for e in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
