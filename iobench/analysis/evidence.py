"""PURE. Decide which trials are evidence.

A trial is evidence if:

- its repeats agree: the largest is at most ``MAX_SPREAD`` times the smallest;
- it consumed about as many samples as it fetched (``MAX_UNBALANCED``);
- its rate is possible: not much above the rate of its storage (``MAX_OF_STORAGE_RATE``).

The figures of other trials are shown in tables. Findings about causes, predictions and
recommendations do not use them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dataprep.message_text import counted
from iobench.analysis.data_storage import is_disk_of
from iobench.analysis.finding_remarks import remark_on
from iobench.analysis.finding_rules import make_finding
from iobench.analysis.loops import Loop
from iobench.analysis.repeats import (
    Repeats,
    arrival_rate,
    by_settings,
    cold_label,
    estimate_of,
    is_direct,
    is_number,
    is_on_store,
    metric_values,
    rate_metric,
    stored_sample_bytes,
)
from iobench.analysis.store_limits import (
    TO_MEASURE,
    StorePoint,
    connections_of,
    limit_of,
    read_bytes_of,
    store_points,
)
from iobench.results.numbers import percent, precise_number
from iobench.results.result import Finding, Result
from iobench.results.statistics import Estimate
from iobench.results.trial import Params, Trial
from iobench.results.wording import params_words

MAX_SPREAD = 2.0
"""Maximum ratio of the largest repeat to the smallest repeat."""
MAX_UNBALANCED = 0.05
"""Maximum difference of the samples fetched and the samples consumed, as a share of the latter."""
MAX_OF_STORAGE_RATE = 1.10
"""Maximum ratio of a loader's rate to the rate of its storage. If the ratio is higher, the
measurement is wrong."""

_READ_AHEAD_BYTES = 2**17
"""Minimum block size of a disk probe that is comparable with a loader. A loader's reads have at
least this size, because the kernel reads ahead."""
_SINGLE_READERS = ("tf-data", "mxnet-record")
"""Loaders whose workers only decode. They share a single reader."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The trials of a run, in which trials that are not evidence are marked as skipped.

    Attributes:
        trials: all trials. A trial that is not evidence has the status ``skipped`` and a reason.
        faults: findings about impossible rates.
        doubts: for the group of each training loop that lost a trial, the reason.
    """

    trials: tuple[Trial, ...]
    faults: tuple[Finding, ...]
    doubts: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class MeasuredRate:
    """The parameters of a setting and its rate in MB/s."""

    params: Params
    mb_per_s: Estimate


@dataclass(frozen=True, slots=True)
class Storage:
    """The storage of a run, measured without decoding and without training.

    Attributes:
        raw_loaders: rates of the loader ``raw`` from a cold disk or from a store.
        disk_reads: cold and direct reads of the disk probe.
        store_points: reads of the object-store probe from the store that holds the data.
        targets: descriptions of the disks, by label.
    """

    raw_loaders: Sequence[MeasuredRate]
    disk_reads: Sequence[MeasuredRate]
    store_points: Sequence[StorePoint]
    targets: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StorageCeiling:
    """The maximum rate of the storage: the upper end of the interval of the best measurement.

    Attributes:
        mb_per_s: the rate in MB/s.
        measured_by: the measurement in words.
    """

    mb_per_s: float
    measured_by: str


def judge_trials(result: Result) -> Evidence:
    """Mark the trials of a run that are not evidence as skipped."""
    reasons = dict(_unbalanced_trials(result.trials))
    reasons.update(_disagreeing_trials(_mark_skipped(result.trials, reasons)))
    faults = []
    # The loader ``raw`` is judged first: its rate is a ceiling for others only if it is possible.
    for kind, is_raw in (("loader", True), ("loader", False), ("train", False)):
        trials = _mark_skipped(result.trials, reasons)
        storage = storage_of(result, trials)
        for params, repeats in by_settings(trials, kind):
            if is_raw != (params.get("loader") == "raw"):
                continue
            reason = _impossible_rate(storage, params, repeats)
            if reason:
                faults.append(_fault(kind, params, reason))
                reasons |= {trial.id: reason for trial in repeats}
    doubts: dict[str, str] = {}
    for trial in result.trials:
        if trial.kind == "train" and trial.id in reasons:
            doubts[str(trial.params.get("group", ""))] = reasons[trial.id]
    return Evidence(_mark_skipped(result.trials, reasons), tuple(faults), doubts)


def storage_of(result: Result, trials: Sequence[Trial]) -> Storage:
    """Collect the rates of the storage, measured without decoding and without training."""
    raw_loaders, disk_reads = [], []
    for params, repeats in by_settings(trials, "loader"):
        rate = estimate_of(repeats, "mb_per_s")
        if params.get("loader") == "raw" and rate and _is_from_storage(params, repeats):
            raw_loaders.append(MeasuredRate(params, rate))
    for params, repeats in by_settings(trials, "disk"):
        rate = arrival_rate(repeats)
        is_proved = cold_label(repeats) in ("cold", "direct")
        if params.get("operation") == "read" and rate and is_proved:
            disk_reads.append(MeasuredRate(params, rate))
    targets = result.environment.get("targets") or {}
    return Storage(raw_loaders, disk_reads, store_points(result, trials), targets)


def unmeasured_ceilings(storage: Storage, loops: Sequence[Loop]) -> Iterator[Finding]:
    """Yield a finding for each loop whose storage was not measured separately."""
    for loop in loops:
        is_from_storage = loop.farthest == "store" or loop.label == "cold"
        if not is_from_storage or storage_ceiling(storage, loop.params, loop.trials) is not None:
            continue
        location = "store" if loop.farthest == "store" else "disk"
        keys = TO_MEASURE if location == "store" else "disk.targets and .parallelism"
        requests = _requests_at_a_time(loop.params)
        evidence_text = f"{loop.group}: no probe and no loader raw read the same {location}"
        if requests:
            evidence_text += f" with at least {counted(requests, 'request')} at a time"
        remark = remark_on("ceiling-not-measured", keys=keys)
        yield make_finding("ceiling-not-measured", evidence_text, remark, of=loop.group)


def storage_ceiling(storage: Storage, params: Params, repeats: Repeats) -> StorageCeiling | None:
    """Return the maximum rate of the storage that a loader reads from.

    It is measured by the loader ``raw`` over the same data, and by the probe of the same store or
    disk. A measurement counts only if it had at least as many requests at a time as the loader.

    Args:
        storage: the measurements.
        params: the parameters of the loader or loop.
        repeats: its trials.

    Returns:
        The maximum; None if there is no such measurement.
    """
    requests = _requests_at_a_time(params)
    if requests is None:
        return None
    ceilings = list(_raw_ceilings(storage, params, requests))
    if is_on_store(params):
        ceilings += _probed_store_ceilings(storage, params, repeats, requests)
    else:
        ceilings += _probed_disk_ceilings(storage, params, requests)
    return max(ceilings, key=lambda ceiling: ceiling.mb_per_s, default=None)


def _requests_at_a_time(params: Params) -> int | None:
    """Return how many requests a loader makes at a time, also of a disk; None if it is unknown."""
    connections = connections_of(params)
    if connections is None or is_on_store(params):
        return connections
    if params.get("loader") in _SINGLE_READERS:
        return 1
    # The readers of local files make one read at a time in each worker.
    return max(1, int(params.get("workers") or 0))


def _is_from_storage(params: Params, repeats: Repeats) -> bool:
    """Return whether samples came from a store, or from a disk as proved."""
    return is_on_store(params) or cold_label(repeats) == "cold"


def _raw_ceilings(storage: Storage, params: Params, requests: int) -> Iterator[StorageCeiling]:
    """Yield the rates of the loader ``raw`` over the same data with enough workers."""
    if params.get("loader") == "raw":
        return
    data = (str(params.get("data")), str(params.get("access", "direct")))
    for raw in storage.raw_loaders:
        raw_data = (str(raw.params.get("data")), str(raw.params.get("access", "direct")))
        workers = max(1, int(raw.params.get("workers") or 0))
        if raw_data == data and workers >= requests:
            measured_by = f"loader raw with {counted(workers, 'worker')}"
            yield StorageCeiling(raw.mb_per_s.high, measured_by)


def _probed_store_ceilings(
    storage: Storage, params: Params, repeats: Repeats, requests: int
) -> Iterator[StorageCeiling]:
    """Yield the rates of the store's probe with enough connections and large enough objects."""
    object_bytes = max(metric_values(repeats, "mean_object_bytes"), default=None)
    read_bytes = read_bytes_of(params, _sample_bytes(repeats), object_bytes)
    limit = limit_of(storage.store_points, requests, read_bytes).limit
    for point in storage.store_points:
        is_comparable = point.connections >= requests and point.object_bytes >= read_bytes
        # A store that is limited by its bandwidth has the same rate for other requests.
        if limit == "bandwidth" or is_comparable:
            connections = counted(point.connections, "connection")
            measured_by = f"the probe of the store with {connections}"
            yield StorageCeiling(point.mb_per_s.high, measured_by)


