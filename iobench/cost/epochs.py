"""PURE. An epoch in dollars: the hours that the device works, those that it waits, requests,
storage. Parts whose price nobody told are None, and the sum is without them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from iobench.cost.prices import Known
from iobench.cost.rates import Rate

PARTS = ("busy_usd", "idle_usd", "requests_usd", "storage_usd")


def epoch(
    rate: Rate, consumes: float | None, samples: float, epochs: int, prices: Known
) -> dict[str, Any]:
    """Of ``samples`` at a rate; ``consumes`` is what the device could take.

    Without ``consumes`` all hours are ``busy``: that it waits was not measured. ``without`` names
    the parts that are in no sum. Storage is kept while training lasts.
    """
    hours = samples / rate.samples_per_s / 3600
    busy = min(hours, samples / consumes / 3600) if consumes else hours
    idle = hours - busy
    gets = _gets(rate, samples)
    requests = 0.0 if rate.side == "disk" else None if gets is None else prices.requests(gets=gets)
    parts = {
        "busy_usd": prices.hours(busy),
        "idle_usd": prices.hours(idle),
        "requests_usd": requests,
        "storage_usd": prices.stored(rate.side, samples * rate.sample_bytes, hours),
    }
    told = [value for value in parts.values() if value is not None]
    total = sum(told) if prices.hour_usd is not None else None
    return {
        "data": f"{rate.form}@{'s3' if rate.side == 'store' else 'disk'}",
        "label": rate.label,
        "basis": rate.basis,
        "samples_per_s": rate.samples_per_s,
        "hours": hours,
        "busy_hours": busy,
        "idle_hours": idle,
        "idle_known": consumes is not None,
        "gets": gets if rate.side == "store" else 0.0,
        "stored_bytes": samples * rate.sample_bytes,
        **parts,
        "usd": total,
        "usd_to_epochs": None if total is None else total * epochs,
        "without": [key.removesuffix("_usd") for key, value in parts.items() if value is None],
    }


def _gets(rate: Rate, samples: float) -> float | None:
    """One a sample, or one an object where whole ones are read; None where nobody counted them."""
    if rate.by_sample:
        return samples
    return None if rate.objects is None else samples * rate.objects


def worded(row: Mapping[str, Any]) -> str:
    """``shards@disk, cold``."""
    return ", ".join(filter(None, (str(row["data"]), str(row["label"]))))
