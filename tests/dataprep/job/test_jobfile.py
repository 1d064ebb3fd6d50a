"""Job files are stored and compared with a new request."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.config.shard_config import ShardConfig
from dataprep.errors import DatasetError, SchemaTooNew
from dataprep.job.job_file import JobFile, content_of_split, differences, with_defaults
from tests.strategies import json_values, mutated

JOB = JobFile(
    split="train",
    config={"image": {"size": 256, "mode": "short"}, "seed": 0},
    versions={"pillow": "12"},
    source={"files": 30, "bytes": 99, "sha256": "aa"},
    calibration=((10, 5), (20, 9)),
    label_offsets={"tfrecord": 1},
    labels_sha256="bb",
    plan_sha256="cc",
    shards=4,
)
VERSIONS = "file_versions"
CHANGES: dict[str, Any] = {
    "split": "test",
    "config": {"seed": 1},
    "versions": {},
    "source": {"files": 4},
    "calibration": ((10, 6),),
    "label_offsets": {"tfrecord": 0},
    "labels_sha256": "bc",
    "plan_sha256": "cd",
    "shards": 5,
    "schema": 0,
}


def test_job_files_come_back() -> None:
    """A job file is read back from JSON unchanged, with its fingerprint first."""
    data = JOB.to_json()
    assert JobFile.from_json(data, "j") == JOB
    assert next(iter(json.loads(data).items())) == ("fingerprint", JOB.fingerprint)


def test_the_fingerprint_ignores_the_order_of_keys() -> None:
    """Mappings in another order have the same fingerprint."""
    turned = replace(JOB, config={"seed": 0, "image": {"mode": "short", "size": 256}})
    assert turned.fingerprint == JOB.fingerprint
    assert len(JOB.fingerprint) == 64


@pytest.mark.parametrize("name", sorted({field.name for field in fields(JobFile)} - {VERSIONS}))
def test_the_fingerprint_covers_every_field(name: str) -> None:
    """Changing any field changes the fingerprint, except the versions of source files."""
    assert replace(JOB, **{name: CHANGES[name]}).fingerprint != JOB.fingerprint


def test_the_fingerprint_does_not_depend_on_where_files_came_from() -> None:
    """A copy of the source has other modification times and the same fingerprint."""
    job = replace(JOB, file_versions={"a.tar": "1764249999-10240"})
    assert job.fingerprint == JOB.fingerprint
    assert JobFile.from_json(job.to_json(), "j").file_versions == job.file_versions


def test_changes_by_hand_are_found() -> None:
    """A stored job file that was edited does not match its fingerprint."""
    changed = JOB.to_json().replace(b'"shards": 4', b'"shards": 3')
    with pytest.raises(DatasetError, match="j: its content does not match its fingerprint"):
        JobFile.from_json(changed, "j")


def test_a_newer_job_file_is_refused() -> None:
    """A newer schema is refused with any other content."""
    with pytest.raises(SchemaTooNew, match=r"j: schema 2.*upgrade"):
        JobFile.from_json(b'{"fingerprint": "x", "schema": 2, "new": 1}', "j")


@given(
    data=st.binary() | json_values.map(json.dumps).map(str.encode) | mutated(st.just(JOB.to_json()))
)
def test_other_content_is_no_job_file(data: bytes) -> None:
    """Arbitrary bytes and JSON raise a DatasetError; a damaged job file never reads as another."""
    try:
        parsed = JobFile.from_json(data, "train.job.json")
    except DatasetError as error:
        message = str(error)
    else:
        assert parsed == JOB
        return
    assert message.startswith("train.job.json: ")


def test_differences_name_keys() -> None:
    """Each differing key is named with both values, and nested keys have dots."""
    before = {"image": {"size": 256, "mode": "short"}, "seed": 0, "format": ["a"], "old": True}
    now = {"image": {"size": 224, "mode": "short"}, "seed": 0, "format": ("a", "b"), "new": None}
    assert differences(before, now) == [
        'format: ["a"] before, ["a", "b"] now',
        "image.size: 256 before, 224 now",
        "old: true before, nothing now",
    ]


def test_tuples_are_lists() -> None:
    """A list that JSON made from a tuple is no difference."""
    assert differences({"size": [1, 2]}, {"size": (1, 2)}) == []
    assert differences({"a": {"b": 1}}, {"a": 1}) == [
        "a: nothing before, 1 now",
        "a.b: 1 before, nothing now",
    ]


leaves = st.integers() | st.text(max_size=3) | st.lists(st.integers(), max_size=2)
flat = st.dictionaries(st.sampled_from("abcd"), leaves)


@given(left=flat, right=flat)
def test_as_many_differences_as_keys_differ(left: dict[str, Any], right: dict[str, Any]) -> None:
    """There is one line for each differing key, in order of the keys, and none for equal ones."""
    differing = sorted(key for key in left.keys() | right.keys() if left.get(key) != right.get(key))
    for prefix, before, now in (("", left, right), ("x.", {"x": left}, {"x": right})):
        lines = differences(before, now)
        assert [line.split(":")[0] for line in lines] == [prefix + key for key in differing]
    assert differences(left, left) == []


CONFIG = ShardConfig(source="in", output="out")
OF_THE_FIRST_VERSION = {
    "kind": "imagefolder",
    "split": "train",
    "format": ["tfrecord"],
    "image": {
        "mode": "none",
        "size": None,
        "upscale": False,
        "quality": 95,
        "subsampling": "420",
        "orientation": "ignore",
        "check": "decode",
        "max_pixels": 89478485,
        "max_source_bytes": 268435456,
    },
    "shard_size": 67108864,
    "shuffle": True,
    "seed": 0,
    "validation": None,
    "label_offset": {},
}
"""The config in a job file before there were layouts, boxes and other keys."""


def test_a_job_of_the_first_version_is_the_same_job() -> None:
    """Later keys had their defaults in the first version, so that its job can be resumed."""
    assert differences(with_defaults(OF_THE_FIRST_VERSION), content_of_split(CONFIG, "train")) == []


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        ({"layout": "tfds"}, 'layout: "imagenet" before, "tfds" now'),
        ({"boxes": "b.csv"}, "boxes.format: nothing before"),
        ({"image": {"quality": 90}}, "image.quality: 95 before, 90 now"),
    ],
)
def test_another_job_is_another(changes: dict[str, Any], difference: str) -> None:
    """A changed setting is a difference, even if it had its default before."""
    config = ShardConfig.model_validate({"source": "in", "output": "out", **changes})
    differing_keys = differences(
        with_defaults(OF_THE_FIRST_VERSION), content_of_split(config, "train")
    )
    assert any(difference in line for line in differing_keys)
