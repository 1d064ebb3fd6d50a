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


def test_one_process_has_no_word() -> None:
    """It is the point that earlier versions measured; a loader without data has no others."""
    found = points(loader=["torch-map", "null"], processes=[1, 2])
    assert [(p["loader"], p.get("processes")) for p in found] == [
        ("torch-map", None),
        ("torch-map", 2),
        ("null", None),
    ]


def test_several_processes_read_by_themselves() -> None:
    """A download or a pipe of each of several is nothing that was asked for."""
    with pytest.raises(ValidationError, match="access pipe is for one process"):
        points(loader="torch-iterable", data="shards@s3", access="pipe", processes=2)


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


class TestAccess:
    """Modes, in one grid with all else."""

    def test_each_mode_has_its_loaders_its_data_and_its_settings(self) -> None:
        """What cannot be is left out; a mount has its cache, a store has none."""
        found = points(
            loader=["torch-iterable", "torch-map"],
            data="shards-4MB@s3",
            access=["file", "pipe", "lazy", "mount"],
            cache="cold",
            connections=[2, 4],
            shuffle_buffer=100,
        )
        told = [
            (p["access"], p["loader"], p["data"], p["cache"], p.get("connections")) for p in found
        ]
        assert told == [
            ("file", "torch-iterable", "shards-4MB@s3", "warm", 2),
            ("file", "torch-iterable", "shards-4MB@s3", "warm", 4),
            ("pipe", "torch-iterable", "shards-4MB@s3", "warm", None),
            ("mount", "torch-iterable", "shards-4MB@disk", "cold", None),
            ("file", "torch-map", "shards-4MB@s3", "warm", 2),
            ("file", "torch-map", "shards-4MB@s3", "warm", 4),
            ("lazy", "torch-map", "shards-4MB@s3", "warm", None),
            ("mount", "torch-map", "shards-4MB@disk", "cold", None),
        ]
        assert [p.get("shuffle_buffer") for p in found if p["access"] == "pipe"] == [100]
        assert sum("shuffle_buffer" in p for p in found) == 1

    def test_without_a_mode_there_is_no_word_of_it(self) -> None:
        """Points are what they were before modes came."""
        (point,) = points(loader="raw", access="direct", connections=3, shuffle_buffer=7)
        assert point == points(loader="raw")[0]

    def test_one_that_stands_beside_modes_reads_by_itself(self) -> None:
        """To be held against them."""
        found = points(loader="torch-map", data="shards@s3", access=["direct", "lazy"])
        assert [point.get("access") for point in found] == [None, "lazy"]

    def test_whole_epochs_take_the_place_of_seconds(self) -> None:
        """One of them bounds a trial."""
        (point,) = points(loader="raw", epochs=2)
        assert point["epochs"] == 2
        assert "seconds" not in point

    @pytest.mark.parametrize(
        ("given", "said"),
        [
            ({"loader": "torch-map", "access": "pipe"}, "is for loader tf-data or torch-iterable"),
            (
                {"loader": "raw", "access": "lazy"},
                "access lazy is for loader torch-map, not for raw",
            ),
            ({"loader": "null", "access": "file"}, "is for loader any that reads, not for null"),
            ({"loader": "raw", "access": "file", "data": "shards@disk"}, "end in @s3"),
            ({"loader": "raw", "access": "faster"}, "Input should be 'direct', 'file'"),
            ({"loader": "raw", "epochs": 0}, "greater than or equal to 1"),
        ],
    )
    def test_a_mode_that_nothing_has_a_use_for_is_refused(
        self, given: dict[str, Any], said: str
    ) -> None:
        """With what it is for."""
        with pytest.raises(ValidationError, match=said):
            LoaderGrid.model_validate({"data": "shards@s3", **given})
