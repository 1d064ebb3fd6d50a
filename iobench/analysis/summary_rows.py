"""PURE. Rows of the summary for storage and loaders, each measured without training."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from iobench.analysis.repeats import (
    Repeats,
    arrival_rate,
    by_settings,
    cold_label,
    estimate_as_dict,
    estimate_of,
    paired_values,
)
from iobench.loaders.access import MODES
from iobench.results.statistics import Estimate, ratio
from iobench.results.trial import Params, Trial

# The metrics in the rows of each table.
_LOADER_METRICS = (
    "samples_per_s",
    "samples_per_s_low",
    "samples_per_s_high",
    "mb_per_s",
    "balance",
    "time_to_first_batch_s",
    "epoch_start_s",
    "epoch_start_share",
    "memory_bytes",
    "cpu_s_per_1000_samples",
)
_LAYOUT_METRICS = ("samples_per_s", "mb_per_s")
_ACCESS_METRICS = (
    "time_to_first_batch_s",
    "first_epoch_s",
    "steady_samples_per_s",
    "samples_per_s",
    "disk_needed_bytes",
    "memory_needed_bytes",
    "shuffle_buffer_bytes",
    "store_read_bytes",
    "store_requests",
    "whole_epochs",
    "data_bytes",
    "memory_limit_bytes",
)
_WATCHED_METRICS = (
    "samples_per_s",
    "samples_per_s_low",
    "samples_per_s_high",
    "samples",
    "ceiling_samples_per_s",
    "ceiling_samples_per_s_low",
    "ceiling_samples_per_s_high",
    "loss_share",
    "loss_share_low",
    "loss_share_high",
    "wait_share",
    "device_wait_share",
    "time_to_first_batch_s",
    "first_step_s",
    "epoch_start_s",
    "epoch_start_share",
    "device_epoch_start_share",
    "seconds",
    "steps",
    "epochs",
)
_NEAR_PEAK = 0.95
"""A rate of at least this share of the best rate counts as equally good."""


@dataclass(frozen=True, slots=True)
class SettingRow:
    """The figures of one setting.

    Attributes:
        kind: the kind of its trials.
        params: the parameters of its trials.
        label: the proved state of the page cache, such as ``cold``.
        figures: the estimates by the names of their metrics; None for a metric without values.
    """

    kind: str
    params: Params
    label: str
    figures: Mapping[str, Estimate | None]

    def median(self, metric: str) -> float | None:
        """Return the median of a figure; None if it was not measured."""
        figure = self.figures.get(metric)
        return figure.median if figure is not None else None

    def as_dict(self) -> dict[str, Any]:
        """Return the row as ``result.json`` stores it."""
        figures = {name: estimate_as_dict(figure) for name, figure in self.figures.items()}
        return {**self.params, "label": self.label, **figures}


@dataclass(frozen=True, slots=True)
class DiskRow:
    """The best rate of a disk for one operation, pattern and state of the cache.

    Attributes:
        params: the parameters of its trials.
        label: the proved state of the page cache, such as ``cold``.
        mb_per_s: the rate of the probe.
        arrived_mb_per_s: the rate that the disk delivered, including what the kernel read ahead;
            None for a write.
    """

    params: Params
    label: str
    mb_per_s: Estimate
    arrived_mb_per_s: Estimate | None

    def as_dict(self) -> dict[str, Any]:
        """Return the row as ``result.json`` stores it."""
        row = {**self.params, "label": self.label, "mb_per_s": estimate_as_dict(self.mb_per_s)}
        if self.params["operation"] == "read":
            row["arrived_mb_per_s"] = estimate_as_dict(self.arrived_mb_per_s)
        return row


@dataclass(frozen=True, slots=True)
class StoreRow:
    """The best rate of a store for one client and operation.

    A sweep varies the size of objects, or the number of connections, and keeps the other one fixed.
    A field with ``95`` in its name is None if only the last point of the sweep reaches 95 % of its
    best rate, because the rate may then still be rising.

    Attributes:
        store: the label of the store.
        client: the client that made the requests.
        operation: the operation, such as ``get``.
        object_bytes: the size of objects at the best rate.
        connections: the number of connections at the best rate.
        mb_per_s: the best rate.
        object_bytes_95: the smallest object size that reaches 95 % of the best rate; None if only
            the largest size does.
        at_connections: the fixed number of connections in the sweep of object sizes.
        connections_95: the fewest connections that reach 95 % of the best rate; None if only the
            largest number does.
        at_object_bytes: the fixed object size in the sweep of connections.
        cpu_s_per_gb: CPU time for each GB at the best rate.
    """

    store: str
    client: str
    operation: str
    object_bytes: int
    connections: int
    mb_per_s: Estimate
    object_bytes_95: int | None
    at_connections: int
    connections_95: int | None
    at_object_bytes: int
    cpu_s_per_gb: Estimate | None

    def as_dict(self) -> dict[str, Any]:
        """Return the row as ``result.json`` stores it."""
        return {
            "store": self.store,
            "client": self.client,
            "operation": self.operation,
            "peak_mb_per_s": self.mb_per_s.median,
            "object_bytes": self.object_bytes,
            "connections": self.connections,
            "object_bytes_95": self.object_bytes_95,
            "at_connections": self.at_connections,
            "connections_95": self.connections_95,
            "at_object_bytes": self.at_object_bytes,
            "mb_per_s": estimate_as_dict(self.mb_per_s),
            "cpu_s_per_gb": estimate_as_dict(self.cpu_s_per_gb),
        }


@dataclass(frozen=True, slots=True)
class ProcessesRow:
    """Several processes of a loader that run at the same time.

    Attributes:
        params: the parameters of the trials, without the number of processes.
        processes: the number of processes.
        samples_per_s: the rate of all processes together.
        mb_per_s: the same in MB/s.
        efficiency: the rate of n processes / (n times the rate of one process), both from the same
            round (Grama et al., "Introduction to Parallel Computing", 2003, chapter 5).
        evenness: the rate of the slowest process / the rate of the fastest process.
    """

    params: Params
    processes: int
    samples_per_s: Estimate | None
    mb_per_s: Estimate | None
    efficiency: Estimate | None
    evenness: Estimate | None

    def as_dict(self) -> dict[str, Any]:
        """Return the row as ``result.json`` stores it."""
        return {
            **self.params,
            "processes": self.processes,
            "samples_per_s": estimate_as_dict(self.samples_per_s),
            "mb_per_s": estimate_as_dict(self.mb_per_s),
            "efficiency": estimate_as_dict(self.efficiency),
            "evenness": estimate_as_dict(self.evenness),
        }


def loader_rows(trials: Iterable[Trial]) -> list[SettingRow]:
    """Return a row for each setting of a loader without training."""
    return _setting_rows(trials, "loader", _LOADER_METRICS)


def layout_rows(trials: Iterable[Trial]) -> list[SettingRow]:
    """Return a row for each way to read the data: shards, records by offset, small files."""
    return _setting_rows(trials, "layout", _LAYOUT_METRICS)


def watched_rows(trials: Iterable[Trial]) -> list[SettingRow]:
    """Return a row for each watched loop, the longest first."""

    def seconds(row: SettingRow) -> float:
        return row.median("seconds") or 0.0

    rows = _setting_rows(trials, "watch", _WATCHED_METRICS)
    return sorted(rows, key=seconds, reverse=True)


def access_rows(trials: Sequence[Trial]) -> list[SettingRow]:
    """Return a row for each setting of a loader or a loop that has an access mode."""
    rows = _setting_rows(trials, "loader", _ACCESS_METRICS)
    rows += _setting_rows(trials, "train", _ACCESS_METRICS)
    return [row for row in rows if row.params.get("access") in MODES]


def disk_rows(trials: Iterable[Trial]) -> list[DiskRow]:
    """Return the best rate of each target, by engine, operation, pattern, cache and label."""
    best: dict[tuple[str, ...], DiskRow] = {}
    for params, repeats in by_settings(trials, "disk"):
        rate = estimate_of(repeats, "mb_per_s")
        if rate is None:
            continue
        label = cold_label(repeats)
        arrived = arrival_rate(repeats) if params["operation"] == "read" else None
        key = (
            params["target"],
            params["operation"],
            params["pattern"],
            params["cache"],
            params.get("engine", ""),
            label,
        )
        if key not in best or rate.median > best[key].mb_per_s.median:
            best[key] = DiskRow(params, label, rate, arrived)
    return list(best.values())


def store_rows(trials: Iterable[Trial]) -> list[StoreRow]:
    """Return a row for each store, client and operation that was probed."""
    groups: dict[tuple[str, str, str], dict[_Point, Repeats]] = {}
    for params, repeats in by_settings(trials, "object"):
        if estimate_of(repeats, "mb_per_s"):
            key = (params["store"], params["client"], params["operation"])
            point = _Point(params["object_bytes"], params["connections"])
            groups.setdefault(key, {})[point] = repeats
    rows = []
    for (store, client, operation), points in groups.items():
        rows.append(_store_row(store, client, operation, points))
    return rows


def _store_row(
    store: str, client: str, operation: str, points: Mapping[_Point, Repeats]
) -> StoreRow:
    """Return the row of one store, client and operation.

    Args:
        store: the label of the store.
        client: the client.
        operation: the operation.
        points: the repeats of each point, all of which have a rate.
    """
    rates: dict[_Point, Estimate] = {}
    for point in sorted(points):
        rate = estimate_of(points[point], "mb_per_s")
        if rate is not None:
            rates[point] = rate
    best = max(rates, key=lambda point: rates[point].median)
    sizes, connections = _sweep_of_sizes(rates), _sweep_of_connections(rates)
    return StoreRow(
        store=store,
        client=client,
        operation=operation,
        object_bytes=best.object_bytes,
        connections=best.connections,
        mb_per_s=rates[best],
        object_bytes_95=sizes.smallest_near_peak(),
        at_connections=sizes.fixed,
        connections_95=connections.smallest_near_peak(),
        at_object_bytes=connections.fixed,
        cpu_s_per_gb=estimate_of(points[best], "cpu_s_per_gb"),
    )


def processes_rows(trials: Iterable[Trial]) -> list[ProcessesRow]:
    """Return a row for each number of loader processes, where one process was also measured."""
    groups: dict[str, dict[int, tuple[Params, Repeats]]] = {}
    for params, repeats in by_settings(trials, "loader"):
        other_params = {key: value for key, value in params.items() if key != "processes"}
        by_count = groups.setdefault(json.dumps(other_params, sort_keys=True), {})
        by_count[int(params.get("processes", 1))] = (other_params, repeats)
    rows: list[ProcessesRow] = []
    for by_count in groups.values():
        if 1 in by_count and len(by_count) > 1:
            rows.extend(_processes_rows_of(by_count))
    return rows


def _processes_rows_of(
    by_count: Mapping[int, tuple[Params, Repeats]],
) -> Iterator[ProcessesRow]:
    """Yield the rows of one setting, the smallest number of processes first.

    Args:
        by_count: the parameters and repeats by number of processes. 1 is one of the numbers.
    """
    _, single = by_count[1]
    for processes in sorted(by_count):
        params, repeats = by_count[processes]
        yield ProcessesRow(
            params=params,
            processes=processes,
            samples_per_s=estimate_of(repeats, "samples_per_s"),
            mb_per_s=estimate_of(repeats, "mb_per_s"),
            efficiency=_efficiency(processes, repeats, single),
            evenness=estimate_of(repeats, "process_evenness"),
        )


def _efficiency(processes: int, repeats: Repeats, single: Repeats) -> Estimate | None:
    """Return the rate of n processes / (n times the rate of one); None without common rounds."""
    rates, ideal_rates = [], []
    for rate, single_rate in paired_values(repeats, single, "samples_per_s"):
        if rate > 0 and single_rate > 0:
            rates.append(rate)
            ideal_rates.append(processes * single_rate)
    return ratio(rates, ideal_rates) if rates else None


@dataclass(frozen=True, slots=True, order=True)
class _Point:
    """The settings of one point of the object-store probe."""

    object_bytes: int
    connections: int


@dataclass(frozen=True, slots=True)
class _Sweep:
    """The rates by one setting of the probe, while the other setting is fixed."""

    fixed: int
    mb_per_s: Mapping[int, float]

    def smallest_near_peak(self) -> int | None:
        """Return the smallest setting that reaches 95 % of the best rate.

        None if only the largest setting does.
        """
        enough_mb_per_s = _NEAR_PEAK * max(self.mb_per_s.values())
        minimum = min(value for value, rate in self.mb_per_s.items() if rate >= enough_mb_per_s)
        return minimum if minimum < max(self.mb_per_s) else None


def _sweep_of_sizes(rates: Mapping[_Point, Estimate]) -> _Sweep:
    """Return rates by size of objects, with the number of connections that most points have."""
    connections = _most_common(point.connections for point in rates)
    mb_per_s = {}
    for point, rate in rates.items():
        if point.connections == connections:
            mb_per_s[point.object_bytes] = rate.median
    return _Sweep(connections, mb_per_s)


def _sweep_of_connections(rates: Mapping[_Point, Estimate]) -> _Sweep:
    """Return rates by number of connections, with the size of objects that most points have."""
    object_bytes = _most_common(point.object_bytes for point in rates)
    mb_per_s = {}
    for point, rate in rates.items():
        if point.object_bytes == object_bytes:
            mb_per_s[point.connections] = rate.median
    return _Sweep(object_bytes, mb_per_s)


def _most_common(values: Iterable[int]) -> int:
    """Return the value that occurs most often. If several do, return the first of them."""
    ((value, _),) = Counter(values).most_common(1)
    return value


def _setting_rows(trials: Iterable[Trial], kind: str, metrics: Sequence[str]) -> list[SettingRow]:
    """Return a row for each setting of a kind of trials."""
    rows = []
    for params, repeats in by_settings(trials, kind):
        figures = {metric: estimate_of(repeats, metric) for metric in metrics}
        rows.append(SettingRow(kind, params, cold_label(repeats), figures))
    return rows
