"""What is asked of loaders alone: every combination, each once."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from iobench.loops.loader_grid import LoaderGrid, plan


def points(**given: Any) -> list[dict[str, Any]]:
    """The points of a grid."""
    return list(plan(LoaderGrid.model_validate(given)))


def test_every_combination_is_a_point() -> None:
    """Lists multiply."""
    found = points(loader=["raw", "torch-map"], cache=["cold", "warm"], workers=[1, 2, 4])
    assert len(found) == 12
    assert {point["data"] for point in found} == {"shards@disk"}


def test_what_stands_at_its_default_has_no_word() -> None:
    """A trial's name holds what was told, and always batch size, workers and prefetch."""
    (point,) = points(loader="raw")
    assert list(point) == [
        *("loader", "data", "cache", "batch_size", "workers", "prefetch"),
        "seconds",
    ]
    told = points(loader="torch-map", augment=[True, False])
    assert [point["augment"] for point in told] == [True, False]


def test_loaders_without_data_are_run_once() -> None:
    """Neither data nor cache multiply what reads nothing."""
    found = points(loader=["null", "mock"], data=["shards@disk", "files@disk"], cache=["cold"])
    assert [(p["loader"], p["data"], p["cache"]) for p in found] == [
        ("null", "", "warm"),
        ("mock", "", "warm"),
    ]


def test_what_changes_nothing_makes_no_point_of_its_own() -> None:
    """Bytes that are not decoded are not augmented; colours change with augmentation only."""
    asked = {"decode": [True, False], "augment": [True, False], "colour_jitter": [True, False]}
    keys = tuple(asked)
    found = [tuple(point.get(key) for key in keys) for point in points(loader="torch-map", **asked)]
    assert sorted(found, key=str) == [
        (False, None, None),
        (True, False, None),
        (True, True, False),
        (True, True, True),
    ]
    assert len(points(loader="raw", **asked)) == 1


def test_a_store_has_no_cold_twin() -> None:
    """Its cache is not ours: cold and warm are one trial."""
    found = points(loader="raw", data=["shards@s3", "shards@disk"], cache=["cold", "warm"])
    assert [(p["data"], p["cache"]) for p in found] == [
        ("shards@s3", "warm"),
        ("shards@disk", "cold"),
        ("shards@disk", "warm"),
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"loader": "nobody"},
        {"loader": "raw", "data": "shards"},
        {"loader": "raw", "data": "shards-200MB@disk"},
        {"loader": "raw", "workers": -1},
        {"loader": "raw", "batch_size": 0},
        {"loader": "raw", "seconds": 0},
        {"loader": "raw", "cache": "lukewarm"},
        {"loader": "raw", "wrokers": 2},
        {"loader": []},
    ],
)
def test_wrong_grids_are_refused(wrong: dict[str, Any]) -> None:
    """Before anything is measured."""
    with pytest.raises(ValidationError):
        LoaderGrid.model_validate(wrong)


def test_an_unknown_loader_is_refused_with_the_known_ones() -> None:
    """The message lists what there is."""
    with pytest.raises(ValidationError, match=r"no loader 'nobody': use one of .*mock.*torch-map"):
        LoaderGrid.model_validate({"loader": "nobody"})
