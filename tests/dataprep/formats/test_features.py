"""Samples are converted to Examples, byte for byte, and back, in every layout."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.errors import ConfigError, CorruptRecord
from dataprep.formats import IMAGENET, Box, Layout, Sample, features
from dataprep.formats.example import BytesList, Feature, FloatList, Int64List, decode_example
from dataprep.formats.layout import FIELDS
from dataprep.formats.protocol import encoding_of
from tests.dataprep.formats.examples import EVERYTHING, SAMPLE, TFDS, encode_example, encoded, read

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
    """An Example of all features, some changed or left out. ``__`` stands for a slash."""
    features: dict[str, Feature] = dict(decode_example(encoded(SAMPLE, EVERYTHING)))
    for name, feature in changes.items():
        key = "all/" + name.replace("__", "/")
        if feature is None:
            del features[key]
        else:
            features[key] = feature
    return encode_example(features)


def test_tfds_byte_for_byte() -> None:
    """The bytes of the TFDS layout: three features in the order of names, and a label from 0."""
    assert encoded(replace(SAMPLE, image=b"JPG", filename=b"a.JPEG"), TFDS) == (
        b"\x0a\x3b"
        b"\x0a\x17\x0a\x09file_name\x12\x0a\x0a\x08\x0a\x06a.JPEG"
        b"\x0a\x10\x0a\x05image\x12\x07\x0a\x05\x0a\x03JPG"
        b"\x0a\x0e\x0a\x05label\x12\x05\x1a\x03\x0a\x01\x03"
    )


def test_a_mapping_byte_for_byte() -> None:
    """The bytes of a custom mapping: numbers, floats and bytes, sorted by the bytes of names."""
    layout = Layout.of({"é": "values", "i": "encoded", "Y": "label", "h": "height"})
    assert encoded(replace(SAMPLE, image=b"JPG"), layout, 1) == (
        b"\x0a\x3e"
        b"\x0a\x0a\x0a\x01Y\x12\x05\x1a\x03\x0a\x01\x04"
        b"\x0a\x0a\x0a\x01h\x12\x05\x1a\x03\x0a\x01\x02"
        b"\x0a\x0c\x0a\x01i\x12\x07\x0a\x05\x0a\x03JPG"
        b"\x0a\x16\x0a\x02\xc3\xa9\x12\x10\x12\x0e\x0a\x0c" + struct.pack("<3f", 3, 0.25, -7.5)
    )


def test_what_was_written_before_changes_no_byte() -> None:
    """0.0 and -0.0 are equal but have different bytes, in any order of writing."""
    first = replace(SAMPLE, values=(0.0,), boxes=(Box(0.0, 0.0, 0.5, 0.5),))
    other = replace(SAMPLE, values=(-0.0,), boxes=(Box(-0.0, -0.0, 0.5, 0.5),))
    assert len({encoded(sample, EVERYTHING) for sample in (first, other)}) == 2
    assert struct.pack("<f", -0.0) in encoded(other, EVERYTHING)


def test_samples_that_share_values_come_out_as_themselves() -> None:
    """The cached encoding of an earlier sample is never used for another value."""
    plain = replace(SAMPLE, boxes=(), values=())
    changes: tuple[dict[str, Any], ...] = (
        {},
        {"image": b"another", "filename": b"b"},
        {"width": 5},
        {"label": 4, "synset": b"n01443537"},
        {},
        {"boxes": SAMPLE.boxes[:1]},
        {},
    )
    for change in changes:
        sample = replace(plain, **change)
        assert read(encoded(sample, IMAGENET, 1), IMAGENET, 1) == replace(
            sample, number=0, source=b""
        )


def test_what_is_remembered_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes beyond the limit of the cache are encoded correctly."""
    monkeypatch.setattr(features, "_MAX_CACHED", 3)
    encode = features.example_encoder.__wrapped__(IMAGENET, 0)
    for width in (*range(1, 9), *range(1, 9)):
        sample = replace(SAMPLE, width=width, number=0, boxes=(), values=(), source=b"")
        assert read(b"".join(encode(sample)), IMAGENET) == sample


def test_boxes_are_floats_and_their_labels_have_the_offset() -> None:
    """Boxes are four float lists with their fractions.

    Their int64 labels have the image's offset.
    """
    example = decode_example(encoded(SAMPLE, IMAGENET, 1))
    assert example["image/object/bbox/xmin"] == FloatList([0.125, 0.0])
    assert example["image/object/bbox/ymax"].values[0] == 0.75
    assert example["image/object/bbox/label"] == Int64List([4, 1])
    assert example["image/class/label"] == Int64List([4])
    assert example["image/format"].values[0] == b"PNG"


