"""Samples of the features of an Example, in every layout."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.errors import CorruptRecord
from dataprep.formats import Box, Layout, Sample
from dataprep.formats.example import (
    BytesList,
    Feature,
    FloatList,
    Int64List,
    decode_example,
    encode_example,
)
from dataprep.formats.fields import encoding_of
from dataprep.formats.layout import IMAGENET
from tests.dataprep.formats.examples import EVERYTHING, SAMPLE, TFDS, encoded, read

float32 = st.floats(width=32, allow_nan=False, allow_infinity=False)
samples = st.builds(
    Sample,
    image=st.binary(max_size=40),
    label=st.integers(0, 21_841),
    number=st.integers(0, 2**40),
    width=st.integers(1, 2**16),
    height=st.integers(1, 2**16),
    channels=st.sampled_from([1, 3, 4]),
    colorspace=st.sampled_from(["RGB", "Grayscale"]),
    filename=st.binary(max_size=20),
    synset=st.binary(max_size=9),
    text=st.binary(max_size=9),
    encoding=st.sampled_from(["JPEG", "PNG", "WEBP"]),
    values=st.lists(float32, max_size=4).map(tuple),
    boxes=st.lists(st.builds(Box, float32, float32, float32, float32, st.integers(0, 999))).map(
        tuple
    ),
    source=st.binary(max_size=20),
)


def example(**changes: Feature | None) -> bytes:
    """An Example of all features, some changed or left out; ``__`` stands for a slash."""
    features: dict[str, Feature] = dict(decode_example(encoded(SAMPLE, EVERYTHING)))
    for name, feature in changes.items():
        key = "all/" + name.replace("__", "/")
        if feature is None:
            del features[key]
        else:
            features[key] = feature
    return encode_example(features)


def test_boxes_are_floats_and_their_labels_have_the_offset() -> None:
    """Four float lists that keep their fractions, and int64 labels that count as the image's."""
    features = decode_example(encoded(SAMPLE, IMAGENET, 1))
    assert features["image/object/bbox/xmin"] == FloatList([0.125, 0.0])
    assert features["image/object/bbox/ymax"].values[0] == 0.75
    assert features["image/object/bbox/label"] == Int64List([4, 1])
    assert features["image/class/label"] == Int64List([4])
    assert features["image/format"].values[0] == b"PNG"


@given(sample=samples, offset=st.integers(-5, 1000))
def test_everything_comes_back(sample: Sample, offset: int) -> None:
    """A layout with every field keeps every field."""
    assert read(encoded(sample, EVERYTHING, offset), EVERYTHING, offset) == sample


@given(sample=samples, offset=st.integers(0, 9))
def test_what_a_layout_keeps(sample: Sample, offset: int) -> None:
    """Image, label and name come back of TFDS's layout; the encoding is told by the image."""
    found = read(encoded(sample, TFDS, offset), TFDS, offset)
    assert found == Sample(
        image=sample.image,
        label=sample.label,
        filename=sample.filename,
        encoding=encoding_of(sample.image),
    )


def test_boxes_without_labels_have_that_of_the_image() -> None:
    """A layout may leave the labels of boxes out."""
    layout = Layout.of({name: field for name, field in IMAGENET.features if field != "bbox/label"})
    found = read(encoded(SAMPLE, layout, 1), layout, 1)
    assert [box.label for box in found.boxes] == [3, 3]
    assert found.boxes[0][:4] == SAMPLE.boxes[0][:4]


@pytest.mark.parametrize(
    "changes",
    [
        {"label": None},
        {"label": Int64List([])},
        {"label": Int64List([1, 2])},
        {"label": FloatList([1.0])},
        {"encoded": None},
        {"encoded": BytesList([b"a", b"b"])},
        {"height": FloatList([2.0])},
        {"bbox__xmin": FloatList([0.5])},
        {"bbox__xmin": Int64List([0, 1])},
        {"bbox__label": Int64List([1])},
        {"values": BytesList([b"x"])},
    ],
    ids=str,
)
def test_features_that_make_no_sample(changes: dict[str, Feature | None]) -> None:
    """A feature that is missing, doubled, of another type or of another length is named."""
    name = next(iter(changes)).replace("__", "/")
    with pytest.raises(CorruptRecord, match=f"all/{name}|boxes of"):
        read(example(**changes), EVERYTHING)


def test_lists_may_be_missing() -> None:
    """A record without any box feature has no boxes, as other writers leave them out."""
    without = {f"bbox__{side}": None for side in ("xmin", "xmax", "ymin", "ymax", "label")}
    assert read(example(**without), EVERYTHING).boxes == ()


@pytest.mark.parametrize(
    ("head", "encoding"),
    [
        (b"\xff\xd8\xff", "JPEG"),
        (b"\x89PNG\r", "PNG"),
        (b"RIFF\x10\x00\x00\x00WEBP", "WEBP"),
        (b"RIFF", "JPEG"),
        (b"", "JPEG"),
    ],
)
def test_the_encoding_is_told_by_the_first_bytes(head: bytes, encoding: str) -> None:
    """Where no feature says it."""
    assert encoding_of(memoryview(head + b"..")) == encoding
