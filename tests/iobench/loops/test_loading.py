"""Loaders alone: epoch after epoch, and whole trials on a clock that stands still."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from iobench.clock import VirtualClock
from iobench.errors import TrialFailed, Unavailable
from iobench.loops import loading, opening
from iobench.loops.loader_grid import LoaderTrial
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
    """Numbered from 0, so that each has an order of its own; as many as were told."""
    loader, clock = looped(2)
    batches = iter(Epochs(loader, clock))
    for _ in range(5):
        next(batches)
    assert loader.epochs == [0, 1, 2]
    loader, clock = looped(2)
    assert len(list(Epochs(loader, clock, 3))) == 6


def test_the_first_epoch_is_told_apart_from_the_rest() -> None:
    """The first has the opening in it; the rate is that of all later ones."""
    loader, clock = looped(4, last_samples=1)
    epochs = Epochs(loader, clock, 3)
    list(epochs)
    samples = 3 * SAMPLES + 1
    metrics = epochs.metrics(whole=True)
    assert metrics["whole_epochs"] == 3
    assert metrics["first_epoch_s"] == START_S + 4 * WAIT_S
    assert metrics["steady_samples_per_s"] == 2 * samples / (2 * 4 * WAIT_S)
    assert epochs.metrics(whole=False).keys() == {"epochs"}


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
    assert LoaderTrial.model_validate({**PARAMS, **params}).epoch_limit == limit


def test_each_epoch_has_a_record() -> None:
    """From asking for it to its end, judged between; an epoch that was left is in no figure."""
    loader, clock = looped(4, last_samples=1)
    asked: list[int] = []

    def between(samples: int, more: bool) -> Cold:
        assert more
        asked.append(samples)
        return Cold("as left", "warm", 1.0, 0.0, why="so")

    epochs = Epochs(loader, clock, None, between)
    batches = iter(epochs)
    next(batches)
    assert epochs.metrics(whole=True) == {}
    for _ in range(8):
        next(batches)
    samples = 3 * SAMPLES + 1
    first, second = epochs.metrics(whole=False)["epochs"]
    assert asked == [samples, samples]
    assert first["seconds"] == START_S + 4 * WAIT_S
    assert first["time_to_first_batch_s"] == START_S + WAIT_S
    assert (second["number"], second["seconds"]) == (1, 4 * WAIT_S)
    assert second["samples_per_s"] == samples / (4 * WAIT_S)
    assert (second["label"], second["why"]) == ("warm", "so")


def test_records_are_bounded() -> None:
    """A trial of an hour has thousands of small epochs; the last is followed by none."""
    loader, clock = looped(1)
    asked: list[bool] = []
    epochs = Epochs(loader, clock, 150, lambda samples, more: asked.append(more))
    list(epochs)
    metrics = epochs.metrics(whole=True)
    assert len(metrics["epochs"]) == len(asked) == 100
    assert metrics["whole_epochs"] == 150
    asked.clear()
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

    def metrics(self, places: dict[str, Place] | None = None, **changed: Any) -> dict[str, Any]:
        """Of a trial; what is None is not told."""
        params = {key: value for key, value in {**PARAMS, **changed}.items() if value is not None}
        context = Context(places or {}, VirtualClock(), lambda done, unit: None)
        outcome = loading.run(TrialSpec("loader", params), context)
        found = dict(outcome.metrics)
        assert outcome.cold is None
        assert outcome.counted_s is not None
        assert outcome.counted_s[1] - outcome.counted_s[0] == found["seconds"]
        assert "mb_per_s" not in found
        return found

    def test_warm_repeats_the_epoch_until_time_is_up(self, loaders: list[SlowLoader]) -> None:
        """5 seconds of a quarter each are 20 batches: 5 of the first epoch, 6 of each later one."""
        metrics = self.metrics()
        assert (metrics["batches"], metrics["left_out"]) == (20, 3)
        assert metrics["samples_per_s"] == SAMPLES / WAIT_S
        assert metrics["time_to_first_batch_s"] == START_S + WAIT_S
        assert metrics["batch_wait_s_p50"] == WAIT_S
        assert metrics["notes"] == ["a fake"]
        assert not {"batch_wait_s_p90", "first_epoch_s", "first_batch_rest_s"} & set(metrics)
        assert loaders[0].epochs == [0, 1, 2, 3]
        assert loaders[0].closed

    def test_starts_of_later_epochs_are_in_no_rate(
        self, loaders: list[SlowLoader], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As in a loop that trains; a trial ends when they take longer than what it measures."""
        monkeypatch.setattr(SlowLoader, "restart_s", 4.0)
        metrics = self.metrics()
        assert metrics["samples_per_s"] == SAMPLES / WAIT_S
        assert loaders[0].epochs == [0, 1, 2]
        first, second, _ = metrics["epochs"]
        assert first["seconds"] == START_S + 8 * WAIT_S
        assert second["seconds"] == 4.0 + 8 * WAIT_S
        assert second["time_to_first_batch_s"] == 4.0 + WAIT_S

    def test_the_parts_of_the_first_batch_are_told(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """With what they leave."""
        monkeypatch.setattr(opening, "LOADERS", Only(TellingLoader))
        metrics = self.metrics()
        parts = [metrics[f"first_batch_{part}_s"] for part in ("listing", "fetch", "rest")]
        assert parts == [START_S, WAIT_S / 2, WAIT_S / 2]

    def test_cold_has_one_epoch(self, loaders: list[SlowLoader]) -> None:
        """A second one would be warm; it goes on where epochs are told, however long they take."""
        assert self.metrics(cache="cold")["batches"] == 8 - 3
        metrics = self.metrics(cache="cold", epochs=2, seconds=None)
        assert [loader.epochs for loader in loaders] == [[0], [0, 1]]
        assert metrics["batches"] == 2 * 8 - 3
        assert metrics["first_epoch_s"] == START_S + 8 * WAIT_S
        assert metrics["steady_samples_per_s"] == SAMPLES / WAIT_S

    def test_a_loader_that_fails_is_closed(
        self, loaders: list[SlowLoader], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its workers end with it."""
        monkeypatch.setattr(SlowLoader, "batches", 0)
        with pytest.raises(TrialFailed, match="the loader gave no batch"):
            self.metrics()
        assert loaders[0].closed

    def test_data_of_another_form_is_not_available(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A loader of shards says so where it is given files."""
        monkeypatch.setattr(SlowLoader, "reads", "tfrecord")
        places = {"files@disk": Place(str(tmp_path), "files")}
        with pytest.raises(Unavailable, match="reads shards; these data are files"):
            self.metrics(places, data="files@disk")