def _probed_disk_ceilings(
    storage: Storage, params: Params, requests: int
) -> Iterator[StorageCeiling]:
    """Yield the rates of the probe of the same disk with enough reads at a time."""
    data = str(params.get("data", ""))
    for read in storage.disk_reads:
        target = str(read.params.get("target"))
        reads = int(read.params.get("parallelism") or 1)
        is_large = int(read.params.get("block_bytes") or 0) >= _READ_AHEAD_BYTES
        is_same_disk = is_disk_of(storage.targets, data, target)
        if is_large and reads >= requests and is_same_disk:
            measured_by = f"the probe of the disk with {counted(reads, 'read')} at a time"
            yield StorageCeiling(read.mb_per_s.high, measured_by)


def _impossible_rate(storage: Storage, params: Params, repeats: Repeats) -> str:
    """Return why a rate is not possible; empty if it is possible or cannot be judged."""
    rate = estimate_of(repeats, "mb_per_s")
    if rate is None or not is_direct(params) or not _is_from_storage(params, repeats):
        return ""
    is_loop = "group" in params
    if is_loop and params.get("input", "store") not in ("cold", "store"):
        return ""
    ceiling = storage_ceiling(storage, params, repeats)
    if ceiling is None or rate.median <= MAX_OF_STORAGE_RATE * ceiling.mb_per_s:
        return ""
    return (
        f"{precise_number(rate.median)} MB/s, where {ceiling.measured_by} got "
        f"{precise_number(ceiling.mb_per_s)} MB/s at most"
    )


