"""What a loop's timings tell."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.clock import VirtualClock
from iobench.loaders import FirstBatch, LoaderSettings
from iobench.loops.drive import LoopTimes
from iobench.loops.figures import (
    epoch_record,
    first_batch,
    harness_metrics,
    loop_metrics,
    step_cost_s,
)
from iobench.stored import Stored
from iobench.trial import Cold
from tests.iobench.loops.fakes import SlowLoader, TellingLoader


def test_mb_per_s_are_of_stored_bytes() -> None:
    """Samples/s times the mean stored size."""
    times = LoopTimes(1, 0, 100, 110, 10, 1, (1.0,), (1.0,), (0.0,))
    data = Stored(samples=50, bytes=5_000_000, classes=2, files=())
    metrics = loop_metrics(times, data)
    assert metrics["mb_per_s"] == 10 * 100_000 / 1e6
    assert not {"objects", "mean_object_bytes"} & set(metrics)
    in_shards = loop_metrics(times, replace(data, objects=4))
    assert (in_shards["objects"], in_shards["mean_object_bytes"]) == (4, 1_250_000)


def test_what_timing_costs_is_a_share_of_the_steps() -> None:
    """None where nothing but the harness runs: there it is the measurement."""
    times = LoopTimes(1, 0, 100, 110, 10, 1, (1.0,) * 5, (2.0,) * 5, (0.0,) * 5)
    clock = TickingClock()
    found = harness_metrics("raw", "null", clock, times)
    assert found["harness_share"] == found["harness_step_s"] * 5 / 10 > 0
    assert "harness_share" in harness_metrics("mock", "paced", clock, times)
    assert list(harness_metrics("null", "null", clock, times)) == ["harness_step_s"]


def test_a_record_is_of_all_of_an_epoch() -> None:
    """Its first batch included, and what the cache did for it."""
    found = epoch_record(1, 30, 5.0, 2.0, Cold("cold", "warm", 0.4, 0.6, why="so"))
    assert found == {
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
    read = epoch_record(0, 1, 0.0, 0.0, Cold("cold", "cold", amplification=1.5))
    assert (read["amplification"], read["samples_per_s"]) == (1.5, 0.0)
    assert "label" not in epoch_record(0, 1, 1.0, 0.5, None)


part_s = st.none() | st.floats(0, 1e5)


def split(total_s: float, parts: FirstBatch | None) -> dict[str, float]:
    """Of a loader that tells these parts."""
    loader = TellingLoader(None, LoaderSettings(), VirtualClock())
    loader.parts = parts
    return first_batch(loader, total_s)


@given(st.builds(FirstBatch, part_s, part_s, part_s, part_s), st.floats(0, 1e5))
def test_what_is_told_and_the_rest_add_up(parts: FirstBatch, rest_s: float) -> None:
    """None is below 0; of what is not told nothing is said."""
    told = {name: value for name, value in parts._asdict().items() if value is not None}
    total_s = sum(told.values()) + rest_s
    found = split(total_s, parts)
    if not told:
        assert found == split(total_s, None) == {}
        return
    assert found.pop("first_batch_rest_s") == pytest.approx(rest_s, abs=1e-6)
    assert found == {f"first_batch_{name}": value for name, value in told.items()}


def test_a_loader_need_not_tell() -> None:
    """Of one that does not, nothing is said; more than all of the time leaves no rest."""
    assert first_batch(SlowLoader(None, LoaderSettings(), VirtualClock()), 1.0) == {}
    assert split(1.0, FirstBatch(listing_s=1.5))["first_batch_rest_s"] == 0.0


class TickingClock(VirtualClock):
    """Every look at it takes a microsecond."""

    def now_s(self) -> float:
        """And the time passes."""
        self.sleep(1e-6)
        return super().now_s()


def test_timing_a_step_costs_its_looks_at_the_clock() -> None:
    """Three in the loop and one for progress, on a clock that charges for each."""
    assert 3.9e-6 < step_cost_s(TickingClock()) < 4.1e-6
    assert step_cost_s(VirtualClock()) == 0
