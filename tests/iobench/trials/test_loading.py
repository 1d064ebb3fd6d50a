"""Trials of loaders alone, on a virtual clock."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from iobench.clock import VirtualClock
from iobench.errors import TrialFailed, Unavailable
from iobench.results.trial import Context, Location, Outcome, TrialSpec
from iobench.trials import loader_opening, loader_trial
from tests.iobench.trials.fakes import (
    PARAMS,
    SAMPLES,
    START_S,
    WAIT_S,
    Only,
    SlowLoader,
    TellingLoader,
)

EPOCH = 8 * SAMPLES
EPOCH_S = 8 * WAIT_S


class TestRun:
    """One trial of a loader with 8 batches in an epoch."""

    @pytest.fixture(autouse=True)
    def loaders(self, monkeypatch: pytest.MonkeyPatch) -> list[SlowLoader]:
        """Return the loaders that the trial made."""
        built: list[SlowLoader] = []

        class NotedLoader(SlowLoader):
            def __init__(self, *arguments: Any) -> None:
                super().__init__(*arguments)
                built.append(self)

        monkeypatch.setattr(loader_opening, "LOADERS", Only(NotedLoader))
        return built

    def outcome(
        self,
        locations: dict[str, Location] | None = None,
        give_up_s: float = math.inf,
        **changes: Any,
    ) -> Outcome:
        """Run a trial; params that are None are left out."""
        params = {key: value for key, value in {**PARAMS, **changes}.items() if value is not None}
        clock = VirtualClock()
        context = Context(locations or {}, clock, lambda done, unit: None, give_up_s=give_up_s)
        outcome = loader_trial.run(TrialSpec("loader", params), context)
        assert outcome.cold is None
        assert outcome.counted_s is not None
        paused_s = sum(end_s - begin_s for begin_s, end_s in outcome.pauses)
        counted_s = outcome.counted_s[1] - outcome.counted_s[0] - paused_s
        assert counted_s == pytest.approx(outcome.metrics["seconds"])
        assert "mb_per_s" not in outcome.metrics
        return outcome

    def metrics(self, **changes: Any) -> dict[str, Any]:
        """Return the metrics of a trial."""
        return dict(self.outcome(**changes).metrics)

    def test_short_data_are_read_three_times(self, loaders: list[SlowLoader]) -> None:
        """Three whole epochs count, from the request of the first one."""
        metrics = self.metrics()
        assert metrics["rate_rule"] == "epochs"
        assert (metrics["batches"], metrics["left_out"]) == (3 * 8, 0)
        assert metrics["samples_per_s"] == 3 * EPOCH / (START_S + 3 * EPOCH_S)
        assert metrics["time_to_first_batch_s"] == START_S + WAIT_S
        assert metrics["epoch_start_s"] == WAIT_S
        assert metrics["epoch_start_share"] == (START_S + 3 * WAIT_S) / (START_S + 3 * EPOCH_S)
        assert metrics["batch_wait_s_p50"] == WAIT_S
        assert metrics["notes"] == ["a fake"]
        assert not {"batch_wait_s_p90", "first_batch_rest_s", "balance"} & set(metrics)
        assert loaders[0].epochs == [0, 1, 2]
        assert loaders[0].closed

    @pytest.mark.parametrize(
        ("changes", "epochs"),
        [
            ({"seconds": 20.0}, 9),
            ({"seconds": None, "epochs": 2}, 3),
            ({"seconds": None, "epochs": 5, "cache": "cold"}, 5),
        ],
    )
    def test_seconds_and_epochs_are_minima(
        self, loaders: list[SlowLoader], changes: dict[str, Any], epochs: int
    ) -> None:
        """At least three epochs are read, and the last one is read to its end."""
        metrics = self.metrics(**changes)
        assert loaders[0].epochs == list(range(epochs))
        assert metrics["whole_epochs"] == len(metrics["epochs"]) == epochs

    def test_starts_of_later_epochs_are_in_the_rate(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The starts are also a figure of their own, and each epoch has a record."""
        monkeypatch.setattr(SlowLoader, "restart_s", 4.0)
        metrics = self.metrics()
        seconds = START_S + 2 * 4.0 + 3 * EPOCH_S
        assert metrics["samples_per_s"] == 3 * EPOCH / seconds
        assert metrics["steady_samples_per_s"] == EPOCH / (4.0 + EPOCH_S)
        assert metrics["first_epoch_s"] == START_S + EPOCH_S
        assert metrics["epoch_start_s"] == 4.0 + WAIT_S
        first, second, _ = metrics["epochs"]
        assert (first["number"], first["seconds"]) == (0, START_S + EPOCH_S)
        assert (second["number"], second["seconds"]) == (1, 4.0 + EPOCH_S)
        assert second["time_to_first_batch_s"] == 4.0 + WAIT_S
        assert second["samples_per_s"] == EPOCH / (4.0 + EPOCH_S)

    def test_making_the_loader_belongs_to_the_first_epoch(
        self, loaders: list[SlowLoader], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The time of copying or listing data when the loader is made counts."""

        class Opening(SlowLoader):
            def __init__(self, *arguments: Any) -> None:
                super().__init__(*arguments)
                self.clock.sleep(7.0)

        monkeypatch.setattr(loader_opening, "LOADERS", Only(Opening))
        metrics = self.metrics()
        assert metrics["time_to_first_batch_s"] == 7.0 + START_S + WAIT_S
        assert metrics["samples_per_s"] == 3 * EPOCH / (7.0 + START_S + 3 * EPOCH_S)

    def test_records_are_bounded(self) -> None:
        """At most 100 epochs have a record, since a long trial can have thousands."""
        metrics = self.metrics(seconds=None, epochs=150)
        assert len(metrics["epochs"]) == 100
        assert metrics["whole_epochs"] == 150

    def test_a_long_epoch_has_one_rate_when_both_bounds_agree(
        self, loaders: list[SlowLoader], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A loader that does not count is read until its start is at most 5 % of the time."""
        monkeypatch.setattr(SlowLoader, "batches", 100_000)
        outcome = self.outcome()
        metrics = outcome.metrics
        assert metrics["rate_rule"] == "bounds"
        assert metrics["samples_per_s"] == SAMPLES / WAIT_S
        assert "samples_per_s_low" not in metrics
        assert outcome.counted_s is not None
        assert 0.06 * outcome.counted_s[1] >= START_S
        assert loaders[0].epochs == [0]
        assert metrics["epoch_start_share"] == 0
        assert not {"epochs", "whole_epochs"} & set(metrics)

    def test_a_range_when_time_is_up(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """All samples since the request give the lower bound, the later window the upper one."""
        monkeypatch.setattr(SlowLoader, "batches", 100_000)
        metrics = self.metrics(give_up_s=20.0)
        assert "samples_per_s" not in metrics
        assert metrics["samples_per_s_low"] == pytest.approx(SAMPLES / WAIT_S * 17 / 20)
        assert metrics["samples_per_s_high"] == pytest.approx(SAMPLES / WAIT_S)

    @pytest.mark.parametrize(
        ("batches", "give_up_s", "reason"),
        [
            (
                100_000,
                5.0,
                "the first 32 samples do not count, and 20 rounds of 10 samples need about",
            ),
            (8, 6.0, "1 of 3 whole epochs of 80 samples were read in 6 s: about 12 s are needed"),
        ],
    )
    def test_too_little_time_is_named(
        self, monkeypatch: pytest.MonkeyPatch, batches: int, give_up_s: float, reason: str
    ) -> None:
        """A trial ends by itself, and the reason says how long it takes."""
        monkeypatch.setattr(SlowLoader, "batches", batches)
        with pytest.raises(TrialFailed, match=reason + ".* set trial_timeout_s to [0-9]+ or more"):
            self.metrics(give_up_s=give_up_s)

    def test_a_loading_process_may_run_longer_by_its_wait_for_other_hosts(
        self, tmp_path: Path
    ) -> None:
        """Each of several processes has the time that a trial of one process has."""
        clock = VirtualClock()

        def begin() -> float:
            clock.sleep(40.0)
            return 40.0

        meeting = tmp_path / "meeting"
        params = {**PARAMS, "rank": 0, "world_size": 1, "meeting": str(meeting)}
        context = Context({}, clock, lambda done, unit: None, give_up_s=12.0, begin=begin)
        outcome = loader_trial.run_rank(TrialSpec("loading-rank", params), context)
        assert len(outcome.metrics["epochs"]) == 3

    def test_epochs_before_the_last_one_are_enough(self, loaders: list[SlowLoader]) -> None:
        """An epoch that does not end in time is left out."""
        metrics = self.metrics(seconds=100.0, give_up_s=START_S + 3.5 * EPOCH_S)
        assert metrics["whole_epochs"] == 3
        assert metrics["samples"] == 3 * EPOCH
        assert loaders[0].epochs == [0, 1, 2, 3]

    def test_metrics_have_the_parts_of_the_first_batch(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Metrics have each part and the rest."""
        monkeypatch.setattr(loader_opening, "LOADERS", Only(TellingLoader))
        metrics = self.metrics()
        parts = [metrics[f"first_batch_{part}_s"] for part in ("listing", "fetch", "rest")]
        assert parts == [START_S, WAIT_S / 2, WAIT_S / 2]

    def test_a_loader_that_fails_is_closed(
        self, loaders: list[SlowLoader], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A loader that fails is closed, so that its workers end."""
        monkeypatch.setattr(SlowLoader, "batches", 0)
        with pytest.raises(TrialFailed, match="the loader gave no batch"):
            self.metrics()
        assert loaders[0].closed

    def test_data_of_another_form_is_not_available(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A loader of shards is unavailable if it is given files."""
        monkeypatch.setattr(SlowLoader, "reads", "tfrecord")
        locations = {"files@disk": Location(str(tmp_path), "files")}
        with pytest.raises(Unavailable, match="reads shards; these data are files"):
            self.metrics(locations=locations, data="files@disk", cache="cold")