def _fault(kind: str, params: Params, reason: str) -> Finding:
    """Return the finding about a rate that is not possible."""
    group = str(params.get("group", ""))
    name = f"{group}, {params.get('input')}" if group else params_words(kind, params)
    remark = remark_on("no-evidence")
    return make_finding("faster-than-storage", f"{name}: {reason}", remark, of=group)


def _sample_bytes(repeats: Repeats) -> float | None:
    """Return the largest mean size of a stored sample over repeats; None if it is unknown."""
    sizes = []
    for trial in repeats:
        sample_bytes = stored_sample_bytes(trial)
        if sample_bytes is not None:
            sizes.append(sample_bytes)
    return max(sizes, default=None)


def _unbalanced_trials(trials: Sequence[Trial]) -> Iterator[tuple[str, str]]:
    """Yield the id of each trial that fetched more or less than it consumed, with the reason."""
    for trial in trials:
        balance = trial.metrics.get("balance")
        if trial.status == "done" and is_number(balance) and abs(balance - 1) > MAX_UNBALANCED:
            yield trial.id, f"fetched samples are {percent(balance)} of the consumed ones"


def _disagreeing_trials(trials: Sequence[Trial]) -> Iterator[tuple[str, str]]:
    """Yield the id of each trial whose repeats differ too much, with the reason."""
    for kind in dict.fromkeys(trial.kind for trial in trials):
        for _, repeats in by_settings(trials, kind):
            rates = metric_values(repeats, rate_metric(kind))
            if rates and max(rates) > MAX_SPREAD * min(rates):
                spread = max(rates) / min(rates) if min(rates) > 0 else math.inf
                reason = f"the largest repeat is {spread:.1f} times the smallest"
                for trial in repeats:
                    yield trial.id, reason


def _mark_skipped(trials: Sequence[Trial], reasons: Mapping[str, str]) -> tuple[Trial, ...]:
    """Return all trials; those with a reason are marked as skipped."""
    marked = []
    for trial in trials:
        if trial.id in reasons:
            reason = f"no evidence: {reasons[trial.id]}"
            marked.append(replace(trial, status="skipped", reason=reason))
        else:
            marked.append(trial)
    return tuple(marked)
