"""Examples in every layout have protobuf's own bytes, and TensorFlow parses them."""

from __future__ import annotations

import io
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from dataprep.formats import Box, Layout, RecordOptions, Sample, get_format
from dataprep.formats.layout import FIELDS, IMAGENET

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("default")]

SAMPLE = Sample(
    image=b"\x89PNG" + bytes(range(256)) * 40,
    label=3,
    number=2**40,
    width=4,
    height=2,
    channels=1,
    colorspace="Grayscale",
    filename=b"caf\xe9.JPEG",
    synset=b"n01440764",
    text=b"tench, Tinca tinca",
    encoding="PNG",
    values=(3.0, 0.1, -7.5),
    boxes=(Box(0.1, 0.25, 0.5, 0.7, 3), Box(0.0, 0.0, 1.0, 0.3, 0)),
    source=b"train/n01440764/caf\xe9.JPEG",
)
LAYOUTS = {
    "imagenet": IMAGENET,
    "tfds": Layout.of("tfds"),
    "own": Layout.of({f"é {field}": field for field in FIELDS}),
}


def payload(layout: Layout, sample: Sample = SAMPLE) -> bytes:
    """One serialised Example. Its labels count from 1."""
    sink = io.BytesIO()
    form = get_format("tfrecord")
    form.writer(sink, RecordOptions(1, layout)).write(sample)
    (record,) = form.read(sink.getvalue(), "shard")
    return bytes(record.payload)


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_bytes_are_protobufs_own(tensorflow: ModuleType, name: str) -> None:
    """An Example that TensorFlow has parsed and serialised again has the same bytes."""
    message: Any = tensorflow.train.Example()
    data = payload(LAYOUTS[name])
    message.ParseFromString(data)
    assert message.SerializeToString(deterministic=True) == data


def test_tfds(tensorflow: ModuleType) -> None:
    """``parse_single_example`` reads it with the features of TFDS' ``imagenet2012``."""
    tf = tensorflow
    features = {
        "image": tf.io.FixedLenFeature([], tf.string),
        "label": tf.io.FixedLenFeature([], tf.int64),
        "file_name": tf.io.FixedLenFeature([], tf.string),
    }
    parsed_features = tf.io.parse_single_example(payload(LAYOUTS["tfds"]), features)
    assert parsed_features["image"].numpy() == SAMPLE.image
    assert parsed_features["label"].numpy() == 4
    assert parsed_features["file_name"].numpy() == SAMPLE.filename


@pytest.mark.parametrize(
    ("name", "prefix"), [("imagenet", "image/object/bbox/"), ("own", "é bbox/")]
)
def test_boxes(tensorflow: ModuleType, name: str, prefix: str) -> None:
    """Boxes are four lists of float32 and one of int64, which are empty without boxes."""
    tf = tensorflow
    sides = ("xmin", "ymin", "xmax", "ymax")
    features = {prefix + side: tf.io.VarLenFeature(tf.float32) for side in sides}
    features[prefix + "label"] = tf.io.VarLenFeature(tf.int64)
    parsed_features = tf.io.parse_single_example(payload(LAYOUTS[name]), features)
    for position, side in enumerate(sides):
        expected = np.array([box[position] for box in SAMPLE.boxes], np.float32)
        assert parsed_features[prefix + side].values.numpy().tolist() == expected.tolist()
    assert parsed_features[prefix + "label"].values.numpy().tolist() == [4, 1]
    empty = Sample(image=b"x", label=0)
    none = tf.io.parse_single_example(payload(LAYOUTS[name], empty), features)
    assert all(none[key].values.shape == 0 for key in features)


def test_every_field(tensorflow: ModuleType) -> None:
    """A custom mapping has each field in its type."""
    message: Any = tensorflow.train.Example()
    message.ParseFromString(payload(LAYOUTS["own"]))
    features = {
        key.removeprefix("é "): feature for key, feature in message.features.feature.items()
    }
    assert features.keys() == set(FIELDS)
    for field, value in {
        "number": SAMPLE.number,
        "width": 4,
        "height": 2,
        "channels": 1,
        "label": 4,
    }.items():
        assert list(features[field].int64_list.value) == [value], field
    for field, data in {
        "source": SAMPLE.source,
        "synset": SAMPLE.synset,
        "text": SAMPLE.text,
        "format": b"PNG",
        "colorspace": b"Grayscale",
    }.items():
        assert list(features[field].bytes_list.value) == [data], field
    assert list(features["values"].float_list.value) == [3.0, np.float32(0.1), -7.5]
