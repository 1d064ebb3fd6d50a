"""The figures that follow from the timings of a loop."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.clock import VirtualClock
from iobench.data.data_summary import DataSummary
from iobench.loaders import FirstBatch, LoaderSettings
from iobench.results.trial import Cold
from iobench.trials.loop_metrics import (
    EpochRecord,
    first_batch_metrics,
    harness_metrics,
    loop_metrics,
    step_cost_s,
)
from iobench.trials.loop_timings import LoopTimings, combine_epochs
from iobench.trials.rank_timings import combine_processes
from tests.iobench.trials.fakes import SlowLoader, TellingLoader


def loop(steps: int = 100, **changes: Any) -> LoopTimings:
    """Return steps of 2 s with 1 s of waiting and 20 samples, which begin 5 s after the request."""
    times = LoopTimings(
        requested_s=0.0,
        time_to_first_batch_s=1.0,
        begun_s=5.0,
        seconds=2.0 * steps,
        samples=20 * steps,
        all_samples=20 * steps + 40,
        wait_s=np.ones(steps),
        step_s=np.full(steps, 2.0),
        compute_s=np.ones(steps),
        left_out_steps=2,
    )
    return replace(times, **changes)


DATA = DataSummary(samples=50, bytes=5_000_000, classes=2, files=())


def test_mb_per_s_are_of_stored_bytes() -> None:
    """MB/s are samples/s times the mean stored size."""
    metrics = loop_metrics(loop(), DATA, "steady")
    assert metrics["samples_per_s"] == 10
    assert metrics["mb_per_s"] == 10 * 100_000 / 1e6
    assert not {"objects", "mean_object_bytes"} & set(metrics)
    in_shards = loop_metrics(loop(), replace(DATA, objects=4), "steady")
    assert (in_shards["objects"], in_shards["mean_object_bytes"]) == (4, 1_250_000)


def test_the_balance_of_a_loop() -> None:
    """Fetched samples and bytes have a balance; a loader that does not count has none."""
    metrics = loop_metrics(loop(arrived_samples=1_900, arrived_bytes=10**8), DATA, "steady")
    assert (metrics["fetched_samples"], metrics["fetched_bytes"]) == (1_900, 10**8)
    assert metrics["balance"] == 0.95
    unknown = loop_metrics(loop(), DATA, "epochs")
    assert not {"fetched_samples", "fetched_bytes", "balance"} & set(unknown)


def test_dropped_samples_are_in_the_balance_of_whole_epochs() -> None:
    """Dropped samples were fetched, so the balance contains them."""
    arrived = {"arrived_samples": 250, "arrived_bytes": 1}
    times = loop(10, epoch_first_steps=(0,), dropped_samples=50, **arrived)
    metrics = loop_metrics(times, DATA, "epochs")
    assert (metrics["balance"], metrics["dropped_samples"]) == (1, 50)


def test_starts_of_epochs_are_figures_of_their_own() -> None:
    """The first start is the time to the first batch, and quantiles leave out the others."""
    waits = np.ones(100)
    waits[[0, 40, 80]] = (50.0, 20.0, 30.0)
    metrics = loop_metrics(loop(wait_s=waits, epoch_first_steps=(0, 40, 80)), None, "epochs")
    assert metrics["epoch_start_s"] == 25
    assert metrics["epoch_start_share"] == 0.5
    assert metrics["batch_wait_s_p50"] == 1
    steady = loop_metrics(loop(), None, "steady")
    assert steady["epoch_start_share"] == 0
    assert "epoch_start_s" not in steady


def test_several_processes_have_the_figures_of_one_process() -> None:
    """Starts of epochs, quantiles of waits and the cost of timing do not depend on the number."""
    epochs = []
    for number in range(3):
        waits = np.full(50, 0.5)
        waits[0] = 1.5 if number else 2.0
        requested_s = 100.0 * number
        times = loop(50, wait_s=waits, begun_s=requested_s, requested_s=requested_s)
        epochs.append(replace(times, epoch_first_steps=(0,), left_out_steps=0))
    figures = []
    for timings in (combine_epochs(epochs), *(combine_processes([epochs] * n)[0] for n in (1, 3))):
        harness = harness_metrics("raw", "null", TickingClock(), timings)
        metrics = {**loop_metrics(timings, None, "epochs"), **harness}
        shown = ("epoch_start_s", "epoch_start_share", "batch_wait_s_p90", "harness_share")
        figures.append({name: metrics[name] for name in shown})
    of_one_process = figures[0]
    assert of_one_process["epoch_start_s"] == 1.5
    assert of_one_process["epoch_start_share"] == 5 / 300
    assert of_one_process["batch_wait_s_p90"] == 0.5
    assert figures[1:] == [pytest.approx(of_one_process)] * 2


def test_a_start_outside_the_common_time_does_not_count() -> None:
    """The first start of a process that began sooner is left out, and later starts stay."""
    begins = {"epoch_first_steps": (0,), "left_out_steps": 0}
    early = [loop(20, begun_s=0.0, **begins), loop(20, begun_s=40.0, **begins)]
    late = [loop(35, begun_s=10.0)]
    metrics = loop_metrics(combine_processes([early, late])[0], None, "epochs and steady")
    assert metrics["epoch_start_share"] == 1 / (2 * 70)
    assert metrics["epoch_start_s"] == 1


def test_a_range_has_no_rate() -> None:
    """Both bounds replace the rate, and MB/s are left out."""
    metrics = loop_metrics(loop(), DATA, "bounds", (7.0, 10.0))
    assert (metrics["samples_per_s_low"], metrics["samples_per_s_high"]) == (7.0, 10.0)
    assert not {"samples_per_s", "mb_per_s"} & set(metrics)
    assert metrics["rate_rule"] == "bounds"
    agreed = loop_metrics(loop(), DATA, "bounds")
    assert agreed["samples_per_s"] == 10
    assert "samples_per_s_low" not in agreed


def test_the_cost_of_timing_is_a_share_of_the_steps() -> None:
    """The share is left out if the harness alone is measured."""
    times, clock = loop(5), TickingClock()
    metrics = harness_metrics("raw", "null", clock, times)
    assert metrics["harness_share"] == metrics["harness_step_s"] * 5 / 10 > 0
    assert "harness_share" in harness_metrics("mock", "paced", clock, times)
    assert list(harness_metrics("null", "null", clock, times)) == ["harness_step_s"]


def test_a_record_is_of_all_of_an_epoch() -> None:
    """The record has the first batch and the state of the page cache."""
    content = EpochRecord(1, 30, 5.0, 2.0, Cold("cold", "warm", 0.4, 0.6, why="so")).as_json()
    assert content == {
        "number": 1,
        "samples": 30,
        "seconds": 5.0,
        "samples_per_s": 6.0,
        "time_to_first_batch_s": 2.0,
        "asked": "cold",
        "resident_before": 0.4,
        "physical_ratio": 0.6,
        "label": "warm",
        "why": "so",
    }
    read = EpochRecord(0, 1, 0.0, 0.0, Cold("cold", "cold", amplification=1.5)).as_json()
    assert (read["amplification"], read["samples_per_s"]) == (1.5, 0.0)
    assert "label" not in EpochRecord(0, 1, 1.0, 0.5, None).as_json()


part_s = st.none() | st.floats(0, 1e5)


def split(total_s: float, parts: FirstBatch | None) -> dict[str, float]:
    """Return the metrics of a first batch with these parts."""
    loader = TellingLoader(None, LoaderSettings(), VirtualClock())
    loader.parts = parts
    return first_batch_metrics(loader, total_s)


@given(st.builds(FirstBatch, part_s, part_s, part_s, part_s), st.floats(0, 1e5))
def test_the_known_parts_and_the_rest_add_up(parts: FirstBatch, rest_s: float) -> None:
    """The known parts and the rest are the whole time, and unknown parts are left out."""
    known_parts = {name: value for name, value in parts._asdict().items() if value is not None}
    total_s = sum(known_parts.values()) + rest_s
    split_times = split(total_s, parts)
    if not known_parts:
        assert split_times == split(total_s, None) == {}
        return
    assert split_times.pop("first_batch_rest_s") == pytest.approx(rest_s, abs=1e-6)
    assert split_times == {f"first_batch_{name}": value for name, value in known_parts.items()}


def test_a_loader_need_not_tell() -> None:
    """A loader without parts has no metrics of them, and the rest is never negative."""
    assert first_batch_metrics(SlowLoader(None, LoaderSettings(), VirtualClock()), 1.0) == {}
    assert split(1.0, FirstBatch(listing_s=1.5))["first_batch_rest_s"] == 0.0


class TickingClock(VirtualClock):
    """A clock that a look advances by a microsecond."""

    def now_s(self) -> float:
        """Advance the clock and return its time."""
        self.sleep(1e-6)
        return super().now_s()


def test_timing_a_step_costs_its_looks_at_the_clock() -> None:
    """The loop reads the clock three times in a step, and progress reads it once."""
    assert 3.9e-6 < step_cost_s(TickingClock()) < 4.1e-6
    assert step_cost_s(VirtualClock()) == 0
