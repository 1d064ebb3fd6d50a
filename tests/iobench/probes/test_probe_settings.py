"""Settings of the probes, and the trials that follow from them."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from iobench.probes.settings import (
    DiskSettings,
    ObjectStoreSettings,
    plan_disks,
    plan_layouts,
    plan_objects,
)
from iobench.results.trial import TrialSpec

pytestmark = pytest.mark.slow

blocks = st.lists(st.sampled_from([4096, 2**17, 2**20, 2**22]), min_size=1, max_size=3)
counts = st.lists(st.integers(1, 16), min_size=1, max_size=3)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"targets": [{"label": "a", "path": "/x"}, {"label": "a", "path": "/y"}]}, "'a'"),
        ({"targets": [{"label": "a/b", "path": "/x"}]}, "label"),
        ({"block_bytes": 5000}, "multiple of 4096"),
        ({"file_bytes": "1MiB"}, "too small for 8 processes"),
        ({"parallelism": 0}, "parallelism"),
        ({"cache": "lukewarm"}, "cache"),
        ({"seconds": 0}, "seconds"),
        ({"layout_data": ["floppies@disk"]}, "floppies@disk"),
        ({"blocksize": 4096}, "blocksize"),
    ],
)
def test_what_cannot_be_is_refused(content: dict[str, Any], message: str) -> None:
    """Invalid settings are refused, and the message names the value or key."""
    with pytest.raises(ValidationError, match=message):
        DiskSettings.model_validate(content)


@given(blocks, counts)
def test_points_are_two_lines_through_one_point(sizes: list[int], processes: list[int]) -> None:
    """Each point has the fixed block size or parallelism, and is measured once."""
    settings = DiskSettings.model_validate({"block_bytes": sizes, "parallelism": processes})
    points = list(settings.points())
    assert len(points) == len(set(points))
    assert {block for block, _ in points} == {*sizes, settings.at_block_bytes}
    assert {count for _, count in points} == {*processes, settings.at_parallelism}
    assert all(
        block == settings.at_block_bytes or count == settings.at_parallelism
        for block, count in points
    )


def subset(*values: str) -> st.SearchStrategy[list[str]]:
    """Draw some of the values, at least one."""
    return st.lists(st.sampled_from(values), min_size=1, unique=True)


settings_of_disks = st.builds(
    lambda **content: DiskSettings.model_validate(
        {"targets": [{"label": name, "path": f"/{name}"} for name in ("a", "b")], **content}
    ),
    operations=subset("read", "write"),
    patterns=subset("sequential", "random"),
    cache=subset("direct", "cold", "warm"),
    parallelism=st.lists(st.integers(1, 32), min_size=1, max_size=4),
)


@given(settings_of_disks)
def test_every_target_gets_the_same_trials_once(settings: DiskSettings) -> None:
    """Params are JSON values, and the trial's id is unique and independent of paths."""
    trials = [dict(params) for params in plan_disks(settings)]
    assert json.loads(json.dumps(trials)) == trials
    assert set(Counter(TrialSpec("disk", params).id for params in trials).values()) == {1}
    assert not any("/" in str(value) for params in trials for value in params.values())
    for params in trials:
        assert {**params, "target": "b" if params["target"] == "a" else "a"} in trials


def test_the_plan_is_two_sweeps_not_a_product() -> None:
    """The default has 5 points for each of 6 ways to read and 4 ways to write."""
    settings = DiskSettings.model_validate({"targets": [{"label": "a", "path": "/a"}]})
    trials = list(plan_disks(settings))
    assert len(trials) == 5 * 6 + 5 * 4
    assert Counter(params["cache"] for params in trials if params["operation"] == "read") == {
        "direct": 10,
        "cold": 10,
        "warm": 10,
    }


def test_a_write_is_direct_or_buffered_once() -> None:
    """A write is not planned twice for cold and warm."""
    settings = DiskSettings.model_validate(
        {
            "targets": [{"label": "a", "path": "/a"}],
            "operations": "write",
            "patterns": "random",
            "cache": ["cold", "warm"],
            "block_bytes": "1MiB",
            "parallelism": 8,
        }
    )
    assert [params["cache"] for params in plan_disks(settings)] == ["buffered"]


def test_an_engine_is_named_where_it_is_not_our_own() -> None:
    """Each engine measures each point; params name only other engines."""
    settings = {"targets": [{"label": "a", "path": "/a"}], "engine": ["iobench", "fio"]}
    trials = [dict(params) for params in plan_disks(DiskSettings.model_validate(settings))]
    own = [params for params in trials if "engine" not in params]
    assert [params.get("engine") for params in trials] == [None, "fio"] * len(own)
    assert trials[1::2] == [{**params, "engine": "fio"} for params in own]


