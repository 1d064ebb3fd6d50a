"""Tests of dataprep.sources.record_files."""

from __future__ import annotations

import zlib

import pytest

from dataprep.errors import SourceError
from dataprep.sources.record_files import (
    format_of,
    is_shard_name,
    of_split,
    require_one_set,
    require_whole,
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


SIX = [f"a/train-{number:05}-of-00006" for number in range(6)]


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ([2], "here lacks 1 of 6 shards, such as 'a/train-00002-of-00006'"),
        ([0], "such as 'a/train-00000-of-00006'"),
        ([3, 5], "here lacks 2 of 6 shards, such as 'a/train-00003-of-00006'"),
    ],
)
def test_missing_shards_are_counted_and_one_is_named(missing: list[int], message: str) -> None:
    """Whichever they are; the way out is named."""
    names = [name for number, name in enumerate(SIX) if number not in missing]
    with pytest.raises(SourceError, match=f"{message}.*incomplete=true"):
        require_whole(names, names, "here")


def test_sets_that_are_whole() -> None:
    """From 0 or from 1, an empty shard among them, each name by itself, others without number."""
    from_one = [f"x_{number:05}-of-00003.tfrecord" for number in (1, 2, 3)]
    require_whole([*SIX[1:], *from_one, "y.rec"], [*SIX, *from_one, "y.rec", "z.txt"], "here")


def test_shards_of_several_sets_are_refused() -> None:
    """Six shards beside the one of an earlier run hold its samples again."""
    require_one_set([*SIX, "b/train-00000-of-00001", "train-00000-of-00002.rec"], "here")
    with pytest.raises(SourceError, match=r"'a/train-00000-of-00006' and 'a/train-00000-of-00001'"):
        require_one_set([*SIX, "a/train-00000-of-00001"], "here")


def test_formats_are_known_by_their_first_bytes() -> None:
    """RecordIO by its magic, TFRecord by the checksum of its first length."""
    assert format_of(examples([customary(1)])[0][:16], "x") == "tfrecord"
    assert format_of(image_records([((1.0,), b"x")])[0][:16], "x") == "recordio"
    with pytest.raises(SourceError, match="compressed"):
        format_of(zlib.compress(b"x" * 99), "x")
    with pytest.raises(SourceError, match="neither"):
        format_of(b"short", "x")
