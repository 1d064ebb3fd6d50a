"""Loaders alone: epoch after epoch, and whole trials on a clock that stands still."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from iobench.clock import VirtualClock
from iobench.errors import TrialFailed, Unavailable
from iobench.loaders import FirstBatch
from iobench.loops import loading, opening
from iobench.loops.loader_grid import loader_trial
from iobench.loops.loading import Epochs
from iobench.trial import Cold, Context, Place, TrialSpec
from tests.iobench.loops.fakes import (
    PARAMS,
    SAMPLES,
    START_S,
    WAIT_S,
    Only,
    SlowLoader,
    TellingLoader,
    looped,
)


def test_epochs_follow_each_other() -> None:
    """Numbered from 0, so that each has an order of its own."""
    loader, clock = looped(2)
    batches = iter(Epochs(loader, clock))
    for _ in range(5):
        next(batches)
    assert loader.epochs == [0, 1, 2]


def test_an_empty_epoch_is_not_repeated_forever() -> None:
    """It has failed."""
    loader, clock = looped(0)
    with pytest.raises(TrialFailed, match="the loader gave no batch"):
        next(iter(Epochs(loader, clock)))


def test_there_are_as_many_as_were_told() -> None:
    """And no more."""
    loader, clock = looped(2)
    assert len(list(Epochs(loader, clock, 3))) == 6
    assert loader.epochs == [0, 1, 2]


def test_the_first_epoch_is_told_apart_from_the_rest() -> None:
    """The first has the opening in it; the rate is that of all later ones."""
    loader, clock = looped(4, last_samples=1)
    epochs = Epochs(loader, clock, 3)
    list(epochs)
    samples = 3 * SAMPLES + 1
    assert epochs.metrics(0.0) == {
        "whole_epochs": 3,
        "first_epoch_s": START_S + 4 * WAIT_S,
        "steady_samples_per_s": 2 * samples / (2 * 4 * WAIT_S),
    }
    assert epochs.metrics(1.0)["first_epoch_s"] == START_S + 4 * WAIT_S - 1.0


def test_an_epoch_that_was_left_is_no_epoch() -> None:
    """What has not ended is in no figure."""
    loader, clock = looped(4)
    epochs = Epochs(loader, clock)
    batches = iter(epochs)
    for _ in range(3):
        next(batches)
    assert epochs.metrics(0.0) == {}
    for _ in range(3):
        next(batches)
    assert epochs.metrics(0.0) == {"whole_epochs": 1, "first_epoch_s": START_S + 4 * WAIT_S}


@pytest.mark.parametrize(
    ("params", "limit"),
    [
        ({"cache": "warm"}, None),
        ({"cache": "cold"}, 1),
        ({"cache": "cold", "epochs": 3}, 3),
        ({"cache": "warm", "epochs": 2}, 2),
    ],
)
def test_a_cold_trial_has_one_epoch(params: dict[str, Any], limit: int | None) -> None:
    """Unless it is told how many."""
    assert loader_trial({**PARAMS, **params}).epoch_limit == limit


def test_each_epoch_has_a_record() -> None:
    """From asking for it to its end, judged between; an epoch that was left has none."""
    loader, clock = looped(4, last_samples=1)
    asked: list[int] = []

    def between(samples: int, more: bool) -> Cold:
        assert more
        asked.append(samples)
        return Cold("as left", "warm", 1.0, 0.0, why="so")

    epochs = Epochs(loader, clock, None, between)
    batches = iter(epochs)
    for _ in range(9):
        next(batches)
    samples = 3 * SAMPLES + 1
    first, second = epochs.records()["epochs"]
    assert asked == [samples, samples]
    assert first["seconds"] == START_S + 4 * WAIT_S
    assert first["time_to_first_batch_s"] == START_S + WAIT_S
    assert (second["number"], second["seconds"]) == (1, 4 * WAIT_S)
    assert second["samples_per_s"] == samples / (4 * WAIT_S)
    assert (second["label"], second["why"]) == ("warm", "so")
    assert Epochs(loader, clock).records() == {}


def test_records_are_bounded() -> None:
    """A trial of an hour has thousands of small epochs."""
    loader, clock = looped(1)
    asked: list[bool] = []
    epochs = Epochs(loader, clock, 150, lambda samples, more: asked.append(more))
    list(epochs)
    assert len(epochs.records()["epochs"]) == len(asked) == 100
    assert epochs.metrics(0.0)["whole_epochs"] == 150


def test_the_last_epoch_is_followed_by_none() -> None:
    """Where it is known which one is the last."""
    loader, clock = looped(1)
    asked: list[bool] = []
    list(Epochs(loader, clock, 3, lambda samples, more: asked.append(more)))
    assert asked == [True, True, False]


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

        monkeypatch.setattr(opening, "LOADERS", Only(Kept))
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
        assert outcome.counted_s == (START_S + 3 * WAIT_S, START_S + 23 * WAIT_S)
        assert outcome.metrics["batch_wait_s_p50"] == WAIT_S
        assert "batch_wait_s_p90" not in outcome.metrics
        assert outcome.metrics["notes"] == ["a fake"]
        assert "mb_per_s" not in outcome.metrics
        assert outcome.cold is None
        assert loaders[0].epochs == [0, 1, 2]
        assert loaders[0].closed

    def test_the_parts_of_the_first_batch_are_told(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """With what they leave; a loader that tells none has none."""
        told = {
            "first_batch_listing_s": START_S,
            "first_batch_fetch_s": WAIT_S / 2,
            "first_batch_rest_s": WAIT_S / 2,
        }
        monkeypatch.setattr(opening, "LOADERS", Only(TellingLoader))
        metrics = loading.run(TrialSpec("loader", PARAMS), self.context()).metrics
        assert told.items() <= metrics.items()
        assert sum(told.values()) == metrics["time_to_first_batch_s"]
        monkeypatch.setattr(opening, "LOADERS", Only(SlowLoader))
        metrics = loading.run(TrialSpec("loader", PARAMS), self.context()).metrics
        assert not [name for name in metrics if name.startswith("first_batch")]

    def test_parts_that_cannot_be_are_noted(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The trial itself stands."""
        monkeypatch.setattr(TellingLoader, "parts", FirstBatch(listing_s=2 * START_S))
        monkeypatch.setattr(opening, "LOADERS", Only(TellingLoader))
        metrics = loading.run(TrialSpec("loader", PARAMS), self.context()).metrics
        assert metrics["samples_per_s"] == SAMPLES / WAIT_S
        assert "left out" in " ".join(metrics["notes"])

    def test_cold_has_one_epoch(self, loaders: list[SlowLoader]) -> None:
        """A second one would be warm."""
        outcome = loading.run(TrialSpec("loader", {**PARAMS, "cache": "cold"}), self.context())
        assert outcome.metrics["batches"] == 8 - 3
        assert loaders[0].epochs == [0]

    def test_epochs_that_are_told_are_whole(self, loaders: list[SlowLoader]) -> None:
        """However long they take; a cold trial goes on from its first one."""
        params = {key: value for key, value in PARAMS.items() if key != "seconds"}
        outcome = loading.run(
            TrialSpec("loader", {**params, "cache": "cold", "epochs": 2}), self.context()
        )
        assert loaders[0].epochs == [0, 1]
        assert outcome.metrics["batches"] == 2 * 8 - 3
        assert outcome.metrics["first_epoch_s"] == START_S + 8 * WAIT_S
        assert outcome.metrics["steady_samples_per_s"] == SAMPLES / WAIT_S

    def test_without_them_none_is_told(self) -> None:
        """A trial that ends with its time may see no epoch's end."""
        metrics = loading.run(TrialSpec("loader", PARAMS), self.context()).metrics
        assert "first_epoch_s" not in metrics

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
