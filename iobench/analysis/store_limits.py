"""PURE. What limits reads from an object store: its latency or its bandwidth.

A store is limited by latency where its rate grows with the number of connections or with the size
of the reads, and by bandwidth where the rate stays the same. The object-store probe measures both
sweeps. A loader is compared with the points that match its own connections and reads.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

from dataprep.adapters.records import RANGES_AT_ONCE
from dataprep.counted import counted
from dataprep.reading.read_ahead import WINDOW_BYTES, WINDOWS_AT_ONCE
from iobench.analysis.curve import at_workers
from iobench.analysis.points import by_point, figure
from iobench.data.settings import LOCAL
from iobench.numbers import size
from iobench.result import Result
from iobench.stats import Estimate
from iobench.trial import Params, Trial

Limit = Literal["latency", "bandwidth", "unclear"]

OWN_CLIENT = "boto3"
"""The client of dataprep's own reader."""
TO_MEASURE = "object_store.targets, .connections and .object_bytes"
"""Config keys of the probe that separates latency from bandwidth."""

_READS = ("get", "range_get")
_GROWS, _FLAT = 0.5, 0.2
"""Exponents of the rate by connections or by bytes: 1 is proportional, 0 is constant."""
_SMALLER = 0.5
"""Reads below this share of the smallest probed size are not like those of the probe."""


@dataclass(frozen=True, slots=True)
class StorePoint:
    """One point of the object-store probe: whole reads of one size."""

    object_bytes: int
    connections: int
    mb_per_s: Estimate


@dataclass(frozen=True, slots=True)
class StoreLimit:
    """The limit at a loader's connections and reads, with the figures that show it."""

    limit: Limit
    evidence: str


def connections_of(params: Params) -> int | None:
    """How many requests a loader has under way at a time; None for another package's loader.

    A sequential reader fetches windows of samples, each worker process some of them at once. Reads
    of single samples are as many as the batch has, up to a limit for each worker.
    """
    loader, workers = str(params.get("loader", "")), max(1, int(params.get("workers") or 0))
    if loader == "torch-iterable":
        return workers * WINDOWS_AT_ONCE
    if loader == "torch-map":
        return workers * min(RANGES_AT_ONCE, int(params.get("batch_size") or 1))
    if loader == "tf-data":
        return WINDOWS_AT_ONCE  # one reader, whatever the number of threads that decode
    if loader == "mxnet-record":
        return RANGES_AT_ONCE  # one part at a time is copied to a local file
    return workers if loader in ("raw", "torch-folder") else None


def read_bytes_of(params: Params, sample_bytes: float | None, object_bytes: float | None) -> float:
    """The bytes of one request of a loader, at most; infinite if unknown."""
    if params.get("loader") in ("torch-map", "torch-folder"):
        return sample_bytes or math.inf
    if params.get("loader") == "raw":
        return object_bytes or math.inf
    return min(WINDOW_BYTES, object_bytes or math.inf)


def of_data(result: Result, label: str) -> bool:
    """Whether the probed store called ``label`` is the one that holds the run's data."""
    probe = result.config.get("object_store") or {}
    data: Mapping[str, Any] = result.config.get("data") or {}
    target = next((t for t in probe.get("targets") or () if t.get("label", "s3") == label), None)
    if target is None:
        return False
    uri, endpoint_url = address_of_data(data)
    of_target = (target.get("store") or {}).get("endpoint_url")
    return _bucket(uri, endpoint_url) == _bucket(str(target.get("uri") or LOCAL), of_target)


def address_of_data(data: Mapping[str, Any]) -> tuple[str, str | None]:
    """URI and endpoint of the store that holds the data, from the section ``data`` of a config."""
    for key in ("shards", "source"):
        uri = str(data.get(key) or "")
        if "://" in uri:
            return uri, (data.get("store") or {}).get("endpoint_url")
    bucket = data.get("bucket") or {}
    return str(bucket.get("uri") or LOCAL), (bucket.get("store") or {}).get("endpoint_url")


def points_of(result: Result, trials: Sequence[Trial]) -> list[StorePoint]:
    """Reads of the store that holds the run's data, by the client that dataprep uses.

    If that client was not probed, each point is that of the fastest client.
    """
    measured: dict[tuple[int, int], dict[str, Estimate]] = {}
    for params, repeats in by_point(trials, "object"):
        rate = figure(repeats, "mb_per_s")
        is_read = params.get("operation") in _READS and of_data(result, str(params.get("store")))
        if rate is None or rate.median <= 0 or not is_read:
            continue
        place = (int(params["object_bytes"]), int(params["connections"]))
        clients = measured.setdefault(place, {})
        client = str(params.get("client"))
        if client not in clients or rate.median > clients[client].median:
            clients[client] = rate
    own = any(OWN_CLIENT in clients for clients in measured.values())
    points = []
    for (size_bytes, connections), clients in sorted(measured.items()):
        if own and OWN_CLIENT not in clients:
            continue
        best = max(clients.values(), key=lambda rate: rate.median)
        points.append(StorePoint(size_bytes, connections, clients[OWN_CLIENT] if own else best))
    return points


