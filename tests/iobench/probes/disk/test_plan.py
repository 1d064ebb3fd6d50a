"""Settings to trials."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.probes.disk import DiskSettings, plan, plan_layouts
from iobench.trial import TrialSpec

pytestmark = pytest.mark.slow


def subset(*values: str) -> st.SearchStrategy[list[str]]:
    """Some of the values, at least one."""
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
def test_no_trial_comes_twice_and_all_are_named_by_json(settings: DiskSettings) -> None:
    """Params are JSON values, and the id of a trial is its own."""
    trials = [dict(params) for params in plan(settings)]
    assert json.loads(json.dumps(trials)) == trials
    assert set(Counter(TrialSpec("disk", params).id for params in trials).values()) == {1}


@given(settings_of_disks)
def test_every_target_gets_the_same(settings: DiskSettings) -> None:
    """Targets are compared at the same points, which the ids do not tie to a path."""
    trials: dict[str, list[dict[str, object]]] = {"a": [], "b": []}
    for params in plan(settings):
        assert not any("/" in str(value) for value in params.values())
        trials[params["target"]].append({**params, "target": ""})
    assert trials["a"] == trials["b"]


def test_the_plan_is_two_sweeps_not_a_product() -> None:
    """The default has 5 points for each way of reading and writing: 6 and 4 of them."""
    settings = DiskSettings.model_validate({"targets": [{"label": "a", "path": "/a"}]})
    trials = list(plan(settings))
    assert len(trials) == 5 * 6 + 5 * 4
    assert Counter(params["cache"] for params in trials if params["operation"] == "read") == {
        "direct": 10,
        "cold": 10,
        "warm": 10,
    }


def test_a_write_is_direct_or_buffered_once() -> None:
    """Cold and warm mean nothing to a write."""
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
    assert [params["cache"] for params in plan(settings)] == ["buffered"]


def test_an_engine_is_named_where_it_is_not_our_own() -> None:
    """Each point once by each, one after the other; trials of our own are called as before."""
    told = {"targets": [{"label": "a", "path": "/a"}], "engine": ["iobench", "fio"]}
    trials = [dict(params) for params in plan(DiskSettings.model_validate(told))]
    own = [params for params in trials if "engine" not in params]
    assert [params.get("engine") for params in trials] == [None, "fio"] * len(own)
    assert trials[1::2] == [{**params, "engine": "fio"} for params in own]


def test_each_form_of_data_is_read_as_it_can_be() -> None:
    """Shards whole and by record, folders by file; on a store nothing is warmed."""
    settings = DiskSettings.model_validate(
        {
            "layout_data": [
                *("shards@disk", "photos@disk", "shards-16MB@s3", "shards@disk", "pixels@disk"),
            ],
            "layout_parallelism": 1,
        }
    )
    found = [(p["data"], p["access"], p["cache"]) for p in plan_layouts(settings)]
    assert found == [
        *((("shards@disk"), access, cache) for access in ("shards", "records") for cache in WAYS),
        *(("photos@disk", "files", cache) for cache in WAYS),
        *(("shards-16MB@s3", access, "cold") for access in ("shards", "records")),
        *(("pixels@disk", access, cache) for access in ("shards", "records") for cache in WAYS),
    ]


WAYS = ("cold", "warm")
