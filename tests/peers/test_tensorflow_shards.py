"""TensorFlow's own readers read the shards of a job."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import dataprep

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("default"), pytest.mark.smoke]


@pytest.fixture(scope="module")
def tf() -> Any:
    """TensorFlow, on the CPU and without its log."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    return pytest.importorskip("tensorflow")


@pytest.fixture(scope="module")
def output(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The drawn tree, resized, in several shards."""
    folder = tmp_path_factory.mktemp("tensorflow") / "out"
    config = dataprep.ShardConfig.model_validate(
        {
            "source": str(tree),
            "output": str(folder),
            "image": {"size": 256},
            "shard_size": "1.2MB",
        }
    )
    dataprep.shard(config)
    return folder


def parsed(tf: Any, output: Path) -> list[dict[str, Any]]:
    """Every Example as ``tf.io.parse_single_example`` returns it, in the order of the files."""
    texts = (
        *("image/encoded", "image/colorspace", "image/format", "image/filename"),
        *("image/class/synset", "image/class/text"),
    )
    numbers = ("image/height", "image/width", "image/channels", "image/class/label")
    sides = [f"image/object/bbox/{side}" for side in ("xmin", "xmax", "ymin", "ymax")]
    keys = {
        **dict.fromkeys(texts, tf.io.FixedLenFeature([], tf.string)),
        **dict.fromkeys(numbers, tf.io.FixedLenFeature([], tf.int64)),
        **dict.fromkeys(sides, tf.io.VarLenFeature(tf.float32)),
        "image/object/bbox/label": tf.io.VarLenFeature(tf.int64),
    }
    shards = sorted(str(path) for path in (output / "tfrecord").iterdir())
    assert len(shards) >= 3
    return [tf.io.parse_single_example(record, keys) for record in tf.data.TFRecordDataset(shards)]


@pytest.fixture(scope="module")
def examples(tf: Any, output: Path) -> list[dict[str, Any]]:
    """All parsed Examples."""
    return parsed(tf, output)


def test_every_sample(examples: list[dict[str, Any]]) -> None:
    """TensorFlow reads every written record, and compares its checksums."""
    assert len(examples) == 120


def test_the_customary_keys(
    tf: Any, examples: list[dict[str, Any]], output: Path, tree: Path
) -> None:
    """Every customary key can be parsed and agrees with its image."""
    dataset = dataprep.open(str(output))
    synsets = sorted(folder.name for folder in tree.iterdir())
    rows = dataset.samples.to_dict("records")
    for example, row in zip(examples, rows, strict=True):
        synset, name = row["source"].split("/")
        assert example["image/filename"].numpy().decode() == name
        assert example["image/class/synset"].numpy().decode() == synset
        assert example["image/class/text"].numpy() == b""
        assert example["image/class/label"].numpy() == synsets.index(synset) + 1
        assert example["image/format"].numpy() == b"JPEG"
        image = Image.open(io.BytesIO(example["image/encoded"].numpy()))
        size = (int(example["image/width"].numpy()), int(example["image/height"].numpy()))
        assert image.size == size == (row["width"], row["height"])
        channels = int(example["image/channels"].numpy())
        assert channels == len(image.getbands())
        colorspace = example["image/colorspace"].numpy()
        assert colorspace == {1: b"Grayscale", 3: b"RGB"}[channels]
        for side in ("xmin", "xmax", "ymin", "ymax", "label"):
            assert example[f"image/object/bbox/{side}"].values.shape == (0,)


def test_labels_are_those_of_the_library(examples: list[dict[str, Any]], output: Path) -> None:
    """TensorFlow's labels minus the offset of the manifest are the labels of the library."""
    dataset = dataprep.open(str(output))
    offset = dataset.manifest.formats["tfrecord"].label_offset
    labels = [int(example["image/class/label"].numpy()) - offset for example in examples]
    assert labels == dataset.labels.tolist()


def test_pixels(tf: Any, examples: list[dict[str, Any]]) -> None:
    """TensorFlow and Pillow decode the same pixels, except for rounding."""
    for example in examples[::10]:
        data = example["image/encoded"].numpy()
        decoded_pixels = tf.io.decode_jpeg(data, channels=3, dct_method="INTEGER_ACCURATE").numpy()
        expected = np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
        assert decoded_pixels.shape == expected.shape
        difference = np.abs(decoded_pixels.astype(np.int16) - expected.astype(np.int16))
        assert difference.mean() < 1.0
        assert np.percentile(difference, 99) <= 4
