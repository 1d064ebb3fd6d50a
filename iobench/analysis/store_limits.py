"""PURE. What limits reads from an object store: its latency or its bandwidth.

If the rate grows with the number of connections, or with the size of the reads, the store's latency
is the limit. If the rate stays the same, its bandwidth is the limit. The object-store probe varies
the connections and the sizes. For a loader, the decision is made from the points of the probe that
are nearest to the loader's own connections and reads.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from dataprep.message_text import counted
from dataprep.reading.read_ahead import WINDOW_BYTES, WINDOWS_AT_ONCE
from dataprep.reading.record_reader import RANGES_AT_ONCE
from iobench.analysis.data_storage import holds_the_data
from iobench.analysis.repeats import by_settings, estimate_of
from iobench.analysis.worker_scaling import rate_at_workers
from iobench.results.numbers import exact_size, precise_number
from iobench.results.result import Result
from iobench.results.statistics import Estimate
from iobench.results.trial import Params, Trial

Limit = Literal["latency", "bandwidth", "unclear"]
"""What limits the reads; ``unclear`` if the probe does not show it."""

OWN_CLIENT = "boto3"
"""The client of dataprep's own reader."""
TO_MEASURE = "object_store.targets, .connections and .object_bytes"
"""Config keys of the probe that separates latency from bandwidth."""

_READS = ("get", "range_get")
"""Operations of the probe that read objects."""
_GROWING, _CONSTANT = 0.5, 0.2
"""The rate is proportional to a power of the connections or bytes. With an exponent from 0.5 on it
grows, with an exponent up to 0.2 it is constant."""
_MIN_COMPARABLE_SHARE = 0.5
"""Reads that are smaller than this share of the smallest probed object are not comparable."""
_LARGEST_BYTES = 1e12
"""Stands for an infinite size of a read, whose logarithm would be infinite."""


@dataclass(frozen=True, slots=True)
class StorePoint:
    """One point of the object-store probe: reads of one size by a number of connections.

    Attributes:
        object_bytes: the bytes of each read: of a whole object, or of a range.
        connections: the number of requests at a time.
        mb_per_s: the rate of all connections together.
    """

    object_bytes: int
    connections: int
    mb_per_s: Estimate


@dataclass(frozen=True, slots=True)
class StoreLimit:
    """The limit of a store for a loader's connections and reads, with the figures that show it."""

    limit: Limit
    evidence: str


def connections_of(params: Params) -> int | None:
    """Return how many requests a loader makes at a time; None if that is not known.

    A sequential reader fetches several windows of samples at a time in each worker. A reader of
    single samples makes one request for each sample of a batch, up to a limit for each worker. The
    number is that of one device. Without workers, the training process counts as one worker.
    """
    loader = str(params.get("loader", ""))
    workers = max(1, int(params.get("workers") or 0))
    if loader == "torch-iterable":
        return workers * WINDOWS_AT_ONCE
    if loader == "torch-map":
        return workers * min(RANGES_AT_ONCE, int(params.get("batch_size") or 1))
    if loader == "tf-data":
        return WINDOWS_AT_ONCE  # All threads that decode share a single reader.
    if loader == "mxnet-record":
        return RANGES_AT_ONCE  # Shards are copied to local files, in ranges.
    return workers if loader in ("raw", "torch-folder") else None


def read_bytes_of(params: Params, sample_bytes: float | None, object_bytes: float | None) -> float:
    """Return the maximum bytes of one request of a loader; infinite if they are unknown.

    Args:
        params: the parameters of the loader.
        sample_bytes: mean stored bytes of a sample; None if they are unknown.
        object_bytes: mean bytes of an object; None if they are unknown.
    """
    if params.get("loader") in ("torch-map", "torch-folder"):
        return sample_bytes or math.inf
    if params.get("loader") == "raw":
        return object_bytes or math.inf
    return min(WINDOW_BYTES, object_bytes or math.inf)


def store_points(result: Result, trials: Sequence[Trial]) -> list[StorePoint]:
    """Return the probe's reads of the store that holds the run's data.

    They are the reads of dataprep's own client, boto3. If boto3 was not probed, each point has the
    rate of the client that was fastest there. Reads of whole objects and of ranges with the same
    size are one point, which has the higher of their rates.

    Args:
        result: the run, whose config tells which stores were probed.
        trials: the trials of the run.
    """
    by_point: dict[tuple[int, int], dict[str, Estimate]] = {}
    for params, repeats in by_settings(trials, "object"):
        rate = estimate_of(repeats, "mb_per_s")
        is_read = params.get("operation") in _READS
        if rate is None or rate.median <= 0 or not is_read:
            continue
        if not holds_the_data(result, str(params.get("store"))):
            continue
        point = (int(params["object_bytes"]), int(params["connections"]))
        by_client = by_point.setdefault(point, {})
        client = str(params.get("client"))
        if client not in by_client or rate.median > by_client[client].median:
            by_client[client] = rate
    is_own_probed = any(OWN_CLIENT in by_client for by_client in by_point.values())
    points = []
    for (object_bytes, connections), by_client in sorted(by_point.items()):
        if not is_own_probed:
            fastest = max(by_client.values(), key=lambda rate: rate.median)
            points.append(StorePoint(object_bytes, connections, fastest))
        elif OWN_CLIENT in by_client:
            points.append(StorePoint(object_bytes, connections, by_client[OWN_CLIENT]))
    return points


