"""PURE. Summary entries for storage and loaders, each measured alone."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from iobench.access import MODES
from iobench.analysis.repeats import (
    Repeats,
    arrival_rate,
    by_settings,
    cold_label,
    estimate_as_dict,
    estimate_of,
    paired_values,
)
from iobench.stats import ratio
from iobench.trial import Params, Trial

_LOADER = (
    *("samples_per_s", "samples_per_s_low", "samples_per_s_high", "mb_per_s", "balance"),
    *("time_to_first_batch_s", "epoch_start_s", "epoch_start_share"),
    *("memory_bytes", "cpu_s_per_1000_samples"),
)
_ACCESS = (
    *("time_to_first_batch_s", "first_epoch_s", "steady_samples_per_s", "samples_per_s"),
    *("disk_needed_bytes", "memory_needed_bytes", "shuffle_buffer_bytes"),
    *("store_read_bytes", "store_requests", "whole_epochs", "data_bytes", "memory_limit_bytes"),
)
_WATCHED = (
    *("samples_per_s", "samples_per_s_low", "samples_per_s_high", "samples"),
    *("ceiling_samples_per_s", "ceiling_samples_per_s_low", "ceiling_samples_per_s_high"),
    *("loss_share", "loss_share_low", "loss_share_high"),
    *("wait_share", "device_wait_share", "time_to_first_batch_s", "first_step_s"),
    *("epoch_start_s", "epoch_start_share", "device_epoch_start_share"),
    *("seconds", "steps", "epochs"),
)
_PEAK_OF = ("target", "operation", "pattern", "cache")


def loaders(trials: Iterable[Trial]) -> list[dict[str, Any]]:
    """One entry a point of a loader alone: params, rates, first batch, memory, CPU time."""
    return _entries(trials, "loader", _LOADER)


def layouts(trials: Iterable[Trial]) -> list[dict[str, Any]]:
    """Whole shards, records by offset, small files: samples/s and MB/s."""
    return _entries(trials, "layout", ("samples_per_s", "mb_per_s"))


def watched(trials: Iterable[Trial]) -> list[dict[str, Any]]:
    """One entry a watched loop, the longest first."""

    def seconds(entry: dict[str, Any]) -> float:
        return float(entry["seconds"]["median"]) if entry["seconds"] else 0.0

    return sorted(_entries(trials, "watch", _WATCHED), key=seconds, reverse=True)


def access_modes(trials: Sequence[Trial]) -> list[dict[str, Any]]:
    """One entry a point of a loader or a loop that has an access mode."""
    entries = []
    for kind in ("loader", "train"):
        entries += [{**entry, "kind": kind} for entry in _entries(trials, kind, _ACCESS)]
    return [entry for entry in entries if entry.get("access") in MODES]


def disks(trials: Iterable[Trial]) -> list[dict[str, Any]]:
    """The best MB/s of each target, by engine, operation, pattern, cache and label.

    ``arrived_mb_per_s`` of a read is what the disk delivered, read-ahead included.
    """
    best: dict[tuple[str, ...], dict[str, Any]] = {}
    for params, repeats in by_settings(trials, "disk"):
        rate = estimate_of(repeats, "mb_per_s")
        if rate is None:
            continue
        entry = {**params, "label": cold_label(repeats), "mb_per_s": estimate_as_dict(rate)}
        if params["operation"] == "read":
            entry["arrived_mb_per_s"] = estimate_as_dict(arrival_rate(repeats))
        key = (*(entry[name] for name in _PEAK_OF), entry.get("engine", ""), entry["label"])
        if key not in best or rate.median > best[key]["mb_per_s"]["median"]:
            best[key] = entry
    return list(best.values())


def object_stores(trials: Iterable[Trial]) -> list[dict[str, Any]]:
    """The best rate of each store, client and operation, and what is enough for 95 % of it.

    ``object_bytes_95`` is the smallest size that reaches 95 % of the best rate of its sweep, at
    ``at_connections``; ``connections_95`` the fewest connections that do, at ``at_object_bytes``.
    Each is None if only the last point of the sweep does: the rate may still be rising.
    """
    groups: dict[tuple[str, ...], dict[tuple[int, int], Repeats]] = {}
    for params, repeats in by_settings(trials, "object"):
        if estimate_of(repeats, "mb_per_s"):
            key = (params["store"], params["client"], params["operation"])
            place = (params["object_bytes"], params["connections"])
            groups.setdefault(key, {})[place] = repeats
    found = []
    for (store, client, operation), points in groups.items():
        rates = {place: estimate_of(repeats, "mb_per_s") for place, repeats in points.items()}
        medians = {place: rate.median for place, rate in sorted(rates.items()) if rate}
        best = max(medians, key=lambda place: medians[place])
        object_bytes_95, at_connections = _enough(medians, 0)
        connections_95, at_object_bytes = _enough(medians, 1)
        found.append(
            {
                "store": store,
                "client": client,
                "operation": operation,
                "peak_mb_per_s": medians[best],
                "object_bytes": best[0],
                "connections": best[1],
                "object_bytes_95": object_bytes_95,
                "at_connections": at_connections,
                "connections_95": connections_95,
                "at_object_bytes": at_object_bytes,
                "mb_per_s": estimate_as_dict(rates[best]),
                "cpu_s_per_gb": estimate_as_dict(estimate_of(points[best], "cpu_s_per_gb")),
            }
        )
    return found


def _enough(rates: Mapping[tuple[int, int], float], axis: int) -> tuple[int | None, int]:
    """The first place on an axis that reaches 95 % of its sweep, and the sweep's other place."""
    at = Counter(place[1 - axis] for place in rates).most_common(1)[0][0]
    sweep = {place[axis]: rate for place, rate in rates.items() if place[1 - axis] == at}
    first = min(place for place, rate in sweep.items() if rate >= 0.95 * max(sweep.values()))
    return (first if first < max(sweep) else None), at


