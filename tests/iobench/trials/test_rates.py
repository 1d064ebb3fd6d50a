"""The rate of every loader and loop is the true one, on a virtual clock.

``tests.iobench.simulated_loader`` gives the truth: it simulates workers, windows, buffers and a
store, and a plain loop over it counts samples and seconds.
"""

from __future__ import annotations

import itertools
import math
import random
import re
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dataprep.reading.read_ahead import read_ahead
from iobench.clock import VirtualClock
from iobench.consumers.null import NullConsumer
from iobench.consumers.paced import PacedConsumer
from iobench.consumers.protocol import Consumer, ConsumerSettings
from iobench.data.data_summary import DataSummary
from iobench.errors import TrialFailed
from iobench.results.trial import GIVE_UP_SHARE, Context, Params, TrialSpec
from iobench.trials import loader_opening, loader_trial, training_trial
from iobench.trials.loader_grid import LoopTrial
from iobench.trials.loop_timings import LoopTimings, combine_epochs
from iobench.trials.rate_measurement import measure_rate
from iobench.trials.rate_plan import loader_flow, plan_rate
from iobench.trials.training_settings import Training, training_points
from iobench.trials.window import MAX_IMBALANCE, MIN_EPOCHS, MIN_ROUNDS, Minimum
from tests.iobench.simulated_loader import (
    ENDLESS,
    SimulatedLoader,
    Simulation,
    long_run_rate,
    whole_epochs_rate,
)
from tests.iobench.trials.fakes import Only

NEAR = 0.02
"""The largest allowed error of a rate, as a share."""

FAST_DEVICE = math.inf
"""The device of a loader that is measured alone: its batches are dropped."""

BATCH = 10

RATE_AND_LATENCY: dict[str, Any] = {"store_per_s": 400.0, "latency_s": 0.2, "item_s": 0.004}
RATE_AND_LATENCY |= {"window": 64, "at_once": 2}
GROWING_WINDOWS: dict[str, Any] = {"store_per_s": 2_000.0, "latency_s": 0.1, "item_s": 0.001}
GROWING_WINDOWS |= {"window": 80, "first_window": 10, "at_once": 2}
STORES: dict[str, dict[str, Any]] = {
    "limited link": {"store_per_s": 300.0, "window": 40, "at_once": 2, "item_s": 0.0005},
    "latency": {"latency_s": 0.4, "window": 20, "at_once": 2, "item_s": 0.001},
    "limited disk": {"store_per_s": 200.0, "window": 25, "at_once": 1, "item_s": 0.001},
    "decoding": {"item_s": 0.01, "window": 10},
    "rate and latency": RATE_AND_LATENCY,
    "growing windows": GROWING_WINDOWS,
    "shuffle buffer": {"store_per_s": 500.0, "window": 20, "buffer": 150, "item_s": 0.001},
}


@dataclass(frozen=True)
class Case:
    """A trial of ``steps`` steps at least, on a device of ``device_per_s`` samples/s."""

    simulation: Simulation
    device_per_s: float
    steps: int


def case(
    store: str, workers: int, prefetch: int, steps: int, device_per_s: float, epochs: float
) -> Case:
    """Return the trial in which ``steps`` steps are ``epochs`` epochs; 0 is one endless epoch."""
    epoch_samples = ENDLESS
    if epochs:
        epoch_samples = max(2 * BATCH, int(steps * BATCH / epochs))
    simulation = Simulation(
        workers=workers,
        prefetch=prefetch,
        batch=BATCH,
        epoch_samples=epoch_samples,
        **STORES[store],
    )
    return Case(simulation, device_per_s, steps)


WORKERS = (0, 1, 2, 3, 5, 8, 16)
PREFETCH = (1, 2, 4)
STEPS = (39, 100, 237, 400)
DEVICES = (FAST_DEVICE, 150.0, 1000.0)
EPOCHS = (0, 0.5, 1, 3, 10)

cases = st.builds(
    case,
    st.sampled_from(sorted(STORES)),
    st.integers(0, 16),
    st.integers(1, 4),
    st.integers(39, 400),
    st.sampled_from(DEVICES),
    st.sampled_from(EPOCHS),
)


def measured(trial: Case, give_up_s: float = math.inf) -> tuple[str, int, LoopTimings]:
    """Return the rule of the trial, the number of epochs that it reads, and its timings."""
    clock, simulation = VirtualClock(), trial.simulation
    loader = SimulatedLoader(simulation, clock)
    is_endless = simulation.epoch_samples == ENDLESS
    rates = plan_rate(
        loader,
        loop_trial(simulation),
        None,
        Minimum(trial.steps),
        epoch_samples=None if is_endless else simulation.epoch_samples,
        by_epochs=False,
        give_up_s=give_up_s,
    )
    consumer = device(trial, clock)
    result = measure_rate(loader.epoch, consumer, clock, rates, read_totals=loader.read_so_far)
    return result.rule, len(result.epochs), combine_epochs(result.counted_timings())