def limit_of(points: Sequence[StorePoint], connections: int, read_bytes: float) -> StoreLimit:
    """Decide whether latency or bandwidth of the store limits a loader.

    The decision depends on how the probed rate grows with the connections and the size of reads.
    Latency is the limit if it grows with either of them. Bandwidth is the limit if it is constant
    over both, or over the connections if the size was not varied. Otherwise the limit is unclear.

    Args:
        points: the probe's reads.
        connections: the requests at a time of the loader on all devices.
        read_bytes: bytes of each of its requests; infinite if unknown.
    """
    if not points:
        return StoreLimit("unclear", "")
    varied_connections, varied_sizes = [], []
    for point in points:
        mb_per_s = point.mb_per_s.median
        varied_connections.append(_Reading(point.object_bytes, point.connections, mb_per_s))
        varied_sizes.append(_Reading(point.connections, point.object_bytes, mb_per_s))
    by_connections = _step_from(varied_connections, connections)
    by_size = _step_from(varied_sizes, read_bytes)
    evidence = _steps_words(by_connections, by_size)
    growths = [step.growth for step in (by_connections, by_size) if step is not None]
    if growths and max(growths) >= _GROWING:
        return StoreLimit("latency", evidence)
    # A rate that does not grow with the size may be the limit of each connection. It is the limit
    # of the store only if it does not grow with the connections either.
    smallest_bytes = min(point.object_bytes for point in points)
    is_comparable = read_bytes >= _MIN_COMPARABLE_SHARE * smallest_bytes
    if by_connections is not None and max(growths) <= _CONSTANT and is_comparable:
        return StoreLimit("bandwidth", evidence)
    return StoreLimit("unclear", evidence)


def rate_at(points: Sequence[StorePoint], connections: int, read_bytes: float) -> Estimate | None:
    """Return the MB/s of the store for a loader's connections and reads.

    For each probed number of connections, the rate of the most similar size is used. If the loader
    has more connections than the probe, the rate is known only if the store's bandwidth is the
    limit, because it then stays the same. None if the rate is unknown.

    Args:
        points: the probe's reads.
        connections: the requests at a time of the loader on all devices.
        read_bytes: bytes of each of its requests; infinite if unknown.
    """
    if not points:
        return None
    nearest: dict[int, StorePoint] = {}
    for point in points:
        other = nearest.get(point.connections)
        if other is None or _distance(point, read_bytes) < _distance(other, read_bytes):
            nearest[point.connections] = point
    rates = {count: point.mb_per_s for count, point in nearest.items()}
    max_connections = max(rates)
    if connections <= max_connections:
        return rate_at_workers(rates, connections, None)
    is_constant = limit_of(points, connections, read_bytes).limit == "bandwidth"
    return rates[max_connections] if is_constant else None


@dataclass(frozen=True, slots=True)
class _Reading:
    """A point of a sweep over connections or over sizes.

    Attributes:
        fixed: the value of the setting that is the same for the whole sweep.
        varied: the value of the setting over which the sweep goes.
        mb_per_s: the rate in MB/s.
    """

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
        """The exponent with which the rate grows with the varied setting.

        It is 1 if the rate is proportional to the setting, and 0 if the rate is constant.
        """
        factor = self.upper.mb_per_s / self.lower.mb_per_s
        return math.log(factor) / math.log(self.upper.varied / self.lower.varied)


def _step_from(readings: Sequence[_Reading], start: float) -> _Step | None:
    """Return the two neighbouring points of the longest sweep between which ``start`` is.

    If ``start`` is a point of the sweep, it is the first of the two. If it is beyond an end of the
    sweep, they are the first two points or the last two. None if no sweep has two points.

    Args:
        readings: the points of all sweeps.
        start: a value of the varied setting.
    """
    sweeps: dict[int, list[_Reading]] = {}
    for reading in readings:
        sweeps.setdefault(reading.fixed, []).append(reading)
    longest = max(sweeps.values(), key=len)
    sweep = sorted(longest, key=lambda reading: reading.varied)
    if len(sweep) < 2:
        return None
    index = sum(reading.varied <= start for reading in sweep) - 1
    index = min(max(index, 0), len(sweep) - 2)
    return _Step(sweep[index], sweep[index + 1])


def _steps_words(by_connections: _Step | None, by_size: _Step | None) -> str:
    """Return the rates of the steps by connections and by size of objects, in words."""
    texts = []
    if by_connections is not None:
        lower, upper = by_connections.lower, by_connections.upper
        fewer = counted(lower.varied, "connection")
        texts.append(
            f"the probe gives {precise_number(lower.mb_per_s)} MB/s with {fewer} and "
            f"{precise_number(upper.mb_per_s)} MB/s with {upper.varied}"
        )
    if by_size is not None:
        lower, upper = by_size.lower, by_size.upper
        smaller, larger = exact_size(lower.varied), exact_size(upper.varied)
        subject = "it" if texts else "the probe"
        texts.append(
            f"{subject} gives {precise_number(lower.mb_per_s)} MB/s for objects of {smaller} and "
            f"{precise_number(upper.mb_per_s)} MB/s for {larger}"
        )
    return "; ".join(texts)


def _distance(point: StorePoint, read_bytes: float) -> float:
    """Return how much the size of a point's reads differs from a loader's reads, as a logarithm."""
    return abs(math.log(point.object_bytes / min(read_bytes, _LARGEST_BYTES)))
