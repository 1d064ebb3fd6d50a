"""The points of a grid of loaders, and whether more workers are worth a trial."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from iobench.results.trial import Params, Trial, TrialSpec
from iobench.trials.loader_grid import LoaderGrid, loader_points, too_many_workers


def points(**settings: Any) -> list[Params]:
    """Return the points of a grid."""
    return list(loader_points(LoaderGrid.model_validate(settings)))


def test_every_combination_is_a_point() -> None:
    """Each combination of the lists is a point."""
    planned = points(loader=["raw", "torch-map"], cache=["cold", "warm"], workers=[1, 2, 4])
    assert len(planned) == 12
    assert {point["data"] for point in planned} == {"shards@disk"}


def test_params_leave_out_defaults() -> None:
    """Params hold settings that are not the default, and always those of batches and workers."""
    (point,) = points(loader="raw")
    always = ["loader", "data", "cache", "batch_size", "workers", "prefetch", "seconds"]
    assert list(point) == always
    planned = points(loader="torch-map", augment=[True, False])
    assert [point["augment"] for point in planned] == [True, False]


def test_several_processes_read_by_themselves() -> None:
    """Access modes are for one process, since each process would have its own download."""
    with pytest.raises(ValidationError, match="access pipe is for one process"):
        points(loader="torch-iterable", data="shards@s3", access="pipe", processes=2)


def test_loaders_without_data_are_run_once() -> None:
    """Data and cache do not multiply the points of a loader that reads nothing."""
    data = ["shards@disk", "files@disk"]
    planned = points(loader=["null", "mock"], data=data, cache=["cold"], processes=[1, 2])
    assert [point["loader"] for point in planned] == ["null", "mock"]
    for point in planned:
        assert (point["data"], point["cache"]) == ("", "warm")
        assert "processes" not in point
    with_data = points(loader="torch-map", processes=[1, 2])
    assert [point.get("processes") for point in with_data] == [None, 2]


def test_settings_without_effect_make_no_point() -> None:
    """Augmentation needs decoding, and colour jitter needs augmentation."""
    keys = ("decode", "augment", "colour_jitter")
    lists = {key: [True, False] for key in keys}
    values = []
    for point in points(loader="torch-map", **lists):
        values.append(tuple(point.get(key) for key in keys))
    assert sorted(values, key=str) == [
        (False, None, None),
        (True, False, None),
        (True, True, False),
        (True, True, True),
    ]
    assert len(points(loader="raw", **lists)) == 1


def test_a_store_has_no_cold_twin() -> None:
    """Cold and warm are one point on a store, whose cache is unknown."""
    planned = points(loader="raw", data=["shards@s3", "shards@disk"], cache=["cold", "warm"])
    assert [(p["data"], p["cache"]) for p in planned] == [
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
    """They are refused before anything is measured."""
    with pytest.raises(ValidationError):
        LoaderGrid.model_validate(wrong)


class TestAccess:
    """Access modes in a grid."""

    def test_each_mode_has_its_loaders_its_data_and_its_settings(self) -> None:
        """Impossible combinations are left out; a mount has a page cache, and a store has none."""
        planned = points(
            loader=["torch-iterable", "torch-map"],
            data="shards-4MB@s3",
            access=["file", "pipe", "lazy", "mount"],
            cache="cold",
            connections=[2, 4],
            shuffle_buffer=100,
        )
        keys = ("access", "loader", "data", "cache", "connections")
        assert [tuple(point.get(key) for key in keys) for point in planned] == [
            ("file", "torch-iterable", "shards-4MB@s3", "warm", 2),
            ("file", "torch-iterable", "shards-4MB@s3", "warm", 4),
            ("pipe", "torch-iterable", "shards-4MB@s3", "warm", None),
            ("mount", "torch-iterable", "shards-4MB@disk", "cold", None),
            ("file", "torch-map", "shards-4MB@s3", "warm", 2),
            ("file", "torch-map", "shards-4MB@s3", "warm", 4),
            ("lazy", "torch-map", "shards-4MB@s3", "warm", None),
            ("mount", "torch-map", "shards-4MB@disk", "cold", None),
        ]
        assert [p.get("shuffle_buffer") for p in planned if p["access"] == "pipe"] == [100]
        assert sum("shuffle_buffer" in p for p in planned) == 1

    def test_without_a_mode_there_is_no_word_of_it(self) -> None:
        """Points with direct access have no params of access modes."""
        (point,) = points(loader="raw", access="direct", connections=3, shuffle_buffer=7)
        assert point == points(loader="raw")[0]
        planned = points(loader="torch-map", data="shards@s3", access=["direct", "lazy"])
        assert [point.get("access") for point in planned] == [None, "lazy"]

    def test_whole_epochs_take_the_place_of_seconds(self) -> None:
        """A trial is bounded by epochs or by seconds."""
        (point,) = points(loader="raw", epochs=2)
        assert point["epochs"] == 2
        assert "seconds" not in point

    @pytest.mark.parametrize(
        ("settings", "message"),
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
        self, settings: dict[str, Any], message: str
    ) -> None:
        """The error says what the mode is for."""
        with pytest.raises(ValidationError, match=message):
            LoaderGrid.model_validate({"data": "shards@s3", **settings})


PARAMS: Mapping[str, Any] = {"loader": "mock", "data": "", "batch_size": 4}


def trials(rates: Mapping[int, Sequence[float]], **changes: Any) -> list[Trial]:
    """Return completed trials of the mock loader; ``rates`` has samples/s by number of workers."""
    completed = []
    for workers, repeats in rates.items():
        params = {**PARAMS, "workers": workers, **changes}
        for repeat, rate in enumerate(repeats):
            metrics = {"samples_per_s": rate}
            name = f"{workers}/{repeat}"
            completed.append(Trial(name, "loader", params, repeat, "done", metrics))
    return completed


def requested_trial(workers: int, **changes: Any) -> TrialSpec:
    """Return a trial that may be measured next."""
    return TrialSpec("loader", {**PARAMS, "workers": workers, **changes}, 1)


@pytest.mark.parametrize(
    ("rates", "is_measured"),
    [
        ({}, True),
        ({1: [100.0]}, True),
        ({1: [100.0], 2: [190.0]}, True),
        ({1: [100.0], 2: [190.0], 4: [192.0]}, False),
        ({1: [100.0], 2: [190.0], 4: [180.0]}, False),
        ({1: [100.0], 2: [101.0], 4: [150.0]}, False),
        ({1: [0.0], 2: [10.0]}, True),
        ({2: [190.0, 190.0, 190.0], 4: [192.0, 250.0, 260.0]}, True),
        ({1: [100.0], 4: [250.0]}, True),
        ({1: [100.0], 4: [101.0]}, False),
        ({16: [100.0], 32: [100.0]}, True),
        ({0: [300.0], 1: [200.0]}, True),
        ({0: [300.0], 1: [200.0], 2: [201.0]}, False),
    ],
)
def test_more_are_tried_while_they_bring_something(
    rates: Mapping[int, Sequence[float]], is_measured: bool
) -> None:
    """The last two counts below must differ by 2 % in the median of rounds."""
    assert (too_many_workers(requested_trial(8), trials(rates), 0.02) == "") == is_measured


def test_only_what_differs_in_workers_alone_counts() -> None:
    """Trials with another batch size or of another kind are not compared."""
    message = too_many_workers(requested_trial(8), trials({2: [100.0], 4: [101.0]}), 0.02)
    assert message == "4 workers brought +1.0% over 2: more are not tried (more_workers_gain)"
    planned_trials = trials({1: [100.0], 2: [100.0]}, batch_size=8)
    assert too_many_workers(requested_trial(8), planned_trials, 0.02) == ""
    assert too_many_workers(requested_trial(8, batch_size=8), planned_trials, 0.02)
    loop = TrialSpec("train", requested_trial(8).params)
    assert too_many_workers(loop, trials({1: [1.0], 2: [1.0]}), 0.02) == ""


def test_only_rounds_that_have_both_are_compared() -> None:
    """Rates of two numbers of workers are compared within rounds.

    A round has a random order, so 4 workers may have run in a round before 2 workers. The machine
    became half as fast after round 0. There 4 workers brought 50 %, which is still true while
    round 1 has only the rate of 4 workers.
    """
    slower = trials({2: [200.0], 4: [300.0, 150.0, 140.0]})
    assert too_many_workers(requested_trial(8), slower, 0.02) == ""
    faster = trials({2: [200.0], 4: [200.0, 400.0, 400.0]})
    assert too_many_workers(requested_trial(8), faster, 0.02)


def test_a_trial_without_a_rate_is_no_evidence() -> None:
    """More workers are tried if a trial has only a range."""
    (planned_trials,) = trials({2: [200.0]})
    (unknown,) = trials({4: [0.0]})
    unknown = replace(unknown, metrics={"samples_per_s_low": 100.0, "samples_per_s_high": 900.0})
    assert too_many_workers(requested_trial(8), [planned_trials, unknown], 0.02) == ""


@given(st.permutations(range(12)))
def test_the_order_of_trials_has_no_effect(order: list[int]) -> None:
    """The decision rests on rounds and rates, not on which trial ran first."""
    planned_trials = trials({1: [100.0] * 3, 2: [190.0] * 3, 4: [192.0] * 3, 8: [300.0] * 3})
    shuffled = [planned_trials[number] for number in order]
    message = too_many_workers(requested_trial(16), planned_trials, 0.02)
    assert message != ""
    assert too_many_workers(requested_trial(16), shuffled, 0.02) == message


@given(st.lists(st.floats(1, 1e6), min_size=2, max_size=6))
def test_no_more_workers_than_a_refused_number_are_tried(rates: list[float]) -> None:
    """No number of workers is tried above one that was not worth it."""
    planned_trials = trials({2**n: [rate] for n, rate in enumerate(rates)})
    refused = []
    for n in range(len(rates) + 2):
        message = too_many_workers(requested_trial(2**n), planned_trials, 0.02)
        refused.append(message != "")
    assert refused == sorted(refused)
