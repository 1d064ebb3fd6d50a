"""PURE. What loops of both kinds tell."""

from __future__ import annotations

from typing import Any

from iobench.loops.drive import LoopTimes
from iobench.stats import quantiles
from iobench.stored import Stored


def loop_metrics(times: LoopTimes, data: Stored | None) -> dict[str, Any]:
    """Rates, waits and the first batch. MB/s are of stored bytes."""
    metrics: dict[str, Any] = {
        "samples_per_s": times.samples_per_s,
        "samples": times.samples,
        "seconds": times.seconds,
        "batches": len(times.wait_s),
        "left_out": times.left_out,
        "time_to_first_batch_s": times.time_to_first_batch_s,
    }
    if data is not None:
        metrics["mb_per_s"] = times.samples_per_s * data.sample_bytes / 1e6
        if data.object_bytes is not None:
            metrics["mean_object_bytes"] = data.object_bytes
    metrics |= {f"batch_wait_s_{name}": value for name, value in quantiles(times.wait_s).items()}
    return metrics