@given(sample=samples, offset=st.integers(-5, 1000))
def test_everything_comes_back(sample: Sample, offset: int) -> None:
    """A layout with every field keeps every field."""
    assert read(encoded(sample, EVERYTHING, offset), EVERYTHING, offset) == sample


@given(sample=samples, offset=st.integers(0, 9))
def test_what_a_layout_keeps(sample: Sample, offset: int) -> None:
    """TFDS's layout keeps image, label and name, and the image's bytes give the encoding."""
    decoded = read(encoded(sample, TFDS, offset), TFDS, offset)
    assert decoded == Sample(
        image=sample.image,
        label=sample.label,
        filename=sample.filename,
        encoding=encoding_of(sample.image),
    )


def test_boxes_without_labels_have_that_of_the_image() -> None:
    """A layout may omit the labels of boxes, which then have the label of the image."""
    layout = Layout.of({name: field for name, field in IMAGENET.features if field != "bbox/label"})
    decoded = read(encoded(SAMPLE, layout, 1), layout, 1)
    assert [box.label for box in decoded.boxes] == [3, 3]
    assert decoded.boxes[0][:4] == SAMPLE.boxes[0][:4]


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
    """A feature that is missing, repeated, of another type or of another length is named."""
    name = next(iter(changes)).replace("__", "/")
    with pytest.raises(CorruptRecord, match=f"all/{name}|lists of boxes"):
        read(example(**changes), EVERYTHING)


def test_lists_may_be_missing() -> None:
    """A record without any box feature has no boxes, because other writers omit empty lists."""
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
def test_the_first_bytes_give_the_encoding(head: bytes, encoding: str) -> None:
    """The first bytes of an image give its encoding, and JPEG is the default."""
    assert encoding_of(memoryview(head + b"..")) == encoding


OWN = {"x": "encoded", "y": "label"}


def test_the_customary_layout() -> None:
    """``imagenet`` has the customary keys in byte order, and its labels count from a background."""
    assert Layout.of("imagenet") == IMAGENET
    assert IMAGENET.counts_from_background
    assert IMAGENET.keeps_boxes
    assert [feature for feature, _ in IMAGENET.features] == [
        *("image/channels", "image/class/label", "image/class/synset", "image/class/text"),
        *("image/colorspace", "image/encoded", "image/filename", "image/format", "image/height"),
        *(f"image/object/bbox/{side}" for side in ("label", "xmax", "xmin", "ymax", "ymin")),
        "image/width",
    ]


def test_that_of_tensorflow_datasets() -> None:
    """``tfds`` has image, label and base name, and its labels count from 0."""
    layout = Layout.of("tfds")
    assert dict(layout.features) == {"image": "encoded", "label": "label", "file_name": "filename"}
    assert not layout.counts_from_background
    assert not layout.keeps_boxes


@given(
    st.dictionaries(st.text(min_size=1), st.sampled_from(FIELDS)).map(lambda own: {**own, **OWN})
)
def test_features_stand_in_the_order_of_their_bytes(features: dict[str, str]) -> None:
    """Features are sorted as UTF-8 in any order of a mapping. A refusal has the reason."""
    try:
        layout = Layout.of(features)
    except ConfigError:
        fields = list(features.values())
        sides = {field for field in fields if field.startswith("bbox/")} - {"bbox/label"}
        boxes = any(field.startswith("bbox/") for field in fields)
        assert len(set(fields)) < len(fields) or (boxes and len(sides) < 4)
        return
    keys = [feature.encode() for feature, _ in layout.features]
    assert keys == sorted(keys)
    assert all(layout.feature(field) == feature for feature, field in features.items())


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("imagnet", "no layout 'imagnet': use one of imagenet, tfds, or a mapping"),
        ({**OWN, "w": "widht"}, "feature 'w': no field 'widht': use one of encoded, label, "),
        ({"y": "label"}, "no feature holds 'encoded'.*such as image: encoded"),
        ({"x": "encoded"}, "no feature holds 'label'.*such as label: label"),
        ({**OWN, "z": "label"}, "field 'label' is in two features"),
        (["encoded"], "no layout .*: use one of"),
        ({**OWN, "a": "bbox/xmin"}, "boxes without bbox/xmax, bbox/ymax, bbox/ymin"),
        ({**OWN, "a": "bbox/label"}, "boxes without bbox/xmax, bbox/xmin, bbox/ymax, bbox/ymin"),
    ],
)
def test_a_layout_that_cannot_be(value: Any, message: str) -> None:
    """A layout that could not be written or read again is refused, with the known names."""
    with pytest.raises(ConfigError, match=message):
        Layout.of(value)
