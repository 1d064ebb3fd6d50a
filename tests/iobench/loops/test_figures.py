"""What a loop's times tell."""

from __future__ import annotations

from dataclasses import replace

from iobench.loops.drive import LoopTimes
from iobench.loops.figures import harness_metrics, loop_metrics
from iobench.stored import Stored


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
    assert harness_metrics({"loader": "raw"}, 1e-3, times) == {
        "harness_step_s": 1e-3,
        "harness_share": 5e-4,
    }
    assert "harness_share" in harness_metrics({"loader": "mock", "consumer": "paced"}, 1e-3, times)
    assert harness_metrics({"loader": "null"}, 1e-3, times) == {"harness_step_s": 1e-3}