def loop_trial(simulation: Simulation) -> LoopTrial:
    """Return the params of a trial over the simulated loader."""
    return LoopTrial(
        loader="simulated",
        data="",
        batch_size=simulation.batch,
        workers=simulation.workers,
        prefetch=simulation.prefetch,
    )


def device(trial: Case, clock: VirtualClock) -> Consumer:
    """Return the emulated device of a trial."""
    if math.isinf(trial.device_per_s):
        return NullConsumer(ConsumerSettings(), clock)
    pace = ConsumerSettings(batch_size=trial.simulation.batch, images_per_s=trial.device_per_s)
    return PacedConsumer(pace, clock)


def error_of(trial: Case, rule: str, epochs: int, times: LoopTimings) -> float:
    """Return the error of a measured rate as a share of the true one."""
    if rule == "epochs":
        truth = whole_epochs_rate(trial.simulation, trial.device_per_s, epochs)
    else:
        loader = SimulatedLoader(trial.simulation, VirtualClock())
        flow = loader_flow(loader, loop_trial(trial.simulation), None)
        truth = long_run_rate(trial.simulation, trial.device_per_s, MIN_ROUNDS * flow.round_samples)
    return abs(times.samples_per_s / truth - 1)


def check(trial: Case) -> None:
    """Check that the rate is true, and that as much has arrived as was consumed."""
    rule, epochs, times = measured(trial)
    assert error_of(trial, rule, epochs, times) < NEAR, (trial, rule, times)
    assert len(times.wait_s) >= trial.steps
    assert times.balance is not None
    if rule == "epochs":
        assert epochs >= MIN_EPOCHS
        assert times.balance == 1
    else:
        assert abs(times.balance - 1) <= MAX_IMBALANCE


@settings(max_examples=60)
@given(cases)
def test_every_rate_is_true(trial: Case) -> None:
    """This holds for any limit of the loader, and for any number of workers, steps and epochs."""
    check(trial)


@pytest.mark.slow
@pytest.mark.parametrize("store", sorted(STORES))
def test_rates_of_many_loops_are_true(store: str) -> None:
    """The loops are a random sample of all workers, prefetch, steps, devices and epochs."""
    combinations = list(itertools.product(WORKERS, PREFETCH, STEPS, DEVICES, EPOCHS))
    for combination in random.Random(store).sample(combinations, 250):
        check(case(store, *combination))


def named_timeout_s(reason: str) -> float:
    """Return the timeout that the reason of a failure names, in seconds."""
    named = re.search(r"set trial_timeout_s to ([\d,]+) or more, or use fewer", reason)
    assert named is not None, reason
    return float(named[1].replace(",", ""))


@settings(max_examples=60)
@given(cases, st.sampled_from([0.3, 1.0, 5.0, 20.0]))
@example(case("growing windows", 10, 2, 39, 1000.0, 0), 5.0)  # It balances after 25 rounds.
def test_time_is_up(trial: Case, give_up_s: float) -> None:
    """The rate is still true, or the trial fails and names a time that is enough."""
    try:
        rule, epochs, times = measured(trial, give_up_s)
    except TrialFailed as error:
        named_s = named_timeout_s(str(error))
        rule, epochs, times = measured(trial, GIVE_UP_SHARE * named_s)
    assert error_of(trial, rule, epochs, times) < NEAR, (trial, rule, times)


def test_time_is_up_after_an_epoch_that_gave_a_rate() -> None:
    """The rate of the earlier epochs is kept, although more steps were requested."""
    trial = Case(Simulation(batch=10, item_s=0.01, epoch_samples=800), 1_000.0, 400)
    _, wanted_epochs, _ = measured(trial)
    assert wanted_epochs > 3
    rule, epochs, times = measured(trial, 4.6)
    assert (rule, epochs) == ("steady", 2)
    assert error_of(trial, rule, epochs, times) < NEAR


@given(st.integers(1, 16), st.integers(1, 4), st.integers(39, 400), st.sampled_from(DEVICES))
def test_bursts_do_not_favour_more_workers(
    workers: int, prefetch: int, steps: int, device_per_s: float
) -> None:
    """Workers that hand over batches together have their own rate for any number of steps."""
    trial = case("decoding", workers, prefetch, steps, device_per_s, 0)
    _, _, times = measured(trial)
    assert times.samples_per_s == pytest.approx(min(workers / 0.01, device_per_s), rel=NEAR)