def shared(trials: Iterable[Trial]) -> list[dict[str, Any]]:
    """Several loader processes beside one: an entry a number of processes.

    ``efficiency`` is total(n) / (n total(1)) within repeats, as of any parallel program (Grama et
    al., "Introduction to Parallel Computing", 2003, chapter 5).
    """
    groups: dict[str, dict[int, tuple[Params, Repeats]]] = {}
    for params, repeats in by_settings(trials, "loader"):
        alike = {key: value for key, value in params.items() if key != "processes"}
        by_count = groups.setdefault(json.dumps(alike, sort_keys=True), {})
        by_count[int(params.get("processes", 1))] = (alike, repeats)
    found = []
    for by_count in groups.values():
        for count in sorted(by_count) if 1 in by_count and len(by_count) > 1 else ():
            params, several = by_count[count]
            pairs = paired_values(several, by_count[1][1], "samples_per_s")
            usable = [pair for pair in pairs if min(pair) > 0]
            efficiency = None
            if usable:
                efficiency = ratio([a for a, _ in usable], [count * b for _, b in usable])
            found.append(
                {
                    **params,
                    "processes": count,
                    "samples_per_s": estimate_as_dict(estimate_of(several, "samples_per_s")),
                    "mb_per_s": estimate_as_dict(estimate_of(several, "mb_per_s")),
                    "efficiency": estimate_as_dict(efficiency),
                    "evenness": estimate_as_dict(estimate_of(several, "process_evenness")),
                }
            )
    return found


def _entries(trials: Iterable[Trial], kind: str, figures: Sequence[str]) -> list[dict[str, Any]]:
    """One entry a point: its params, what the cache held, and figures."""
    return [
        {
            **params,
            "label": cold_label(repeats),
            **{name: estimate_as_dict(estimate_of(repeats, name)) for name in figures},
        }
        for params, repeats in by_settings(trials, kind)
    ]
