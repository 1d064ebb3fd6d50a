"""Kind ``train``: its inputs, and one trial of it on a clock that stands still."""

from __future__ import annotations

from typing import Any

import pytest

from iobench.analysis.loops import loops
from iobench.clock import VirtualClock
from iobench.errors import TrialFailed, Unavailable
from iobench.loaders import Batch
from iobench.loops import opening, training
from iobench.loops.training_plan import Training, plan
from iobench.trial import Around, Context, Outcome, Place, Trial, TrialSpec
from tests.iobench.loops.fakes import (
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

TORCH = {"loader": "torch-map"}
PLACES = {"shards@disk": Place("/data", "shards")}
PACED = {"consumer": "paced", "images_per_s": 100, "loader": "mock"}


def points(**given: Any) -> list[dict[str, Any]]:
    """The points of one group."""
    return list(plan(Training.model_validate(given)))


class HoldingLoader(SlowLoader):
    """Says what it was told to hold, which takes long."""

    def hold(self, rung: str, samples: int, limit_bytes: int) -> None:
        """Before any epoch."""
        assert not self.epochs
        self.clock.sleep(1000)
        self.notes = (*self.notes, f"{rung} {samples} {limit_bytes}")


class TestRun:
    """One trial, its loader and its consumer replaced."""

    @pytest.fixture(autouse=True)
    def replaced(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Fakes under every name."""
        monkeypatch.setattr(opening, "LOADERS", Only(SlowLoader))
        monkeypatch.setattr(training, "CONSUMERS", Only(SlowConsumer))

    def trial(self, source: str, **changed: Any) -> Outcome:
        """8 steps from ``source``, of which 2 do not count."""
        places = changed.pop("places", {})
        given = {"loader": "mock", "batch_size": SAMPLES, "steps": 8, "workers": 1, **changed}
        (params,) = points(inputs=source, **given)
        context = Context(places, VirtualClock(), lambda done, unit: None)
        return training.run(TrialSpec("train", params), context)

    def test_resident_data_costs_the_computation_alone(self) -> None:
        """Without waiting the device is busy all of the time."""
        metrics = self.trial("synthetic").metrics
        assert metrics["steps"] == 6
        assert metrics["samples_per_s"] == SAMPLES / STEP_S
        assert metrics["au_mlperf"] == 1
        assert metrics["wait_share"] == 0

    def test_real_data_are_waited_for(self) -> None:
        """Shares of the running time; the first steps are in none of them."""
        metrics = self.trial("warm").metrics
        assert metrics["samples_per_s"] == SAMPLES / (STEP_S + WAIT_S)
        assert metrics["au_mlperf"] == pytest.approx(STEP_S / (STEP_S + WAIT_S))
        assert metrics["wait_share"] == pytest.approx(WAIT_S / (STEP_S + WAIT_S))
        assert metrics["time_to_first_batch_s"] == START_S + WAIT_S

    def test_a_context_may_put_something_around_loader_and_consumer(self) -> None:
        """What it gives is what is run, and closed."""

        class Twice(SlowConsumer):
            def step(self, batch: Batch) -> None:
                super().step(batch)
                super().step(batch)

        loaders: list[SlowLoader] = []

        def twice(consumer: SlowConsumer) -> SlowConsumer:
            return Twice(consumer.settings, consumer.clock)

        def noted(loader: SlowLoader) -> SlowLoader:
            loaders.append(loader)
            return loader

        (params,) = points(inputs="warm", loader="mock", batch_size=SAMPLES, steps=8, workers=1)
        around = Around(loader=noted, consumer=twice)
        context = Context({}, VirtualClock(), lambda done, unit: None, around=around)
        metrics = training.run(TrialSpec("train", params), context).metrics
        assert metrics["samples_per_s"] == SAMPLES / (2 * STEP_S + WAIT_S)
        assert [loader.closed for loader in loaders] == [True]

    def test_the_parts_of_the_first_batch_are_told(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Of a loop that waits for its data; what lies on the device has none."""
        monkeypatch.setattr(opening, "LOADERS", Only(TellingLoader))
        metrics = self.trial("warm").metrics
        assert metrics["first_batch_listing_s"] == START_S
        assert metrics["first_batch_fetch_s"] == metrics["first_batch_rest_s"] == WAIT_S / 2
        resident = self.trial("synthetic").metrics
        assert not [name for name in resident if name.startswith("first_batch")]

    def test_a_trial_says_what_it_ran_on(self) -> None:
        """Device, precision, and the notes of both."""
        metrics = self.trial("warm").metrics
        assert metrics["device"] == "a fake device"
        assert metrics["precision"] == "float32"
        assert metrics["emulated"] is False
        assert metrics["notes"] == ["no work", "a fake"]
        assert self.trial("synthetic").metrics["notes"] == ["no work"]

    def test_series_have_a_value_a_step(self) -> None:
        """Equally long columns, and the time at which each step ended."""
        series = self.trial("warm").series
        assert {name: len(column) for name, column in series.items()} == {
            "step_end_s": 6,
            "time_s": 6,
            "wait_s": 6,
            "compute_s": 6,
        }
        assert list(series["step_end_s"]) == pytest.approx(
            [(STEP_S + WAIT_S) * n for n in range(1, 7)]
        )

    def test_steps_have_a_time_that_others_share(self) -> None:
        """Counted from asking for the epoch: opening and the first steps lie before."""
        outcome = self.trial("warm")
        ends, times = outcome.series["step_end_s"], outcome.series["time_s"]
        before_s = START_S + 2 * (WAIT_S + STEP_S)
        assert [at - end for at, end in zip(times, ends, strict=True)] == pytest.approx(
            [before_s] * 6
        )
        assert outcome.origin_s is not None
        assert outcome.counted_s == pytest.approx((before_s, before_s + ends[-1]))

    def test_a_device_behind_the_loop_is_measured_whole(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Handing over is not computing: the rate is that of the device."""
        monkeypatch.setattr(training, "CONSUMERS", Only(AsynchronousConsumer))
        assert self.trial("synthetic").metrics["samples_per_s"] == SAMPLES / STEP_S

    def test_both_utilisations_agree_without_overlap(self) -> None:
        """Three trials summarised: ceiling and computing share are one figure here."""
        trials = [
            Trial(source, "train", params, 0, "done", self.trial(source).metrics)
            for source in ("synthetic", "warm")
            for params in points(inputs=source, group="g", **PACED)
        ]
        group = loops(trials)[0].as_dict()
        share = STEP_S / (STEP_S + WAIT_S)
        assert group["au_ceiling"]["median"] == pytest.approx(share)
        assert group["au_mlperf"]["median"] == pytest.approx(share)
        assert group["stall_fraction"]["median"] == pytest.approx(1 - share)

    def test_several_epochs_are_one_trial(self) -> None:
        """Steps of each count but its first ones; each has a record."""
        outcome = self.trial("warm", epochs=3)
        metrics = outcome.metrics
        assert metrics["steps"] == 3 * 6
        assert metrics["samples_per_s"] == SAMPLES / (STEP_S + WAIT_S)
        assert metrics["time_to_first_batch_s"] == START_S + WAIT_S
        assert [one["number"] for one in metrics["epochs"]] == [0, 1, 2]
        assert [one["samples"] for one in metrics["epochs"]] == [80] * 3
        assert metrics["epochs"][0]["seconds"] == START_S + 8 * (STEP_S + WAIT_S)
        assert metrics["epochs"][2]["seconds"] == 8 * (STEP_S + WAIT_S)
        assert list(outcome.series["epoch"]) == [0] * 6 + [1] * 6 + [2] * 6
        assert len(outcome.pauses) == 2
        assert metrics["au_mlperf"] == pytest.approx(STEP_S / (STEP_S + WAIT_S))

    def test_resident_data_are_trained_on_as_often(self) -> None:
        """Every input takes as many steps."""
        outcome = self.trial("synthetic", epochs=3)
        assert outcome.metrics["steps"] == 3 * 6
        assert outcome.metrics["au_mlperf"] == 1
        assert "epochs" not in outcome.metrics

    def test_progress_goes_on_from_epoch_to_epoch(self) -> None:
        """It never falls back."""
        (params,) = points(
            inputs="warm", loader="mock", batch_size=SAMPLES, steps=8, workers=1, epochs=2
        )
        told: list[float] = []
        context = Context({}, VirtualClock(), lambda done, unit: told.append(done))
        training.run(TrialSpec("train", params), context)
        assert told == [SAMPLES * n for n in range(1, 17)]

    def test_one_batch_in_host_memory_is_given_again_and_again(self) -> None:
        """No loader is waited for."""
        pytest.importorskip("torch")
        metrics = self.trial("copy", places=PLACES, **TORCH).metrics
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
        monkeypatch.setattr(opening, "LOADERS", Only(HoldingLoader))
        monkeypatch.setattr(training, "available_bytes", lambda: 4000)
        outcome = self.trial("augment", data="shards", places=PLACES, **TORCH)
        assert outcome.metrics["notes"] == ["no work", "a fake", f"augment {8 * SAMPLES} 1000"]
        assert outcome.metrics["time_to_first_batch_s"] == START_S + WAIT_S
        assert outcome.cold is None
        assert "mb_per_s" not in outcome.metrics

    def test_a_loader_that_only_reads_is_refused(self) -> None:
        """In a line."""
        with pytest.raises(Unavailable, match="cannot be given samples from memory"):
            self.trial("decode", data="shards", places=PLACES, **TORCH)

    def test_an_empty_loader_fails(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """With the reason that any loop gives."""
        monkeypatch.setattr(SlowLoader, "batches", 0)
        with pytest.raises(TrialFailed, match="the loader gave no batch"):
            self.trial("warm")
