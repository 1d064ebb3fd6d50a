"""Trials of training loops, on a virtual clock."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from iobench.clock import VirtualClock
from iobench.errors import TrialFailed, Unavailable
from iobench.loaders import Batch
from iobench.results.trial import Cold, Context, Location, Outcome, Params, TrialSpec
from iobench.trials import loader_opening, training_rank, training_trial
from iobench.trials.training_settings import Training, training_points
from tests.iobench.trials.fakes import (
    SAMPLES,
    START_S,
    STEP_S,
    WAIT_S,
    AsynchronousConsumer,
    Only,
    SlowConsumer,
    SlowLoader,
    TellingLoader,
)

EPOCH = 8 * SAMPLES
EPOCH_S = 8 * (STEP_S + WAIT_S)

TORCH: dict[str, Any] = {"loader": "torch-map"}
LOCATIONS = {"shards@disk": Location("/data", "shards")}


def points(**settings: Any) -> list[Params]:
    """Return the points of one group."""
    return list(training_points(Training.model_validate(settings)))


class HoldingLoader(SlowLoader):
    """A loader that notes which samples it shall hold in memory, which takes 1,000 s."""

    def hold(self, rung: str, samples: int, limit_bytes: int) -> None:
        """Note the request, which must come before any epoch."""
        assert not self.epochs
        self.clock.sleep(1000)
        self.notes = (*self.notes, f"{rung} {samples} {limit_bytes}")


class LateStarter(SlowConsumer):
    """A consumer whose first step takes a minute more than the others."""

    def step(self, batch: Batch) -> None:
        """Compute a step."""
        if not self.steps:
            self.clock.sleep(60)
        super().step(batch)


class TestRun:
    """One trial with a fake loader and a fake consumer."""

    @pytest.fixture(autouse=True)
    def replaced(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let every name of a loader or a consumer mean the fake one."""
        monkeypatch.setattr(loader_opening, "LOADERS", Only(SlowLoader))
        monkeypatch.setattr(training_trial, "CONSUMERS", Only(SlowConsumer))

    def trial(self, source: str, give_up_s: float = math.inf, **changed: Any) -> Outcome:
        """Run a trial of at least 8 steps from ``source``, whose epochs have 8 batches."""
        locations = changed.pop("locations", {})
        settings = {"loader": "mock", "batch_size": SAMPLES, "steps": 8, "workers": 1, **changed}
        (params,) = points(inputs=source, **settings)
        context = Context(locations, VirtualClock(), lambda done, unit: None, give_up_s=give_up_s)
        return training_trial.run(TrialSpec("train", params), context)

    def test_progress_of_a_rank_goes_on_in_later_epochs(self, tmp_path: Path) -> None:
        """The samples of earlier epochs are added, as for a loop on one device."""
        settings = {"loader": "mock", "batch_size": SAMPLES, "workers": 1, "epochs": 3}
        paced = {"consumer": "paced", "accelerators": 1, "images_per_s": 100}
        (params,) = points(inputs="warm", **settings, **paced)
        steps = {"epochs": 3, "left_out": 0, "steps": 8, "classes": 10}
        rank = {"rank": 0, "world_size": 1, "meeting": str(tmp_path / "meeting"), "device": "cpu"}
        reported: list[float] = []
        context = Context({}, VirtualClock(), lambda done, unit: reported.append(done))
        training_rank.run_rank(TrialSpec("rank", {**params, **steps, **rank}), context)
        assert reported == sorted(reported)
        assert reported[-1] > 2 * EPOCH

    @pytest.mark.parametrize("epochs", [1, 3])
    def test_resident_data_costs_the_computation_alone(self, epochs: int) -> None:
        """The device is busy all of the time without waiting; there are no epochs."""
        metrics = self.trial("synthetic", epochs=epochs).metrics
        assert metrics["steps"] == 8
        assert metrics["samples_per_s"] == SAMPLES / STEP_S
        assert metrics["au_mlperf"] == 1
        assert metrics["wait_share"] == 0
        assert (metrics["rate_rule"], metrics["epoch_start_share"]) == ("steady", 0)
        assert "epochs" not in metrics

    def test_the_first_step_is_in_no_figure(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Frameworks choose their kernels in the first step, so only later steps count."""
        monkeypatch.setattr(training_trial, "CONSUMERS", Only(LateStarter))
        metrics = self.trial("synthetic").metrics
        assert metrics["steps"] == 8
        assert metrics["samples_per_s"] == SAMPLES / STEP_S

    def test_real_data_are_waited_for(self) -> None:
        """Three whole epochs count with their starts, and the metrics name the device."""
        outcome = self.trial("warm")
        metrics = outcome.metrics
        seconds = START_S + 3 * EPOCH_S
        assert metrics["rate_rule"] == "epochs"
        assert metrics["steps"] == 3 * 8
        assert metrics["samples_per_s"] == 3 * EPOCH / seconds
        assert metrics["au_mlperf"] == pytest.approx(STEP_S / (STEP_S + WAIT_S))
        assert metrics["wait_share"] == pytest.approx((START_S + 24 * WAIT_S) / seconds)
        assert metrics["time_to_first_batch_s"] == START_S + WAIT_S
        assert metrics["epoch_start_s"] == WAIT_S
        assert metrics["step_s_p50"] == STEP_S + WAIT_S
        assert (metrics["device"], metrics["precision"]) == ("a fake device", "float32")
        assert metrics["emulated"] is False
        assert metrics["notes"] == ["no work", "a fake"]
        assert self.trial("synthetic").metrics["notes"] == ["no work"]
        series = outcome.series
        ends_s = [START_S + (STEP_S + WAIT_S) * n for n in range(1, 25)]
        assert series.keys() == {"step_end_s", "time_s", "wait_s", "compute_s", "epoch"}
        assert len(series["wait_s"]) == len(series["compute_s"]) == 24
        assert list(series["step_end_s"]) == pytest.approx(ends_s)
        assert list(series["time_s"]) == pytest.approx(ends_s)
        assert list(series["epoch"]) == [0] * 8 + [1] * 8 + [2] * 8
        assert outcome.origin_s is not None
        assert outcome.counted_s == pytest.approx((0, seconds))

    def test_long_data_count_from_the_middle(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Counting begins after all that may have been ready if the loader does not count."""
        monkeypatch.setattr(SlowLoader, "batches", 100_000)
        outcome = self.trial("warm")
        metrics = outcome.metrics
        assert metrics["rate_rule"] == "bounds"
        assert metrics["samples_per_s"] == SAMPLES / (STEP_S + WAIT_S)
        assert metrics["left_out"] == 4
        assert outcome.counted_s is not None
        assert outcome.counted_s[0] == START_S + 4 * (STEP_S + WAIT_S)
        assert "epoch" not in outcome.series
        ranged = self.trial("warm", give_up_s=125.0).metrics
        assert "samples_per_s" not in ranged
        assert ranged["samples_per_s_high"] == pytest.approx(SAMPLES / (STEP_S + WAIT_S))
        assert ranged["samples_per_s_low"] < 0.95 * ranged["samples_per_s_high"]

    def test_a_loop_without_enough_time_fails(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The reason names the seconds that it needs; warming up takes 100 s here."""
        monkeypatch.setattr(SlowLoader, "batches", 100_000)
        with pytest.raises(TrialFailed, match=r"set trial_timeout_s to \d+ or more, or use fewer"):
            self.trial("warm", give_up_s=110.0)
        monkeypatch.setattr(SlowLoader, "batches", 8)
        with pytest.raises(TrialFailed, match="1 of 3 whole epochs of 80 samples were read"):
            self.trial("warm", give_up_s=110.0)

    def test_a_smaller_last_batch_is_dropped(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A training loop takes batches of one size."""
        monkeypatch.setattr(SlowLoader, "last_samples", 4)
        metrics = self.trial("warm").metrics
        assert (metrics["steps"], metrics["samples"]) == (21, 21 * SAMPLES)
        assert metrics["dropped_samples"] == 3 * 4

    def test_the_loader_is_closed_after_the_trial(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A loader may hold worker processes, which must end."""
        loaders: list[SlowLoader] = []

        class NotedLoader(SlowLoader):
            def __init__(self, *arguments: Any) -> None:
                super().__init__(*arguments)
                loaders.append(self)

        monkeypatch.setattr(loader_opening, "LOADERS", Only(NotedLoader))
        self.trial("warm")
        assert [loader.closed for loader in loaders] == [True]

    def test_metrics_have_the_parts_of_the_first_batch(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A loop that waits for its data has them; data on the device has none."""
        monkeypatch.setattr(loader_opening, "LOADERS", Only(TellingLoader))
        metrics = self.trial("warm").metrics
        assert metrics["first_batch_fetch_s"] == metrics["first_batch_rest_s"] == WAIT_S / 2
        resident = self.trial("synthetic").metrics
        assert not [name for name in resident if name.startswith("first_batch")]

    def test_a_device_behind_the_loop_is_measured_whole(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The rate is that of the device, and not of handing steps over."""
        monkeypatch.setattr(training_trial, "CONSUMERS", Only(AsynchronousConsumer))
        assert self.trial("synthetic").metrics["samples_per_s"] == SAMPLES / STEP_S

    def test_whole_epochs_have_enough_waits_for_the_90th_percentile(self) -> None:
        """The percentile needs 100 waits beside the first steps of epochs."""
        metrics = self.trial("warm", steps=100).metrics
        assert metrics["steps"] >= 100 + len(metrics["epochs"])
        assert "batch_wait_s_p90" in metrics

    def test_several_epochs_are_one_trial(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """All steps of all epochs count with their starts, and each epoch has a record."""
        monkeypatch.setattr(SlowLoader, "restart_s", 2.0)
        outcome = self.trial("warm", epochs=4)
        metrics = outcome.metrics
        assert metrics["steps"] == 4 * 8
        assert metrics["samples_per_s"] == 4 * EPOCH / (START_S + 3 * 2.0 + 4 * EPOCH_S)
        assert metrics["epoch_start_s"] == 2.0 + WAIT_S
        starts_s = START_S + 3 * 2.0 + 4 * WAIT_S
        assert metrics["epoch_start_share"] == pytest.approx(starts_s / metrics["seconds"])
        records = metrics["epochs"]
        assert [record["number"] for record in records] == [0, 1, 2, 3]
        assert [record["samples"] for record in records] == [EPOCH] * 4
        seconds = [START_S + EPOCH_S, *[2.0 + EPOCH_S] * 3]
        assert [record["seconds"] for record in records] == seconds
        assert metrics["au_mlperf"] == pytest.approx(STEP_S / (STEP_S + WAIT_S))
        assert metrics["step_s_p50"] == STEP_S + WAIT_S

    @pytest.mark.parametrize("stays", [True, False])
    def test_time_for_eviction_does_not_count(
        self, monkeypatch: pytest.MonkeyPatch, stays: bool
    ) -> None:
        """Each cold epoch is judged and evicted; workers end only if their files stay mapped."""
        loaders: list[SlowLoader] = []
        done: list[str] = []

        class NotedLoader(TellingLoader):
            def __init__(self, *arguments: Any) -> None:
                super().__init__(*arguments)
                loaders.append(self)

        class FakeCache:
            def __init__(self, *arguments: Any, before_every_epoch: bool) -> None:
                self.judged: list[Cold] = []

            def prepare(self) -> bool:
                clock.sleep(50.0)
                is_mapped = stays and any(not loader.closed for loader in loaders)
                done.append("mapped" if is_mapped else "evicted")
                return is_mapped and len(done) > 1

            def judge_epoch(self, samples: int) -> None:
                self.judged.append(Cold("cold", "cold", 0.0, 1.0))
                done.append(f"after {samples}")

            def judge_trial(self, samples: int) -> Cold:
                self.judged.append(Cold("cold", "cold", 0.0, 1.0))
                return Cold("cold", "cold", why=f"{samples} samples")

        monkeypatch.setattr(loader_opening, "LOADERS", Only(NotedLoader))
        monkeypatch.setattr(training_trial, "EpochCache", FakeCache)
        (params,) = points(inputs="warm", loader="mock", batch_size=SAMPLES, steps=8, workers=1)
        clock = VirtualClock()
        context = Context({}, clock, lambda done, unit: None)
        outcome = training_trial.run(TrialSpec("train", params), context)
        assert outcome.metrics["samples_per_s"] == 3 * EPOCH / (START_S + 3 * EPOCH_S)
        again = ["mapped", "evicted"] if stays else ["evicted"]
        assert done[1:] == [f"after {EPOCH}", *again] * 2
        assert [loader.epochs for loader in loaders] == ([[0], [1], [2]] if stays else [[0, 1, 2]])
        assert all(loader.closed for loader in loaders)
        assert outcome.cold == Cold("cold", "cold", why=f"{3 * EPOCH} samples")
        assert [epoch["label"] for epoch in outcome.metrics["epochs"]] == ["cold"] * 3
        assert outcome.metrics["notes"] == ["no work", "a fake"]
        assert len(outcome.pauses) == 2
        assert all(end_s - begin_s >= 50.0 for begin_s, end_s in outcome.pauses)

    def test_progress_goes_on_from_epoch_to_epoch(self) -> None:
        """The number of samples never falls."""
        (params,) = points(inputs="warm", loader="mock", batch_size=SAMPLES, steps=8, workers=1)
        reported: list[float] = []
        context = Context({}, VirtualClock(), lambda done, unit: reported.append(done))
        training_trial.run(TrialSpec("train", params), context)
        assert reported == [SAMPLES * n for n in range(1, 25)]

    def test_one_batch_in_host_memory_is_given_again_and_again(self) -> None:
        """The loop waits for no loader."""
        pytest.importorskip("torch")
        metrics = self.trial("copy", locations=LOCATIONS, **TORCH).metrics
        assert metrics["samples_per_s"] == SAMPLES / STEP_S
        assert metrics["wait_share"] == 0
        assert metrics["notes"] == [
            "no work",
            "input copy: one batch in host memory, given again and again",
        ]

    def test_the_loops_samples_are_held_before_the_clock_runs(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As many are held as the steps take; they are neither cold nor warm and have no MB/s."""
        monkeypatch.setattr(loader_opening, "LOADERS", Only(HoldingLoader))
        monkeypatch.setattr(training_trial, "available_bytes", lambda: 4000)
        outcome = self.trial("augment", data="shards", locations=LOCATIONS, **TORCH)
        assert outcome.metrics["notes"] == ["no work", "a fake", f"augment {8 * SAMPLES} 1000"]
        assert outcome.metrics["time_to_first_batch_s"] == START_S + WAIT_S
        assert outcome.cold is None
        assert "mb_per_s" not in outcome.metrics

    def test_a_loader_that_only_reads_is_refused(self) -> None:
        """The reason is one line."""
        with pytest.raises(Unavailable, match="cannot be given samples from memory"):
            self.trial("decode", data="shards", locations=LOCATIONS, **TORCH)

    def test_an_empty_loader_fails(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The reason is the same as for any loop."""
        monkeypatch.setattr(SlowLoader, "batches", 0)
        with pytest.raises(TrialFailed, match="the loader gave no batch"):
            self.trial("warm")
