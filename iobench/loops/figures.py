"""PURE. What loops of both kinds tell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from iobench.loaders.own import SYNTHETIC
from iobench.loops.drive import LoopTimes
from iobench.stats import quantiles
from iobench.stored import Stored


def loop_metrics(times: LoopTimes, data: Stored | None) -> dict[str, Any]:
    """Rates, waits and the first batch. MB/s are of stored bytes, objects files or shards."""
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
            metrics |= {"objects": data.objects, "mean_object_bytes": data.object_bytes}
    metrics |= {f"batch_wait_s_{name}": value for name, value in quantiles(times.wait_s).items()}
    return metrics


def harness_metrics(
    params: Mapping[str, Any], step_cost_s: float, times: LoopTimes
) -> dict[str, Any]:
    """What timing a step costs, and its share of the steps that were timed.

    No share where neither loader nor consumer does anything: there the harness itself is measured.
    """
    metrics: dict[str, Any] = {"harness_step_s": step_cost_s}
    idle = params["loader"] in SYNTHETIC and params.get("consumer", "null") == "null"
    if not idle and times.seconds > 0:
        metrics["harness_share"] = step_cost_s * len(times.step_s) / times.seconds
    return metrics
