"""Kind ``train``: its inputs, and one trial of it on a clock that stands still."""

from __future__ import annotations

from typing import Any

import pytest

from iobench.clock import VirtualClock
from iobench.errors import TrialFailed, Unavailable
from iobench.loaders import Batch
from iobench.loops import opening, training
from iobench.loops.training_plan import Training, plan
from iobench.trial import Around, Cold, Context, Outcome, Place, TrialSpec
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

    @pytest.mark.parametrize("epochs", [1, 3])
    def test_resident_data_costs_the_computation_alone(self, epochs: int) -> None:
        """Without waiting the device is busy all of the time; epochs are as many steps each."""
        metrics = self.trial("synthetic", epochs=epochs).metrics
        assert metrics["steps"] == 6 * epochs
        assert metrics["samples_per_s"] == SAMPLES / STEP_S
        assert metrics["au_mlperf"] == 1
        assert metrics["wait_share"] == 0
        assert "epochs" not in metrics

    def test_real_data_are_waited_for(self) -> None:
        """Shares of the running time, without the first steps; and what it ran on."""
        outcome = self.trial("warm")
        metrics = outcome.metrics
        assert metrics["samples_per_s"] == SAMPLES / (STEP_S + WAIT_S)
        assert metrics["au_mlperf"] == pytest.approx(STEP_S / (STEP_S + WAIT_S))
        assert metrics["wait_share"] == pytest.approx(WAIT_S / (STEP_S + WAIT_S))
        assert metrics["time_to_first_batch_s"] == START_S + WAIT_S
        assert (metrics["device"], metrics["precision"]) == ("a fake device", "float32")
        assert metrics["emulated"] is False
        assert metrics["notes"] == ["no work", "a fake"]
        assert self.trial("synthetic").metrics["notes"] == ["no work"]
        series = outcome.series
        ends = [(STEP_S + WAIT_S) * n for n in range(1, 7)]
        assert series.keys() == {"step_end_s", "time_s", "wait_s", "compute_s"}
        assert len(series["wait_s"]) == len(series["compute_s"]) == 6
        assert list(series["step_end_s"]) == pytest.approx(ends)
        before_s = START_S + 2 * (WAIT_S + STEP_S)  # from asking for the epoch
        assert list(series["time_s"]) == pytest.approx([before_s + end_s for end_s in ends])
        assert outcome.origin_s is not None
        assert outcome.counted_s == pytest.approx((before_s, before_s + ends[-1]))
        assert outcome.pauses == ()

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
        assert metrics["first_batch_fetch_s"] == metrics["first_batch_rest_s"] == WAIT_S / 2
        resident = self.trial("synthetic").metrics
        assert not [name for name in resident if name.startswith("first_batch")]

    def test_a_device_behind_the_loop_is_measured_whole(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Handing over is not computing: the rate is that of the device."""
        monkeypatch.setattr(training, "CONSUMERS", Only(AsynchronousConsumer))
        assert self.trial("synthetic").metrics["samples_per_s"] == SAMPLES / STEP_S

    def test_several_epochs_are_one_trial(self) -> None:
        """Steps of each count but its first ones; each has a record, and pauses lie between."""
        outcome = self.trial("warm", epochs=3)
        metrics = outcome.metrics
        assert metrics["steps"] == 3 * 6
        assert metrics["samples_per_s"] == SAMPLES / (STEP_S + WAIT_S)
        assert metrics["time_to_first_batch_s"] == START_S + WAIT_S
        records = [(one["number"], one["samples"], one["seconds"]) for one in metrics["epochs"]]
        epoch_s = 8 * (STEP_S + WAIT_S)
        assert records == [(0, 80, START_S + epoch_s), (1, 80, epoch_s), (2, 80, epoch_s)]
        assert list(outcome.series["epoch"]) == [0] * 6 + [1] * 6 + [2] * 6
        left_out_s = 2 * (STEP_S + WAIT_S)
        ends_s = [START_S + n * epoch_s for n in (1, 2)]
        assert outcome.pauses == tuple((end_s, end_s + left_out_s) for end_s in ends_s)
        assert outcome.series["time_s"][6] == ends_s[0] + left_out_s + STEP_S + WAIT_S
        assert metrics["au_mlperf"] == pytest.approx(STEP_S / (STEP_S + WAIT_S))

    @pytest.mark.parametrize("restarts", [True, False])
    def test_workers_end_before_files_are_evicted(
        self, monkeypatch: pytest.MonkeyPatch, restarts: bool
    ) -> None:
        """A loader an epoch; else the same one, judged while it lives and when it is closed."""
        loaders: list[SlowLoader] = []
        done: list[tuple[str, bool]] = []

        class Kept(TellingLoader):
            def __init__(self, *given: Any) -> None:
                super().__init__(*given)
                loaders.append(self)

        class FakeCache:
            def __init__(self, *given: Any, every: bool) -> None:
                self.restarts = restarts

            def before(self) -> None:
                done.append(("before", all(loader.closed for loader in loaders)))

            def after(self, samples: int) -> Cold:
                done.append((f"after {samples}", all(loader.closed for loader in loaders)))
                return Cold("cold", "cold", 0.0, 1.0)

            def whole(self) -> Cold:
                return Cold("cold", "cold", why=str(len(done)))

        monkeypatch.setattr(opening, "LOADERS", Only(Kept))
        monkeypatch.setattr(training, "EpochCache", FakeCache)
        outcome = self.trial("warm", epochs=2)
        after = f"after {8 * SAMPLES}"
        assert [what for what, _ in done] == ["before", after, "before", after]
        assert [closed for what, closed in done if what == after] == [restarts, True]
        assert [loader.epochs for loader in loaders] == ([[0], [1]] if restarts else [[0, 1]])
        assert all(loader.closed for loader in loaders)
        assert outcome.cold == Cold("cold", "cold", why="4")
        assert [one["label"] for one in outcome.metrics["epochs"]] == ["cold"] * 2
        assert outcome.metrics["notes"] == ["no work", "a fake"]
        assert outcome.metrics["first_batch_listing_s"] == START_S

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
