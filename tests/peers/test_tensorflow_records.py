"""TFRecord and tf.train.Example agree with TensorFlow's own readers and writers."""

from __future__ import annotations

import importlib
from itertools import permutations
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dataprep.errors import RecordError
from dataprep.formats.example import (
    BytesList,
    Feature,
    FloatList,
    Int64List,
    decode_example,
    encode_feature,
    example_head,
)
from dataprep.formats.tfrecord import TFRecordWriter, read_tfrecords
from tests.dataprep.formats.examples import encode_example
from tests.strategies import examples, mutated, payloads

pytestmark = pytest.mark.frameworks

PAYLOADS = [b"", b"hello", bytes(range(256)) * 300, b"\0" * 7]
FEATURES: dict[str, Feature] = {
    "image/encoded": BytesList([bytes(range(256)) * 200]),
    "image/class/label": Int64List([1]),
    "image/class/text": BytesList(["requin-tigre, Galéocerdo".encode()]),
    "image/object/bbox/xmin": FloatList([0.25, 0.5]),
    "image/object/bbox/xmax": FloatList([]),
    "negative": Int64List([-1, -(2**63), 2**63 - 1]),
    "none": BytesList([]),
    "é": Int64List([]),
    "": BytesList([b""]),
}
KINDS = {
    "bytes_list": BytesList,
    "float_list": FloatList,
    "int64_list": Int64List,
}


def message(tf: ModuleType, features: dict[str, Feature]) -> Any:
    """TensorFlow's own message of the same features."""
    train = tf.train
    results = {}
    for key, feature in features.items():
        if isinstance(feature, BytesList):
            results[key] = train.Feature(bytes_list=train.BytesList(value=feature.values))
        elif isinstance(feature, FloatList):
            results[key] = train.Feature(float_list=train.FloatList(value=feature.values))
        else:
            results[key] = train.Feature(int64_list=train.Int64List(value=feature.values))
    return train.Example(features=train.Features(feature=results))


def features_of(parsed: Any) -> dict[str, Feature]:
    """The features of TensorFlow's message, without features that have no list."""
    features: dict[str, Feature] = {}
    for key, feature in parsed.features.feature.items():
        kind = feature.WhichOneof("kind")
        if kind:
            features[key] = KINDS[kind](list(getattr(feature, kind).value))
    return features


def test_tensorflow_reads_our_file(tensorflow: ModuleType, tmp_path: Path) -> None:
    """TFRecordDataset, which checks both checksums, reads our payloads."""
    path = tmp_path / "ours.tfrecord"
    with path.open("wb") as file:
        writer = TFRecordWriter(file)
        for payload in PAYLOADS:
            writer.write_parts([payload[:3], payload[3:]])
    dataset = tensorflow.data.TFRecordDataset(str(path))
    assert [record.numpy() for record in dataset] == PAYLOADS


def test_we_read_tensorflows_file(tensorflow: ModuleType, tmp_path: Path) -> None:
    """We read the payloads of TFRecordWriter, and write the same bytes."""
    theirs, ours = tmp_path / "theirs.tfrecord", tmp_path / "ours.tfrecord"
    with tensorflow.io.TFRecordWriter(str(theirs)) as writer:
        for payload in PAYLOADS:
            writer.write(payload)
    data = theirs.read_bytes()
    assert [bytes(record.payload) for record in read_tfrecords(data)] == PAYLOADS
    with ours.open("wb") as file:
        own = TFRecordWriter(file)
        for payload in PAYLOADS:
            own.write(payload)
    assert ours.read_bytes() == data


