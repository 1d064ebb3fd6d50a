"""Tests of dataprep.sources.record_files."""

from __future__ import annotations

import zlib

import pytest

from dataprep.errors import SourceError
from dataprep.sources.record_files import (
    format_of,
    is_shard_name,
    of_split,
    split_of,
)
from tests.dataprep.sources.shards import customary, examples, image_records


@pytest.mark.parametrize(
    ("name", "split"),
    [
        ("train-00000-of-01024", "train"),
        ("sub/folder/validation-00000-of-00128", "validation"),
        ("train-00000-of-00012.rec", "train"),
        ("imagenet2012-train.tfrecord-00000-of-01024", "imagenet2012-train"),
        ("flowers_train_00000-of-00005.tfrecord", "flowers_train"),
        ("train_0.rec", "train"),
        ("train_12.rec", "train"),
        ("val.rec", "val"),
        ("coco.tfrecords", "coco"),
        ("a.tfrec", "a"),
    ],
)
def test_shards_and_their_splits_are_known_by_name(name: str, split: str) -> None:
    """Names as TensorFlow, TFDS, slim and im2rec give them."""
    assert is_shard_name(name)
    assert split_of(name) == split


@pytest.mark.parametrize(
    "name",
    ["train.idx", "train-00000-of-00001.idx", "train.lst", "labels.json", "a.jpg", ".hidden.rec",
     "features.json", "train-0-of-1", "README"],
)  # fmt: skip
def test_what_is_beside_shards_is_none(name: str) -> None:
    """Indexes, listings and other files are passed over."""
    assert not is_shard_name(name)


@pytest.mark.parametrize(
    ("split", "chosen"),
    [("train", ["x-train-00000-of-00001"]), ("validation", ["x-val-00000-of-00001"])],
)
def test_a_split_is_a_word_of_the_name(split: str, chosen: list[str]) -> None:
    """val is validation."""
    names = ["x-val-00000-of-00001", "x-train-00000-of-00001"]
    assert of_split(names, split, "here") == chosen


def test_one_split_needs_no_name() -> None:
    """Shards that tell no split apart are all taken, sorted."""
    assert of_split(["a_1.rec", "a_0.rec"], "train", "here") == ["a_0.rec", "a_1.rec"]


def test_splits_that_cannot_be_told_are_named() -> None:
    """Two fit, or none."""
    for names in (["a-train.rec", "b-train.rec"], ["a.rec", "b.rec"]):
        with pytest.raises(SourceError, match=r"here holds shards of several splits, 'a"):
            of_split(names, "train", "here")


def test_formats_are_known_by_their_first_bytes() -> None:
    """RecordIO by its magic, TFRecord by the checksum of its first length."""
    assert format_of(examples([customary(1)])[0][:16], "x") == "tfrecord"
    assert format_of(image_records([((1.0,), b"x")])[0][:16], "x") == "recordio"
    with pytest.raises(SourceError, match="compressed"):
        format_of(zlib.compress(b"x" * 99), "x")
    with pytest.raises(SourceError, match="neither"):
        format_of(b"short", "x")
