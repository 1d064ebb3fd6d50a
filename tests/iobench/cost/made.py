"""Runs whose costs are known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from iobench.result import Result
from iobench.trial import Trial
from tests.iobench.summary.made import COLD, REMOTE, WARM, loop, one, result

PRICES = {
    "file": "p.yaml",
    "currency": "USD",
    "s3": {"put_per_1000": 5.0, "get_per_1000": 0.4, "gb_month": 0.02},
    "s3_about": "us-east-1, as of 2026",
    "instance_type": "x1.large",
    "instance_usd_per_h": 10.0,
    "instance_about": "x1.large in us-east-1, as of 2026",
}
ASKED: dict[str, Any] = {"epochs": 90, "samples": 3_600_000, "disk_usd_per_gb_month": 0.0}


def trained(
    source: str, rate: float, data: str = "shards@disk", group: str = "g", **params: Any
) -> list[Trial]:
    """A training loop at so many samples/s of 100 kB, shards of 1,000 of them."""
    figures: dict[str, Any] = {}
    if source != "synthetic":
        figures = {"mb_per_s": rate * 0.1, "objects": 100, "mean_object_bytes": 1e8}
    trials = loop(source, [100 / rate], group, **figures)
    if source == "store":
        data = data.replace("@disk", "@s3")
    told = {"loader": "torch-iterable", "data": "" if source == "synthetic" else data, **params}
    return [replace(trial, params={**trial.params, **told}) for trial in trials]


def loaded(rate: float, data: str, **params: Any) -> Trial:
    """A loader alone at so many samples/s of 100 kB."""
    told = {"loader": "torch-iterable", "data": data, "cache": "cold", **params}
    cold = REMOTE if data.endswith("@s3") else COLD if told["cache"] == "cold" else WARM
    figures: dict[str, Any] = {"objects": 100, "mean_object_bytes": 1e8}
    trial = one("loader", told, samples_per_s=rate, mb_per_s=rate * 0.1, **figures)
    return replace(trial, cold=cold)


def copying(mb_per_s: float) -> Trial:
    """GETs of whole objects."""
    params = {"store": "s3", "client": "boto3", "operation": "get", "object_bytes": 10**7}
    return one("object", {**params, "connections": 8}, mb_per_s=mb_per_s)


def run(*trials: Trial, amazon: bool = True, **references: Any) -> Result:
    """Of them, with prices, the data on S3."""
    kind = "aws-s3" if amazon else "own-server"
    environment = {"stores": {"data": {"kind": kind}}}
    known = {"prices": PRICES, **references}
    return replace(result(trials), environment=environment, references=known)