def limit_of(points: Sequence[StorePoint], connections: int, read_bytes: float) -> StoreLimit:
    """Decide by the growth from a loader's connections, and from the size of its reads, upwards."""
    if not points:
        return StoreLimit("unclear", "")
    by_connections = _step(
        [_Reading(p.object_bytes, p.connections, p.mb_per_s.median) for p in points], connections
    )
    by_size = _step(
        [_Reading(p.connections, p.object_bytes, p.mb_per_s.median) for p in points], read_bytes
    )
    evidence = "; ".join(_steps_words(by_connections, by_size))
    growths = [step.growth for step in (by_connections, by_size) if step is not None]
    if growths and max(growths) >= _GROWS:
        return StoreLimit("latency", evidence)
    # With few connections a constant rate by size is that of a connection, not of the store.
    smallest = min(point.object_bytes for point in points)
    alike = read_bytes >= _SMALLER * smallest
    if by_connections is not None and max(growths) <= _FLAT and alike:
        return StoreLimit("bandwidth", evidence)
    return StoreLimit("unclear", evidence)


def rate_at(points: Sequence[StorePoint], connections: int, read_bytes: float) -> Estimate | None:
    """MB/s with so many connections; None beyond the probed counts unless the rate is constant."""
    if not points:
        return None
    counts: dict[int, StorePoint] = {}
    for point in points:
        best = counts.get(point.connections)
        if best is None or _far(point, read_bytes) < _far(best, read_bytes):
            counts[point.connections] = point
    rates = {count: point.mb_per_s for count, point in counts.items()}
    most = max(rates)
    if connections <= most:
        return at_workers(rates, connections, None)
    is_constant = limit_of(points, connections, read_bytes).limit == "bandwidth"
    return rates[most] if is_constant else None


@dataclass(frozen=True, slots=True)
class _Reading:
    """A point of a sweep: ``fixed`` is the same for the whole sweep, ``varied`` is not."""

    fixed: int
    varied: int
    mb_per_s: float


@dataclass(frozen=True, slots=True)
class _Step:
    """Two neighbouring points of a sweep."""

    lower: _Reading
    upper: _Reading

    @property
    def growth(self) -> float:
        """The exponent of the rate: 1 is in proportion, 0 is constant."""
        times = self.upper.mb_per_s / self.lower.mb_per_s
        return math.log(times) / math.log(self.upper.varied / self.lower.varied)


def _step(readings: Sequence[_Reading], begin: float) -> _Step | None:
    """The step of the longest sweep that begins at ``begin``, or the nearest step."""
    sweeps: dict[int, list[_Reading]] = {}
    for reading in readings:
        sweeps.setdefault(reading.fixed, []).append(reading)
    longest = max(sweeps.values(), key=len)
    sweep = sorted(longest, key=lambda reading: reading.varied)
    if len(sweep) < 2:
        return None
    first = sum(reading.varied <= begin for reading in sweep) - 1
    first = min(max(first, 0), len(sweep) - 2)
    return _Step(sweep[first], sweep[first + 1])


def _steps_words(by_connections: _Step | None, by_size: _Step | None) -> Iterator[str]:
    if by_connections is not None:
        lower, upper = by_connections.lower, by_connections.upper
        yield (
            f"the probe gives {lower.mb_per_s:,.3g} MB/s with "
            f"{counted(lower.varied, 'connection')} and "
            f"{upper.mb_per_s:,.3g} MB/s with {upper.varied}"
        )
    if by_size is not None:
        lower, upper = by_size.lower, by_size.upper
        yield (
            f"it gives {lower.mb_per_s:,.3g} MB/s for objects of {size(lower.varied)} and "
            f"{upper.mb_per_s:,.3g} MB/s for {size(upper.varied)}"
        )


def _far(point: StorePoint, read_bytes: float) -> float:
    return abs(math.log(point.object_bytes / min(read_bytes, 1e12)))


def _bucket(uri: str, endpoint_url: str | None) -> tuple[str, str]:
    return (endpoint_url or "").rstrip("/"), urlsplit(uri).netloc or uri
