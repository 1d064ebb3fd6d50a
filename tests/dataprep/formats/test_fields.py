"""Samples as features of an Example, in every layout, byte for byte."""

from __future__ import annotations

import io
import struct
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.errors import CorruptRecord
from dataprep.formats import Box, Layout, RecordOptions, Sample, get_format
from dataprep.formats.example import (
    BytesList,
    Feature,
    FloatList,
    Int64List,
    decode_example,
    encode_example,
)
from dataprep.formats.fields import encoding_of, entries, sample_of
from dataprep.formats.layout import FIELDS, IMAGENET

EVERYTHING = Layout.of({f"all/{field}": field for field in FIELDS})
TFDS = Layout.of("tfds")
SAMPLE = Sample(
    image=b"\x89PNG...",
    label=3,
    number=9,
    width=4,
    height=2,
    channels=1,
    colorspace="Grayscale",
    filename=b"n01440764_10026.JPEG",
    synset=b"n01440764",
    text=b"tench, Tinca tinca",
    encoding="PNG",
    values=(3.0, 0.25, -7.5),
    boxes=(Box(0.125, 0.25, 0.5, 0.75, 3), Box(0.0, 0.0, 1.0, 0.1, 0)),
    source=b"train/n01440764/n01440764_10026.JPEG",
)

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


def encoded(sample: Sample, layout: Layout, offset: int = 0) -> bytes:
    """The features of an Example, without its outermost prefix."""
    return b"".join(bytes(part) for part in entries(sample, layout, offset))


def read(payload: bytes, layout: Layout, offset: int = 0) -> Sample:
    """The sample of a whole Example."""
    found = sample_of(decode_example(payload), layout, offset)
    return replace(found, image=bytes(found.image))


def example(**changes: Feature | None) -> bytes:
    """An Example of all features, some changed or left out; ``__`` stands for a slash."""
    features: dict[str, Feature] = dict(decode_example(_whole(SAMPLE, EVERYTHING)))
    for name, feature in changes.items():
        key = "all/" + name.replace("__", "/")
        if feature is None:
            del features[key]
        else:
            features[key] = feature
    return encode_example(features)


def _whole(sample: Sample, layout: Layout, offset: int = 0) -> bytes:
    sink = io.BytesIO()
    form = get_format("tfrecord")
    form.writer(sink, RecordOptions(offset, layout)).write(sample)
    (record,) = form.read(sink.getvalue(), "shard")
    return bytes(record.payload)


def test_tfds_byte_for_byte() -> None:
    """Three features in the order of their names, the label without an offset of its own."""
    assert encoded(replace(SAMPLE, image=b"JPG", filename=b"a.JPEG"), TFDS) == (
        b"\x0a\x17\x0a\x09file_name\x12\x0a\x0a\x08\x0a\x06a.JPEG"
        b"\x0a\x10\x0a\x05image\x12\x07\x0a\x05\x0a\x03JPG"
        b"\x0a\x0e\x0a\x05label\x12\x05\x1a\x03\x0a\x01\x03"
    )


def test_a_mapping_byte_for_byte() -> None:
    """Numbers, floats and bytes under names of one's own, sorted by the bytes of the names."""
    layout = Layout.of({"é": "values", "i": "encoded", "Y": "label", "h": "height"})
    assert encoded(replace(SAMPLE, image=b"JPG"), layout, 1) == (
        b"\x0a\x0a\x0a\x01Y\x12\x05\x1a\x03\x0a\x01\x04"
        b"\x0a\x0a\x0a\x01h\x12\x05\x1a\x03\x0a\x01\x02"
        b"\x0a\x0c\x0a\x01i\x12\x07\x0a\x05\x0a\x03JPG"
        b"\x0a\x16\x0a\x02\xc3\xa9\x12\x10\x12\x0e\x0a\x0c" + struct.pack("<3f", 3, 0.25, -7.5)
    )


def test_boxes_are_floats_and_their_labels_have_the_offset() -> None:
    """Four float lists that keep their fractions, and int64 labels that count as the image's."""
    features = decode_example(_whole(SAMPLE, IMAGENET, 1))
    assert features["image/object/bbox/xmin"] == FloatList([0.125, 0.0])
    assert features["image/object/bbox/ymax"].values[0] == 0.75
    assert features["image/object/bbox/label"] == Int64List([4, 1])
    assert features["image/class/label"] == Int64List([4])
    assert features["image/format"].values[0] == b"PNG"


@given(sample=samples, offset=st.integers(-5, 1000))
def test_everything_comes_back(sample: Sample, offset: int) -> None:
    """A layout with every field keeps every field."""
    assert read(_whole(sample, EVERYTHING, offset), EVERYTHING, offset) == sample


@given(sample=samples, offset=st.integers(0, 9))
def test_what_a_layout_keeps(sample: Sample, offset: int) -> None:
    """Image, label and name come back of TFDS's layout; the encoding is told by the image."""
    found = read(_whole(sample, TFDS, offset), TFDS, offset)
    assert found == Sample(
        image=sample.image,
        label=sample.label,
        filename=sample.filename,
        encoding=encoding_of(sample.image),
    )


def test_what_was_written_before_changes_no_byte() -> None:
    """0.0 and -0.0 are equal, and have other bytes, whichever came first."""
    one = replace(SAMPLE, values=(0.0,), boxes=(Box(0.0, 0.0, 0.5, 0.5),))
    other = replace(SAMPLE, values=(-0.0,), boxes=(Box(-0.0, -0.0, 0.5, 0.5),))
    assert len({_whole(sample, EVERYTHING) for sample in (one, other)}) == 2
    assert struct.pack("<f", -0.0) in _whole(other, EVERYTHING)


def test_boxes_without_labels_have_that_of_the_image() -> None:
    """A layout may leave the labels of boxes out."""
    layout = Layout.of({name: field for name, field in IMAGENET.features if field != "bbox/label"})
    found = read(_whole(SAMPLE, layout, 1), layout, 1)
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
