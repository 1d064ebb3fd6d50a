"""Names are converted between bytes and text, and objects have documented keys."""

from __future__ import annotations

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.name_encoding import escape, to_bytes, unescape
from dataprep.output import keys
from tests.strategies import distinct_names, file_names


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("n01440764/n01440764_10026.JPEG", "n01440764/n01440764_10026.JPEG"),
        ("naïve 犬 🐕.jpg", "naïve 犬 🐕.jpg"),
        ("a\tb\nc", r"a\x09b\x0ac"),
        ("back\\slash", r"back\\slash"),
        (os.fsdecode(b"caf\xe9"), r"caf\xe9"),
        ("\x85\u2028\u2029", r"\xc2\x85\xe2\x80\xa8\xe2\x80\xa9"),
        (r"\x41", r"\\x41"),
        ("\x7f\x00", r"\x7f\x00"),
    ],
)
def test_known_names(name: str, text: str) -> None:
    """Ordinary names do not change, and documented characters are escaped byte by byte."""
    assert escape(name) == text
    assert unescape(text) == name


@given(name=file_names)
def test_escaped_names_come_back(name: str) -> None:
    """Any name, and its bytes, is read back."""
    assert unescape(escape(name)) == name
    assert os.fsdecode(to_bytes(name)) == name


@given(name=file_names)
def test_escaped_names_are_one_field_of_one_line(name: str) -> None:
    """An escaped name is valid UTF-8, one line, free of tabs, and survives JSON."""
    text = escape(name)
    assert text.encode().decode() == text
    assert text.splitlines() == ([text] if text else [])
    assert "\t" not in text
    assert json.loads(json.dumps(text)) == text


@given(names=distinct_names)
def test_different_names_stay_different(names: list[str]) -> None:
    """No two names have the same escaped form or bytes."""
    assert len({escape(name) for name in names}) == len(names)
    assert len({to_bytes(name) for name in names}) == len(names)


def test_a_text_that_is_escaped_in_part_keeps_its_other_bytes() -> None:
    """Escaped and other bytes of a name are both kept, as in a .lst."""
    assert unescape(os.fsdecode(b"a\\x09b\xe9")) == os.fsdecode(b"a\tb\xe9")


splits = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_]*", fullmatch=True)

FORMATS = ("recordio", "tfrecord")


def test_the_documented_layout() -> None:
    """Every object has its documented key."""
    assert keys.data("tfrecord", "", "train", 0, 12) == "tfrecord/train-00000-of-00012"
    assert keys.data("recordio", ".rec", "train", 3, 12) == "recordio/train-00003-of-00012.rec"
    assert keys.index("tfrecord", ".idx", "train", 0, 12) == (
        "index/tfrecord/train-00000-of-00012.idx"
    )
    assert keys.receipt("train", 0, 12) == "receipts/train-00000-of-00012.json"
    assert keys.job("train") == "train.job.json"
    assert keys.plan("train") == "train.plan.parquet"
    assert keys.samples("train") == "train.samples.parquet"
    assert keys.manifest("train") == "train.manifest.json"
    assert keys.LABELS == "labels.json"


@given(split=splits, shard=st.integers(0, 10**6), more=st.integers(1, 10**6))
def test_the_index_beside_a_shard(split: str, shard: int, more: int) -> None:
    """The key of a shard gives the keys of its index files."""
    location = split, shard, shard + more
    for name, extension, index in (("tfrecord", "", ".idx"), ("recordio", ".rec", ".lst")):
        beside = keys.index_of(keys.data(name, extension, *location), index)
        assert beside == keys.index(name, index, *location)


@pytest.mark.parametrize(
    ("shards", "name"),
    [
        (99_999, "train-00007-of-99999"),
        (100_000, "train-000007-of-100000"),
        (1_234_567, "train-0000007-of-1234567"),
    ],
)
def test_numbers_grow_where_five_digits_do_not_do(shards: int, name: str) -> None:
    """Numbers have five digits, or as many as the number of shards needs."""
    assert keys.numbered("train", 7, shards) == name


@given(split=splits, other=splits, shard=st.integers(0, 10**6), more=st.integers(1, 10**6))
def test_keys_belong_to_their_split_alone(split: str, other: str, shard: int, more: int) -> None:
    """Each key belongs to the split for which it was made, and to no other."""
    shards = shard + more
    results = [
        keys.data("tfrecord", "", split, shard, shards),
        keys.data("recordio", ".rec", split, shard, shards),
        keys.index("recordio", ".lst", split, shard, shards),
        keys.receipt(split, shard, shards),
        keys.job(split),
        keys.plan(split),
        keys.samples(split),
        keys.manifest(split),
    ]
    assert all(keys.belongs_to(split, key, FORMATS) for key in results)
    if other != split:
        assert not any(keys.belongs_to(other, key, FORMATS) for key in results)


@pytest.mark.parametrize(
    "key",
    [
        "labels.json",
        "train.txt",
        "notes/train-plan.md",
        "backup/tfrecord/train-00000-of-00012",
        "index/old/tfrecord/train-00000-of-00012.idx",
        "tfrecord/train-00000-of-00012.tar.gz",
        "tfrecord/train-00000-of-00012-copy",
        "tfrecord/train-0-of-12",
        "old/train.job.json",
        "backup/train-00000-of-00012",
        "receipts/old/train-00000-of-00012.json",
        "train-00000-of-00012",
    ],
)
def test_what_an_output_does_not_write_belongs_to_nobody(key: str) -> None:
    """Files that a user may have added to an output belong to no split."""
    assert not keys.belongs_to("train", key, FORMATS)


@given(split=splits)
def test_job_files_name_their_split(split: str) -> None:
    """The split is read from the key of a job file, and from no other key."""
    assert keys.split_of_job(keys.job(split)) == split
    assert keys.split_of_job(keys.manifest(split)) is None
    assert keys.split_of_job(f"old/{keys.job(split)}") is None


def test_splits_are_known_by_any_of_their_files() -> None:
    """A job file, tables and receipts name a split. A plan alone or data do not."""
    object_keys = [
        *("a.job.json", "b.manifest.json", "c.samples.parquet", "d.notes.json"),
        *("receipts/e-00000-of-00001.json", "f.plan.parquet", "tfrecord/g-00000-of-00001"),
        *("labels.json", "x/h.job.json", "receipts/i.json"),
    ]
    assert keys.splits(object_keys) == {"a", "b", "c", "e"}
