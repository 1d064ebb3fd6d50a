"""Kind ``loader``: its grid, and one trial of it on a clock that stands still."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from iobench.clock import VirtualClock
from iobench.errors import TrialFailed, Unavailable
from iobench.loaders import LoaderSettings
from iobench.loops import loading
from iobench.loops.drive import LoopTimes
from iobench.loops.loading import LoaderGrid, check_frameworks, endless, loader_settings, plan
from iobench.stored import Stored
from iobench.trial import Context, Place, TrialSpec
from tests.iobench.loops.fakes import SAMPLES, START_S, WAIT_S, Only, SlowLoader, looped

PARAMS = {
    "loader": "slow",
    "data": "",
    "cache": "warm",
    "batch_size": SAMPLES,
    "workers": 1,
    "prefetch": 2,
    "seconds": 5.0,
}


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
    with pytest.raises(ValidationError, match=r"no loader 'nobody': use one of mock, .*torch-map"):
        LoaderGrid.model_validate({"loader": "nobody"})


def test_settings_of_a_trial_are_its_loaders() -> None:
    """Params that are somebody else's are left out; nothing is lost."""
    found = loader_settings({**PARAMS, "augment": False, "item_s": 0.5})
    assert found == LoaderSettings(
        batch_size=SAMPLES, workers=1, prefetch=2, augment=False, item_s=0.5
    )


class TestEndless:
    def test_epochs_follow_each_other(self) -> None:
        """Numbered from 0, so that each has an order of its own."""
        loader, _ = looped(2)
        batches = endless(loader)
        for _ in range(5):
            next(batches)
        assert loader.epochs == [0, 1, 2]

    def test_an_empty_epoch_is_not_repeated_forever(self) -> None:
        """It has failed."""
        loader, _ = looped(0)
        with pytest.raises(TrialFailed, match="the loader gave no batch"):
            next(endless(loader))


class TestRun:
    """One trial, its loader replaced."""

    @pytest.fixture(autouse=True)
    def loaders(self, monkeypatch: pytest.MonkeyPatch) -> list[SlowLoader]:
        """Those that were built."""
        built: list[SlowLoader] = []

        class Kept(SlowLoader):
            def __init__(self, *given: Any) -> None:
                super().__init__(*given)
                built.append(self)

        monkeypatch.setattr(loading, "LOADERS", Only(Kept))
        return built

    def context(self, places: dict[str, Place] | None = None) -> Context:
        """Everything a trial is given."""
        return Context(places or {}, VirtualClock(), lambda done, unit: None)

    def test_warm_repeats_the_epoch_until_time_is_up(self, loaders: list[SlowLoader]) -> None:
        """5 seconds of a quarter each are 20 batches, over several epochs of 8."""
        outcome = loading.run(TrialSpec("loader", PARAMS), self.context())
        assert outcome.metrics["batches"] == 20
        assert outcome.metrics["left_out"] == 3
        assert outcome.metrics["samples_per_s"] == SAMPLES / WAIT_S
        assert outcome.metrics["time_to_first_batch_s"] == START_S + WAIT_S
        assert outcome.metrics["batch_wait_s_p50"] == WAIT_S
        assert "batch_wait_s_p90" not in outcome.metrics
        assert outcome.metrics["notes"] == ["a fake"]
        assert "mb_per_s" not in outcome.metrics
        assert outcome.cold is None
        assert loaders[0].epochs == [0, 1, 2]
        assert loaders[0].closed

    def test_cold_has_one_epoch(self, loaders: list[SlowLoader]) -> None:
        """A second one would be warm."""
        outcome = loading.run(TrialSpec("loader", {**PARAMS, "cache": "cold"}), self.context())
        assert outcome.metrics["batches"] == 8 - 3
        assert loaders[0].epochs == [0]

    def test_a_loader_that_fails_is_closed(
        self, loaders: list[SlowLoader], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its workers end with it."""
        monkeypatch.setattr(SlowLoader, "batches", 0)
        with pytest.raises(TrialFailed):
            loading.run(TrialSpec("loader", PARAMS), self.context())
        assert loaders[0].closed

    def test_data_of_another_form_is_not_available(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A loader of shards says so where it is given files."""
        monkeypatch.setattr(SlowLoader, "reads", "tfrecord")
        places = {"files@disk": Place(str(tmp_path), "files")}
        with pytest.raises(Unavailable, match="reads shards; these data are files"):
            loading.run(TrialSpec("loader", {**PARAMS, "data": "files@disk"}), self.context(places))


def test_mb_per_s_are_of_stored_bytes() -> None:
    """Samples/s times the mean stored size."""
    times = LoopTimes(1, 0, 100, 110, 10, 1, (1.0,), (1.0,), (0.0,))
    data = Stored(samples=50, bytes=5_000_000, classes=2, files=())
    metrics = loading.loop_metrics(times, data)
    assert metrics["mb_per_s"] == 10 * 100_000 / 1e6
    assert "mean_object_bytes" not in metrics
    in_shards = loading.loop_metrics(times, replace(data, objects=4))
    assert in_shards["mean_object_bytes"] == 1_250_000


@pytest.mark.parametrize(
    ("loader", "consumer", "fits"),
    [
        ("torch", "torch", True),
        ("none", "torch", True),
        ("torch", "none", True),
        ("tensorflow", "torch", False),
    ],
)
def test_batches_must_be_what_the_loop_takes(loader: str, consumer: str, fits: bool) -> None:
    """Frameworks do not mix; what has none goes with all."""
    made, _ = looped(1)
    made.framework = loader  # type: ignore[assignment]
    if fits:
        check_frameworks(made, consumer)
        return
    with pytest.raises(Unavailable, match="a torch training loop does not take tensorflow batches"):
        check_frameworks(made, consumer)
