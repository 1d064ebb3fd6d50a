"""Settings of the probes, and the trials that follow from them."""

from __future__ import annotations

import itertools
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
def test_invalid_settings_are_refused(content: dict[str, Any], message: str) -> None:
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
    for block, count in points:
        assert block == settings.at_block_bytes or count == settings.at_parallelism


def subset(*values: str) -> st.SearchStrategy[list[str]]:
    """Draw some of the values, at least one."""
    return st.lists(st.sampled_from(values), min_size=1, unique=True)


settings_of_disks = st.fixed_dictionaries(
    {
        "targets": st.just([{"label": "a", "path": "/a"}, {"label": "b", "path": "/b"}]),
        "operations": subset("read", "write"),
        "patterns": subset("sequential", "random"),
        "cache": subset("direct", "cold", "warm"),
        "parallelism": st.lists(st.integers(1, 32), min_size=1, max_size=4),
    }
).map(DiskSettings.model_validate)


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
    caches_of_reads = [params["cache"] for params in trials if params["operation"] == "read"]
    assert Counter(caches_of_reads) == {"direct": 10, "cold": 10, "warm": 10}


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
    layout_data = ["shards@disk", "photos@disk", "shards-16MB@s3", "shards@disk", "pixels@disk"]
    content = {"layout_data": layout_data, "layout_parallelism": 1}
    trials = list(plan_layouts(DiskSettings.model_validate(content)))
    assert [(params["data"], params["access"], params["cache"]) for params in trials] == [
        ("shards@disk", "shards", "cold"),
        ("shards@disk", "shards", "warm"),
        ("shards@disk", "records", "cold"),
        ("shards@disk", "records", "warm"),
        ("photos@disk", "files", "cold"),
        ("photos@disk", "files", "warm"),
        ("shards-16MB@s3", "shards", "cold"),
        ("shards-16MB@s3", "records", "cold"),
        ("pixels@disk", "shards", "cold"),
        ("pixels@disk", "shards", "warm"),
        ("pixels@disk", "records", "cold"),
        ("pixels@disk", "records", "warm"),
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"targets": [{"label": "s3"}] * 2}, "two targets are labelled 's3'"),
        ({"targets": [{"label": ""}]}, "label"),
        ({"targets": [{"label": "a/b"}]}, "label"),
        ({"targets": [{"label": "a b"}]}, "label"),
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


object_sizes = st.integers(1, 64_000_000)
connections = st.integers(1, 64)
TARGETS = [{"label": "near"}, {"label": "far", "uri": "s3://bucket/prefix"}]
SETTINGS = st.fixed_dictionaries(
    {
        "object_bytes": st.lists(object_sizes, max_size=4).map(lambda sizes: [*sizes, 20_000_000]),
        "at_object_bytes": object_sizes,
        "connections": st.lists(connections, min_size=1, max_size=4),
        "at_connections": connections,
        "clients": st.lists(st.sampled_from(["boto3", "obstore"]), min_size=1, max_size=2),
        "targets": st.just(TARGETS),
    }
).map(ObjectStoreSettings.model_validate)
"""Settings with at least one object size that is large enough for multipart uploads."""


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
    connections: dict[tuple[str, str, str], set[int]] = {}
    sizes: dict[tuple[str, str, str], set[int]] = {}
    for params in plan_objects(settings):
        combination = params["store"], params["client"], params["operation"]
        connections.setdefault(combination, set()).add(params["connections"])
        if params["connections"] == settings.at_connections:
            sizes.setdefault(combination, set()).add(params["object_bytes"])
    labels = [target.label for target in settings.targets]
    for combination in itertools.product(labels, settings.clients, settings.operations):
        assert connections[combination] >= set(settings.connections)
        expected_sizes = set(settings.object_bytes)
        if combination[2] == "multipart":
            expected_sizes = {size for size in expected_sizes if size > settings.part_bytes}
        assert sizes[combination] >= expected_sizes


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
