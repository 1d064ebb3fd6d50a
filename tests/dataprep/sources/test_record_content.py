"""Tests of dataprep.sources.record_content."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.errors import CorruptRecord
from dataprep.formats.example import BytesList, Feature, FloatList, Int64List, encode_example
from dataprep.formats.recordio import pack_image_header
from dataprep.sources.record_content import (
    LAYOUTS,
    Content,
    fields_of,
    layout_of,
    of_example,
    of_image_record,
)
from tests.strategies import mutated

CUSTOMARY = encode_example(
    {
        "image/encoded": BytesList([b"jpeg"]),
        "image/class/label": Int64List([7]),
        "image/class/synset": BytesList([b"n00000007"]),
        "image/class/text": BytesList([b"seven"]),
        "image/filename": BytesList([b"7.JPEG"]),
    }
)
TFDS = encode_example(
    {"image": BytesList([b"jpeg"]), "label": Int64List([6]), "file_name": BytesList([b"6.JPEG"])}
)


def test_customary_keys_and_those_of_tfds_are_told_apart() -> None:
    """By the key of the image."""
    assert (layout_of(CUSTOMARY), layout_of(TFDS)) == ("imagenet", "tfds")
    with pytest.raises(CorruptRecord, match=r"^neither.*it has none"):
        layout_of(b"")


def test_an_example_says_what_its_keys_hold() -> None:
    """Labels as they are written; what is missing is empty."""
    assert of_example(CUSTOMARY, LAYOUTS["imagenet"]) == Content(
        b"jpeg", (7.0,), b"n00000007", b"seven", b"7.JPEG"
    )
    assert of_example(TFDS, LAYOUTS["tfds"]) == Content(b"jpeg", (6.0,), filename=b"6.JPEG")
    bare = encode_example({"image": BytesList([b"x"])})
    assert of_example(bare, LAYOUTS["tfds"]) == Content(b"x")


def test_several_values_are_all_labels() -> None:
    """A layout with values has them for labels, a class and nothing else where there is one."""
    fields = fields_of({"i": "encoded", "l": "label", "v": "values"})
    for values, labels in (([3.0, 0.5], (3.0, 0.5)), ([], (3.0,))):
        features: dict[str, Feature] = {
            "i": BytesList([b"x"]),
            "l": Int64List([3]),
            "v": FloatList(values),
        }
        assert of_example(encode_example(features), fields).labels == labels


@pytest.mark.parametrize("features", [{}, {"image": Int64List([1])}, {"image": BytesList([])}])
def test_an_example_without_an_image_is_damage(
    features: dict[str, BytesList | Int64List],
) -> None:
    """It has to be bytes, and one."""
    with pytest.raises(CorruptRecord, match="not one image under 'image'"):
        of_example(encode_example(features), LAYOUTS["tfds"])


def test_an_image_record_says_its_labels() -> None:
    """One in the header, or several after it."""
    one = pack_image_header([3], 0) + b"jpeg"
    two = pack_image_header([3, 0.5], 0) + b"jpeg"
    assert of_image_record(one) == Content(b"jpeg", (3.0,))
    assert of_image_record(two) == Content(b"jpeg", (3.0, 0.5))


@given(data=st.one_of(st.binary(max_size=60), mutated(st.sampled_from([CUSTOMARY, TFDS]))))
def test_any_bytes_are_content_or_damage(data: bytes) -> None:
    """Nothing but CorruptRecord comes of bytes that are no record."""
    with contextlib.suppress(CorruptRecord):
        assert isinstance(of_example(data, LAYOUTS["imagenet"]), Content)
    with contextlib.suppress(CorruptRecord):
        assert isinstance(of_image_record(data), Content)
