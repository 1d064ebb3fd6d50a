"""Runs of a machine whose supplies are known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from iobench.result import Result
from iobench.trial import Cold, Trial
from tests.iobench.summary.made import loop, one, result


def loader(rate: float, *, repeat: int = 0, **params: Any) -> Trial:
    """From the page cache, samples of 50 kB."""
    told: dict[str, Any] = {"loader": "torch-map", "data": "shards@disk", "cache": "warm"}
    told |= {"workers": 2, "batch_size": 64, "prefetch": 2, "seconds": 5.0}
    figures = {"samples_per_s": rate, "mb_per_s": rate * 0.05}
    return replace(
        one("loader", {**told, **params}, repeat=repeat, **figures), cold=Cold("warm", "warm")
    )


def disk(mb_per_s: float) -> Trial:
    """Shown to come from the device."""
    params: dict[str, Any] = {
        "target": "disk",
        "operation": "read",
        "pattern": "sequential",
        "cache": "direct",
    }
    params |= {"block_bytes": 2**20, "parallelism": 4}
    return one("disk", params, mb_per_s=mb_per_s, cold=Cold("direct", "direct"))


def store(mb_per_s: float, connections: int = 10) -> Trial:
    """GETs of 10 MB."""
    params: dict[str, Any] = {
        "store": "s3",
        "client": "boto3",
        "operation": "get",
        "object_bytes": 10**7,
    }
    return one("object", {**params, "connections": connections}, mb_per_s=mb_per_s)


def run(*trials: Trial, **limits: Any) -> Result:
    """Of them, on a machine of which the config tells limits."""
    return result(trials, limits=limits)


def trained(rate: float, **metrics: Any) -> list[Trial]:
    """A training loop whose device consumes so many samples/s."""
    return loop("synthetic", [100 / rate], **metrics)
