"""Kind ``train``: its inputs, and one trial of it on a clock that stands still."""

from __future__ import annotations

import math
from typing import Any

import pytest

from iobench.clock import VirtualClock
from iobench.errors import TrialFailed, Unavailable
from iobench.loaders import Batch
from iobench.results.trial import Cold, Context, Location, Outcome, Params, TrialSpec
from iobench.trials import loader_opening, training_trial
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
PLACES = {"shards@disk": Location("/data", "shards")}


def points(**given: Any) -> list[Params]:
    """The points of one group."""
    return list(training_points(Training.model_validate(given)))


class HoldingLoader(SlowLoader):
    """Says what it was told to hold, which takes long."""

    def hold(self, rung: str, samples: int, limit_bytes: int) -> None:
        """Before any epoch."""
        assert not self.epochs
        self.clock.sleep(1000)
        self.notes = (*self.notes, f"{rung} {samples} {limit_bytes}")


class LateStarter(SlowConsumer):
    """Its first step takes a minute more than the others."""

    def step(self, batch: Batch) -> None:
        """Compute."""
        if not self.steps:
            self.clock.sleep(60)
        super().step(batch)


class TestRun:
    """One trial, its loader and its consumer replaced."""

    @pytest.fixture(autouse=True)
    def replaced(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Fakes under every name."""
        monkeypatch.setattr(loader_opening, "LOADERS", Only(SlowLoader))
        monkeypatch.setattr(training_trial, "CONSUMERS", Only(SlowConsumer))

    def trial(self, source: str, give_up_s: float = math.inf, **changed: Any) -> Outcome:
        """8 steps at least from ``source``, whose epochs have 8 batches."""
        locations = changed.pop("locations", {})
        settings = {"loader": "mock", "batch_size": SAMPLES, "steps": 8, "workers": 1, **changed}
        (params,) = points(inputs=source, **settings)
        context = Context(locations, VirtualClock(), lambda done, unit: None, give_up_s=give_up_s)
        return training_trial.run(TrialSpec("train", params), context)

    @pytest.mark.parametrize("epochs", [1, 3])
    def test_resident_data_costs_the_computation_alone(self, epochs: int) -> None:
        """Without waiting the device is busy all of the time; there are no epochs."""
        metrics = self.trial("synthetic", epochs=epochs).metrics
        assert metrics["steps"] == 8
        assert metrics["samples_per_s"] == SAMPLES / STEP_S
        assert metrics["au_mlperf"] == 1
        assert metrics["wait_share"] == 0
        assert (metrics["rate_rule"], metrics["epoch_start_share"]) == ("steady", 0)
        assert "epochs" not in metrics

    def test_the_first_step_is_in_no_figure(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Frameworks choose their kernels in it: of one batch only the later steps count."""
        monkeypatch.setattr(training_trial, "CONSUMERS", Only(LateStarter))
        metrics = self.trial("synthetic").metrics
        assert metrics["steps"] == 8
        assert metrics["samples_per_s"] == SAMPLES / STEP_S

    def test_real_data_are_waited_for(self) -> None:
        """Three whole epochs with the start of the first; and what the loop ran on."""
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
        """A loop over a loader that does not count begins after what may be ready at its start."""
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
        """The reason names the seconds that it needs; warming up takes 100 s."""
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

    def test_the_parts_of_the_first_batch_are_told(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Of a loop that waits for its data; what lies on the device has none."""
        monkeypatch.setattr(loader_opening, "LOADERS", Only(TellingLoader))
        metrics = self.trial("warm").metrics
        assert metrics["first_batch_fetch_s"] == metrics["first_batch_rest_s"] == WAIT_S / 2
        resident = self.trial("synthetic").metrics
        assert not [name for name in resident if name.startswith("first_batch")]

    def test_a_device_behind_the_loop_is_measured_whole(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Handing over is not computing: the rate is that of the device."""
        monkeypatch.setattr(training_trial, "CONSUMERS", Only(AsynchronousConsumer))
        assert self.trial("synthetic").metrics["samples_per_s"] == SAMPLES / STEP_S

    def test_whole_epochs_have_enough_waits_for_the_90th_percentile(self) -> None:
        """The first step of each epoch is none of the 100 waits that the percentile needs."""
        metrics = self.trial("warm", steps=100).metrics
        assert metrics["steps"] >= 100 + len(metrics["epochs"])
        assert "batch_wait_s_p90" in metrics

    def test_several_epochs_are_one_trial(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """All steps of each count, with their starts; each epoch has a record."""
        monkeypatch.setattr(SlowLoader, "restart_s", 2.0)
        outcome = self.trial("warm", epochs=4)
        metrics = outcome.metrics
        assert metrics["steps"] == 4 * 8
        assert metrics["samples_per_s"] == 4 * EPOCH / (START_S + 3 * 2.0 + 4 * EPOCH_S)
        assert metrics["epoch_start_s"] == 2.0 + WAIT_S
        starts_s = START_S + 3 * 2.0 + 4 * WAIT_S
        assert metrics["epoch_start_share"] == pytest.approx(starts_s / metrics["seconds"])
        records = [
            (epoch["number"], epoch["samples"], epoch["seconds"]) for epoch in metrics["epochs"]
        ]
        later = [(number, EPOCH, 2.0 + EPOCH_S) for number in (1, 2, 3)]
        assert records == [(0, EPOCH, START_S + EPOCH_S), *later]
        assert metrics["au_mlperf"] == pytest.approx(STEP_S / (STEP_S + WAIT_S))
        assert metrics["step_s_p50"] == STEP_S + WAIT_S

    @pytest.mark.parametrize("stays", [True, False])
    def test_time_for_eviction_does_not_count(
        self, monkeypatch: pytest.MonkeyPatch, stays: bool
    ) -> None:
        """Every cold epoch is judged and evicted; workers end only if their files stay mapped."""
        loaders: list[SlowLoader] = []
        done: list[str] = []

        class Kept(TellingLoader):
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

        monkeypatch.setattr(loader_opening, "LOADERS", Only(Kept))
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
        """It never falls back."""
        (params,) = points(inputs="warm", loader="mock", batch_size=SAMPLES, steps=8, workers=1)
        seen: list[float] = []
        context = Context({}, VirtualClock(), lambda done, unit: seen.append(done))
        training_trial.run(TrialSpec("train", params), context)
        assert seen == [SAMPLES * n for n in range(1, 25)]

    def test_one_batch_in_host_memory_is_given_again_and_again(self) -> None:
        """No loader is waited for."""
        pytest.importorskip("torch")
        metrics = self.trial("copy", locations=PLACES, **TORCH).metrics
        assert metrics["samples_per_s"] == SAMPLES / STEP_S
        assert metrics["wait_share"] == 0
        assert metrics["notes"] == [
            "no work",
            "input copy: one batch in host memory, given again and again",
        ]

    def test_the_loops_samples_are_held_before_the_clock_runs(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As many as its steps take; nothing of it is called cold or warm, nor bytes a second."""
        monkeypatch.setattr(loader_opening, "LOADERS", Only(HoldingLoader))
        monkeypatch.setattr(training_trial, "available_bytes", lambda: 4000)
        outcome = self.trial("augment", data="shards", locations=PLACES, **TORCH)
        assert outcome.metrics["notes"] == ["no work", "a fake", f"augment {8 * SAMPLES} 1000"]
        assert outcome.metrics["time_to_first_batch_s"] == START_S + WAIT_S
        assert outcome.cold is None
        assert "mb_per_s" not in outcome.metrics

    def test_a_loader_that_only_reads_is_refused(self) -> None:
        """In a line."""
        with pytest.raises(Unavailable, match="cannot be given samples from memory"):
            self.trial("decode", data="shards", locations=PLACES, **TORCH)

    def test_an_empty_loader_fails(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """With the reason that any loop gives."""
        monkeypatch.setattr(SlowLoader, "batches", 0)
        with pytest.raises(TrialFailed, match="the loader gave no batch"):
            self.trial("warm")
