"""Two sweeps for each target, client and operation."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.probes.object_store.plan import plan
from iobench.probes.object_store.settings import ObjectStoreSettings
from iobench.trial import TrialSpec

pytestmark = pytest.mark.slow

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
            "object_bytes": [1_000, 8_000],
            "connections": [1, 4, 16],
            "at_object_bytes": 8_000,
            "at_connections": 4,
        }
    )
    points = [(params["object_bytes"], params["connections"]) for params in plan(settings)]
    assert points == [(1_000, 4), (8_000, 4), (8_000, 1), (8_000, 16)]


@given(SETTINGS)
def test_no_trial_is_planned_twice(settings: ObjectStoreSettings) -> None:
    """Every trial has a name of its own."""
    names = [TrialSpec("object", params).id for params in plan(settings)]
    assert len(names) == len(set(names))


@given(SETTINGS)
def test_every_combination_has_both_sweeps(settings: ObjectStoreSettings) -> None:
    """Each target, client and operation is asked both questions."""
    for target in settings.targets:
        for client in settings.clients:
            for operation in settings.operations:
                wanted = {"store": target.label, "client": client, "operation": operation}
                mine = [params for params in plan(settings) if wanted.items() <= params.items()]
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
def test_params_are_json_and_hold_no_address(settings: ObjectStoreSettings) -> None:
    """Params survive JSON, and name a target by its label only."""
    for params in plan(settings):
        assert json.loads(json.dumps(params)) == params
        assert all(type(value) in (str, int, float) for value in params.values())
        assert "://" not in json.dumps(params)


@given(SETTINGS)
def test_multipart_uploads_have_parts(settings: ObjectStoreSettings) -> None:
    """No multipart trial has an object of a single part; part sizes are given there only."""
    for params in plan(settings):
        if params["operation"] == "multipart":
            assert params["object_bytes"] > params["part_bytes"]
        else:
            assert "part_bytes" not in params
