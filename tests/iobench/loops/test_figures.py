"""What a loop's times tell."""

from __future__ import annotations

from dataclasses import replace

from iobench.loops.drive import LoopTimes
from iobench.loops.figures import loop_metrics
from iobench.stored import Stored


def test_mb_per_s_are_of_stored_bytes() -> None:
    """Samples/s times the mean stored size."""
    times = LoopTimes(1, 0, 100, 110, 10, 1, (1.0,), (1.0,), (0.0,))
    data = Stored(samples=50, bytes=5_000_000, classes=2, files=())
    metrics = loop_metrics(times, data)
    assert metrics["mb_per_s"] == 10 * 100_000 / 1e6
    assert "mean_object_bytes" not in metrics
    in_shards = loop_metrics(times, replace(data, objects=4))
    assert in_shards["mean_object_bytes"] == 1_250_000