def test_tensorflow_parses_our_example(tensorflow: ModuleType) -> None:
    """Both parsers of TensorFlow, protobuf's and its own fast one, read our values."""
    data = encode_example(FEATURES)
    assert features_of(tensorflow.train.Example.FromString(data)) == FEATURES
    io = tensorflow.io
    parsed = io.parse_single_example(
        data,
        {
            "image/encoded": io.FixedLenFeature([], tensorflow.string),
            "image/class/label": io.FixedLenFeature([], tensorflow.int64),
            "image/object/bbox/xmin": io.VarLenFeature(tensorflow.float32),
            "image/object/bbox/xmax": io.VarLenFeature(tensorflow.float32),
            "negative": io.FixedLenFeature([3], tensorflow.int64),
        },
    )
    assert parsed["image/encoded"].numpy() == bytes(range(256)) * 200
    assert parsed["image/class/label"].numpy() == 1
    assert parsed["image/object/bbox/xmin"].values.numpy().tolist() == [0.25, 0.5]
    assert parsed["image/object/bbox/xmax"].values.numpy().tolist() == []
    assert parsed["negative"].numpy().tolist() == [-1, -(2**63), 2**63 - 1]


def test_an_example_without_features_is_tensorflows(tensorflow: ModuleType) -> None:
    """An Example without features is serialised as TensorFlow serialises an empty map."""
    assert message(tensorflow, {}).SerializeToString(deterministic=True) == encode_example({})


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(features=examples)
def test_examples_equal_tensorflows_byte_for_byte(
    tensorflow: ModuleType, features: dict[str, Feature]
) -> None:
    """We serialise Examples as TensorFlow does, and read what it serialised.

    If a key begins with another key, protobuf for Python writes the longer one first. We then
    compare in its order.
    """
    data = message(tensorflow, features).SerializeToString(deterministic=True)
    decoded = decode_example(data)
    assert decoded == features
    entries = b"".join([encode_feature(key, decoded[key]) for key in decoded])
    assert example_head(len(entries)) + entries == data
    if not any(key.startswith(other) for key, other in permutations(features, 2)):
        assert encode_example(features) == data


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=mutated(examples.map(encode_example)))
def test_what_tensorflow_parses_we_parse_alike(tensorflow: ModuleType, data: bytes) -> None:
    """Of damaged Examples, we accept those that protobuf accepts, with the same values.

    Groups, which no writer of Examples uses, are the exception: we refuse them.
    """
    try:
        expected = features_of(tensorflow.train.Example.FromString(data))
    except importlib.import_module("google.protobuf.message").DecodeError:
        with pytest.raises(RecordError):
            decode_example(data)
        return
    try:
        example = decode_example(data)
    except RecordError as error:
        assert "3 is not a wire type" in str(error)  # noqa: PT017
    else:
        assert repr(_plain(example)) == repr(_plain(expected))


def _plain(features: dict[str, Feature]) -> list[tuple[str, str, list[Any]]]:
    """Features in an order and a form that can be compared, even with NaN."""
    return [(key, type(features[key]).__name__, _values(features[key])) for key in sorted(features)]


def _values(feature: Feature) -> list[Any]:
    """The values of a feature in a form that can be compared."""
    if isinstance(feature, BytesList):
        return [bytes(value) for value in feature.values]
    return list(feature.values)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(contents=st.lists(payloads, min_size=1, max_size=3), data=st.data())
def test_tensorflow_finds_the_same_damage(
    tensorflow: ModuleType,
    tmp_path_factory: pytest.TempPathFactory,
    contents: list[bytes],
    data: st.DataObject,
) -> None:
    """After a changed byte, TensorFlow and we stop reading after the same record."""
    path = tmp_path_factory.mktemp("damage") / "damaged.tfrecord"
    with path.open("wb") as file:
        writer = TFRecordWriter(file)
        for payload in contents:
            writer.write(payload)
    damaged = bytearray(path.read_bytes())
    damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= data.draw(st.integers(1, 255))
    path.write_bytes(damaged)
    ours: list[bytes] = []
    theirs: list[bytes] = []
    with pytest.raises(RecordError):
        ours.extend(bytes(record.payload) for record in read_tfrecords(damaged))
    with pytest.raises(tensorflow.errors.DataLossError):
        theirs.extend(record.numpy() for record in tensorflow.data.TFRecordDataset(str(path)))
    assert ours == theirs
