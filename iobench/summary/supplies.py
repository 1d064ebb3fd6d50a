"""PURE. What storage and loaders supply, each measured apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from iobench.probes.object_store.peak import Point, find_peak
from iobench.summary.points import by_point, cold_label, figure
from iobench.trial import Trial


def loaders(trials: Iterable[Trial]) -> list[dict[str, Any]]:
    """One entry a point: its params, rates, time to first batch, memory and processor time."""
    return [
        {
            **params,
            "label": cold_label(repeats),
            "samples_per_s": figure(repeats, "samples_per_s"),
            "mb_per_s": figure(repeats, "mb_per_s"),
            "time_to_first_batch_s": figure(repeats, "time_to_first_batch_s"),
            "memory_bytes": figure(repeats, "memory_bytes"),
            "cpu_s_per_1000_samples": figure(repeats, "cpu_s_per_1000_samples"),
        }
        for params, repeats in by_point(trials, "loader")
    ]


def layouts(trials: Iterable[Trial]) -> list[dict[str, Any]]:
    """Whole shards, records by offset, small files: samples/s and MB/s."""
    return [
        {
            **params,
            "label": cold_label(repeats),
            "samples_per_s": figure(repeats, "samples_per_s"),
            "mb_per_s": figure(repeats, "mb_per_s"),
        }
        for params, repeats in by_point(trials, "layout")
    ]


def disks(trials: Iterable[Trial]) -> list[dict[str, Any]]:
    """The best MB/s of each target, by engine, operation, pattern, cache and what was shown."""
    best: dict[tuple[str, ...], dict[str, Any]] = {}
    for params, repeats in by_point(trials, "disk"):
        found = figure(repeats, "mb_per_s")
        label = cold_label(repeats)
        told = ("target", "operation", "pattern", "cache")
        key = (*(params[name] for name in told), params.get("engine", ""), label)
        if found and (key not in best or found["median"] > best[key]["mb_per_s"]["median"]):
            best[key] = {**params, "label": label, "mb_per_s": found}
    return list(best.values())


def object_stores(trials: Iterable[Trial]) -> list[dict[str, Any]]:
    """Peak of each store, client and operation, what reaches 95 % of it, and its processor time."""
    groups: dict[tuple[str, ...], dict[tuple[int, int], Sequence[Trial]]] = {}
    for params, repeats in by_point(trials, "object"):
        if figure(repeats, "mb_per_s"):
            key = tuple(params[name] for name in ("store", "client", "operation"))
            place = (params["object_bytes"], params["connections"])
            groups.setdefault(key, {})[place] = repeats
    return [_store(key, points) for key, points in groups.items()]


def _store(key: Sequence[str], points: Mapping[tuple[int, int], Sequence[Trial]]) -> dict[str, Any]:
    store, client, operation = key
    rates = {place: figure(repeats, "mb_per_s") for place, repeats in points.items()}
    peak = find_peak([Point(*place, rate["median"]) for place, rate in rates.items() if rate])
    best = (peak.object_bytes, peak.connections)
    return {
        "store": store,
        "client": client,
        "operation": operation,
        **asdict(peak),
        "mb_per_s": rates[best],
        "cpu_s_per_gb": figure(points[best], "cpu_s_per_gb"),
    }