def test_each_form_of_data_is_read_as_it_can_be() -> None:
    """Shards are read whole and by record, folders by file, and stores only cold."""
    settings = DiskSettings.model_validate(
        {
            "layout_data": [
                *("shards@disk", "photos@disk", "shards-16MB@s3", "shards@disk", "pixels@disk"),
            ],
            "layout_parallelism": 1,
        }
    )
    actual = [(p["data"], p["access"], p["cache"]) for p in plan_layouts(settings)]
    assert actual == [
        *((("shards@disk"), access, cache) for access in ("shards", "records") for cache in WAYS),
        *(("photos@disk", "files", cache) for cache in WAYS),
        *(("shards-16MB@s3", access, "cold") for access in ("shards", "records")),
        *(("pixels@disk", access, cache) for access in ("shards", "records") for cache in WAYS),
    ]


WAYS = ("cold", "warm")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"targets": [{"label": "s3"}] * 2}, "two targets are labelled 's3'"),
        *(({"targets": [{"label": label}]}, "label") for label in ("", "a/b", "a b")),
    ],
)
def test_labels_become_names(content: dict[str, Any], message: str) -> None:
    """A label is one word, and no two targets have the same."""
    with pytest.raises(ValidationError, match=message):
        ObjectStoreSettings.model_validate(content)


def test_multipart_needs_more_than_one_part() -> None:
    """Multipart without an object of two parts is refused with advice."""
    small = {"object_bytes": [5_000], "at_object_bytes": 100_000}
    with pytest.raises(ValidationError, match="raise object_bytes above 8388608"):
        ObjectStoreSettings.model_validate(small)
    ObjectStoreSettings.model_validate({**small, "operations": ["get", "put"]})


SETTINGS = st.builds(
    lambda sizes, size, connections, at, clients: ObjectStoreSettings.model_validate(
        {
            "object_bytes": [*sizes, 20_000_000],
            "at_object_bytes": size,
            "connections": connections,
            "at_connections": at,
            "clients": clients,
            "targets": [{"label": "near"}, {"label": "far", "uri": "s3://bucket/prefix"}],
        }
    ),
    st.lists(st.integers(1, 64_000_000), max_size=4),
    st.integers(1, 64_000_000),
    st.lists(st.integers(1, 64), min_size=1, max_size=4),
    st.integers(1, 64),
    st.lists(st.sampled_from(["boto3", "obstore"]), min_size=1, max_size=2),
)


def test_sizes_are_swept_at_one_number_of_connections_and_connections_at_one_size() -> None:
    """The point that both sweeps share is measured once."""
    settings = ObjectStoreSettings.model_validate(
        {
            "clients": "boto3",
            "operations": "get",
            "object_bytes": ["1kB", 8_000],
            "connections": [1, 4, 16],
            "at_object_bytes": 8_000,
            "at_connections": 4,
        }
    )
    points = [(params["object_bytes"], params["connections"]) for params in plan_objects(settings)]
    assert points == [(1_000, 4), (8_000, 4), (8_000, 1), (8_000, 16)]


@given(SETTINGS)
def test_every_combination_has_both_sweeps(settings: ObjectStoreSettings) -> None:
    """Each target, client and operation is measured in both sweeps."""
    for target in settings.targets:
        for client in settings.clients:
            for operation in settings.operations:
                expected = {"store": target.label, "client": client, "operation": operation}
                mine = [
                    params
                    for params in plan_objects(settings)
                    if expected.items() <= params.items()
                ]
                assert {params["connections"] for params in mine} >= set(settings.connections)
                sizes = {
                    params["object_bytes"]
                    for params in mine
                    if params["connections"] == settings.at_connections
                }
                large = operation != "multipart"
                assert sizes >= {
                    size for size in settings.object_bytes if large or size > settings.part_bytes
                }


@given(SETTINGS)
def test_each_trial_is_named_by_json_without_an_address(settings: ObjectStoreSettings) -> None:
    """Trials are distinct; no multipart trial has an object of a single part."""
    trials = list(plan_objects(settings))
    assert json.loads(json.dumps(trials)) == trials
    assert "://" not in json.dumps(trials)
    assert set(Counter(TrialSpec("object", params).id for params in trials).values()) == {1}
    for params in trials:
        is_multipart = params["operation"] == "multipart"
        assert is_multipart == ("part_bytes" in params)
        assert not is_multipart or params["object_bytes"] > params["part_bytes"]