class TestOfTheIssue:
    """Cases in which an earlier version was wrong by a factor of up to four."""

    PHOTOS, PHOTO_BYTES, LINK_PER_S = 1_000, 41_000, 290.0

    def trial(
        self,
        monkeypatch: pytest.MonkeyPatch,
        simulation: Simulation,
        **changes: Any,
    ) -> dict[str, Any]:
        """Return the metrics of a loop with these settings, or of the loader alone without any."""
        samples = simulation.epoch_samples
        data = DataSummary(samples, samples * simulation.sample_bytes, 10, ())

        class Loader(SimulatedLoader):
            def __init__(self, location: object, settings: object, clock: VirtualClock) -> None:
                super().__init__(simulation, clock)

        monkeypatch.setattr(loader_opening, "LOADERS", Only(Loader))
        for module in (loader_trial, training_trial):
            monkeypatch.setattr(module, "summarize_loader_data", lambda location, loader: data)
        context = Context({}, VirtualClock(), lambda done, unit: None)
        shared = {
            "batch_size": simulation.batch,
            "workers": simulation.workers,
            "prefetch": simulation.prefetch,
        }
        params: Params
        if not changes:
            params = {"loader": "simulated", "data": "", "cache": "warm", "seconds": 10.0, **shared}
            return dict(loader_trial.run(TrialSpec("loader", params), context).metrics)
        loop = {"consumer": "paced", "loader": "mock", "inputs": "warm", **shared, **changes}
        (params,) = training_points(Training.model_validate(loop))
        return dict(training_trial.run(TrialSpec("train", params), context).metrics)

    def behind_the_link(self, at_once: int, **changes: Any) -> Simulation:
        """Return 1,000 photos behind a link of 12 MB/s, which 2 workers read as dataprep does."""
        ahead = read_ahead(self.PHOTO_BYTES, is_remote=True)
        simulation = Simulation(
            workers=2,
            batch=64,
            item_s=0.001,
            window=ahead.window_samples,
            first_window=64,
            at_once=at_once,
            store_per_s=self.LINK_PER_S,
            epoch_samples=self.PHOTOS,
            sample_bytes=self.PHOTO_BYTES,
        )
        return replace(simulation, **changes)

    @pytest.mark.parametrize("is_loop", [True, False])
    @pytest.mark.parametrize("at_once", [1, 2, 4])
    def test_a_link_of_12_mb_s(
        self, monkeypatch: pytest.MonkeyPatch, at_once: int, is_loop: bool
    ) -> None:
        """The rate is at most 290 samples/s, also if all samples arrive before the first batch."""
        loop = {"images_per_s": 2_000, "steps": 15} if is_loop else {}
        metrics = self.trial(monkeypatch, self.behind_the_link(at_once), **loop)
        assert metrics["samples_per_s"] <= self.LINK_PER_S
        assert metrics["mb_per_s"] <= 12
        assert metrics["samples_per_s"] > 0.7 * self.LINK_PER_S
        assert metrics["balance"] == pytest.approx(1, abs=MAX_IMBALANCE)
        assert metrics["fetched_bytes"] / metrics["seconds"] <= 12e6
        assert metrics["epoch_start_share"] > 0.1

    @pytest.mark.parametrize("steps", [40, 39, 20, 100])
    @pytest.mark.parametrize("images_per_s", [200.0, 20_000.0])
    def test_eight_workers_of_a_mock_loader(self, steps: int, images_per_s: float) -> None:
        """5 ms a sample are 1,600 samples/s, or the rate of the device, for any number of steps."""
        loop = {
            "consumer": "paced",
            "images_per_s": images_per_s,
            "loader": "mock",
            "inputs": "warm",
            "workers": 8,
            "item_s": 0.005,
            "steps": steps,
        }
        (params,) = training_points(Training.model_validate(loop))
        context = Context({}, VirtualClock(), lambda done, unit: None)
        metrics = training_trial.run(TrialSpec("train", params), context).metrics
        truth = min(1_600.0, images_per_s)
        assert metrics["samples_per_s"] == pytest.approx(truth, rel=NEAR)
        assert metrics["steps"] >= steps

    @pytest.mark.parametrize("steps", [39, 240])
    @pytest.mark.parametrize("photos", [1_000, 2_500, ENDLESS])
    def test_a_store_50_ms_away(
        self, monkeypatch: pytest.MonkeyPatch, photos: int, steps: int
    ) -> None:
        """The loader alone is as fast as a loop whose device is faster."""
        away = Simulation(workers=4, batch=10, item_s=0.002, window=20, latency_s=0.05, start_s=0.0)
        away = replace(away, epoch_samples=photos)
        alone = self.trial(monkeypatch, away)
        loop = self.trial(monkeypatch, away, images_per_s=20_000, steps=steps)
        assert loop["samples_per_s"] == pytest.approx(alone["samples_per_s"], rel=NEAR)

    def test_time_to_the_first_batch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The first batch and the starts of later epochs have figures of their own."""
        simulation = self.behind_the_link(2)
        metrics = self.trial(monkeypatch, simulation, images_per_s=2_000, steps=15)
        clock = VirtualClock()
        loader = SimulatedLoader(simulation, clock)
        for number, name in enumerate(("time_to_first_batch_s", "epoch_start_s")):
            requested_s = clock.now_s()
            batches = loader.epoch(number)
            next(batches)
            assert metrics[name] == pytest.approx(clock.now_s() - requested_s)
            for batch in batches:
                clock.sleep(batch.samples / 2_000)
