"""PURE. Which trials are evidence: repeats that agree, balanced bytes, rates that storage can give.

A trial that is no evidence keeps its figures in tables. Findings, predictions and advice do not use
it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dataprep.counted import counted
from iobench.analysis.loops import Loop
from iobench.analysis.points import (
    Repeats,
    arrival_rate,
    by_point,
    cold_label,
    figure,
    is_number,
    values,
)
from iobench.analysis.rules import found
from iobench.analysis.store_limits import (
    TO_MEASURE,
    StorePoint,
    connections_of,
    limit_of,
    points_of,
    read_bytes_of,
)
from iobench.data.given import read_from
from iobench.numbers import percent
from iobench.result import Finding, Result
from iobench.stats import Estimate
from iobench.trial import Params, Trial
from iobench.words import params_words

DISAGREE = 2.0
"""Largest repeat / smallest repeat from which on a figure is no evidence."""
UNBALANCED = 0.05
"""Largest difference of samples fetched and samples consumed, as a share of the consumed ones."""
FASTER = 1.10
"""Multiple of the storage's own rate from which on a loader's rate is a fault."""

_KINDS = {"disk": "mb_per_s", "object": "mb_per_s"}
_READ_AHEAD_BYTES = 2**17  # the kernel reads at least so much at a time
_SAME_DISK = ("kind", "file_system", "total_bytes", "device")
_ADVICE = "measure with more images or more steps, so that the rate is a steady state"


@dataclass(frozen=True, slots=True)
class Evidence:
    """The trials of a run, without those that are no evidence.

    Attributes:
        trials: all trials; those that are no evidence have the status ``skipped`` and a reason.
        faults: findings about them.
        doubted: groups of training loops that lost a trial, with the reason.
    """

    trials: tuple[Trial, ...]
    faults: tuple[Finding, ...]
    doubted: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Storage:
    """The storage of a run, measured by itself.

    Attributes:
        raw: cold points of loader ``raw``, and its points over a store.
        disks: cold and direct reads of the disk probe.
        store: reads of the object-store probe, from the store that holds the data.
        targets: descriptions of the disks, by label.
    """

    raw: Sequence[tuple[Params, Estimate]]
    disks: Sequence[tuple[Params, Estimate]]
    store: Sequence[StorePoint]
    targets: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StorageCeiling:
    """The most that storage gave by itself, in MB/s: the upper end of the best interval."""

    mb_per_s: float
    measured_by: str


def evidence(result: Result) -> Evidence:
    """Separate the trials of a run that are evidence from those that are not."""
    reasons: dict[str, str] = {}
    reasons.update(_unbalanced(result.trials))
    reasons.update(_disagreeing(_without(result.trials, reasons)))
    faults = []
    # Reading without decoding is a ceiling for other loaders only if it is possible itself.
    for kind, is_raw in (("loader", True), ("loader", False), ("train", False)):
        trials = _without(result.trials, reasons)
        storage = storage_of(result, trials)
        for params, repeats in by_point(trials, kind):
            if is_raw is (params.get("loader") == "raw"):
                reason = _too_fast(storage, params, repeats)
                if reason:
                    reasons |= dict.fromkeys((trial.id for trial in repeats), reason)
                    faults.append(_fault(kind, params, reason))
    doubted = {
        str(trial.params.get("group", "")): reasons[trial.id]
        for trial in result.trials
        if trial.kind == "train" and trial.id in reasons
    }
    return Evidence(_without(result.trials, reasons), tuple(faults), doubted)


def storage_of(result: Result, trials: Sequence[Trial]) -> Storage:
    """What the trials measured of the storage by itself."""
    raw, disks = [], []
    for params, repeats in by_point(trials, "loader"):
        rate = figure(repeats, "mb_per_s")
        if params.get("loader") == "raw" and rate and _is_read(params, repeats):
            raw.append((params, rate))
    for params, repeats in by_point(trials, "disk"):
        rate = arrival_rate(repeats)
        is_proved = cold_label(repeats) in ("cold", "direct")
        if params.get("operation") == "read" and rate and is_proved:
            disks.append((params, rate))
    targets = result.environment.get("targets") or {}
    return Storage(raw, disks, points_of(result, trials), targets)


def unmeasured_ceilings(storage: Storage, loops: Sequence[Loop]) -> Iterator[Finding]:
    """A finding for each loop whose storage was not measured by itself."""
    for loop in loops:
        is_read = loop.farthest == "store" or loop.label == "cold"
        if is_read and storage_ceiling(storage, loop.params, loop.trials) is None:
            where = "store" if loop.farthest == "store" else "disk"
            keys = TO_MEASURE if where == "store" else "disk.targets and .parallelism"
            connections = connections_of(loop.params)
            at_least = f" with at least {connections} requests at a time" if connections else ""
            yield found(
                "ceiling-not-measured",
                f"{loop.group}: no probe and no loader raw read the same {where}{at_least}",
                f"set {keys}, or add loader raw over the same data",
                of=loop.group,
            )


def storage_ceiling(storage: Storage, params: Params, repeats: Repeats) -> StorageCeiling | None:
    """The best result of the storage that a loader reads, with at least its connections.

    None if the storage was not measured so. Results of loader ``raw`` count for the same data, and
    points of the probes for the same store or disk.
    """
    wanted = connections_of(params)
    is_remote = str(params.get("data", "")).endswith("@s3")
    if wanted is None:
        return None
    if not is_remote:  # the reader opens one file at a time in each worker
        wanted = max(1, int(params.get("workers") or 0))
    ceilings = [*_raw(storage, params, wanted)]
    if is_remote:
        ceilings += _probed_store(storage, params, repeats, wanted)
    else:
        ceilings += _probed_disk(storage, params, wanted)
    return max(ceilings, key=lambda ceiling: ceiling.mb_per_s, default=None)


def _is_read(params: Params, repeats: Repeats) -> bool:
    """Whether samples came from a store, or from a disk as proved."""
    return str(params.get("data", "")).endswith("@s3") or cold_label(repeats) == "cold"


def _raw(storage: Storage, params: Params, wanted: int) -> Iterator[StorageCeiling]:
    data = (str(params.get("data")), str(params.get("access", "direct")))
    for other, rate in storage.raw:
        same = (str(other.get("data")), str(other.get("access", "direct"))) == data
        workers = max(1, int(other.get("workers") or 0))
        if params.get("loader") != "raw" and same and workers >= wanted:
            yield StorageCeiling(rate.high, f"loader raw with {counted(workers, 'worker')}")


def _probed_store(
    storage: Storage, params: Params, repeats: Repeats, wanted: int
) -> Iterator[StorageCeiling]:
    object_bytes = max(values(repeats, "mean_object_bytes"), default=None)
    read_bytes = read_bytes_of(params, _sample_bytes(repeats), object_bytes)
    is_constant = limit_of(storage.store, wanted, read_bytes).limit == "bandwidth"
    for point in storage.store:
        as_large = point.object_bytes >= read_bytes
        if is_constant or (point.connections >= wanted and as_large):
            by = f"the probe of the store with {counted(point.connections, 'connection')}"
            yield StorageCeiling(point.mb_per_s.high, by)


def _probed_disk(storage: Storage, params: Params, wanted: int) -> Iterator[StorageCeiling]:
    own = read_from(str(params.get("data", "")), storage.targets)
    for other, rate in storage.disks:
        target, count = str(other.get("target")), int(other.get("parallelism") or 1)
        is_large = int(other.get("block_bytes") or 0) >= _READ_AHEAD_BYTES
        if is_large and count >= wanted and _same_disk(storage.targets, own, target):
            by = f"the probe of the disk with {counted(count, 'read')} at a time"
            yield StorageCeiling(rate.high, by)


def _same_disk(targets: Mapping[str, Any], one: str, other: str) -> bool:
    """Whether two targets are one file system, as far as their descriptions tell."""
    if one == other:
        return True
    first, second = targets.get(one), targets.get(other)
    if not isinstance(first, Mapping) or not isinstance(second, Mapping):
        return False
    known = is_number(first.get("total_bytes"))
    return known and all(first.get(key) == second.get(key) for key in _SAME_DISK)


def _too_fast(storage: Storage, params: Params, repeats: Repeats) -> str:
    """Why a rate is not possible; empty if it is."""
    rate = figure(repeats, "mb_per_s")
    if (
        not _is_read(params, repeats)
        or rate is None
        or str(params.get("access", "direct")) != "direct"
    ):
        return ""
    if params.get("input", "store") not in ("cold", "store") and "group" in params:
        return ""
    ceiling = storage_ceiling(storage, params, repeats)
    if ceiling is None or rate.median <= FASTER * ceiling.mb_per_s:
        return ""
    return (
        f"{rate.median:,.3g} MB/s, where {ceiling.measured_by} got {ceiling.mb_per_s:,.3g} MB/s "
        "at most"
    )


def _fault(kind: str, params: Params, reason: str) -> Finding:
    group = str(params.get("group", ""))
    named = f"{group}, {params.get('input')}" if group else params_words(kind, params)
    return found("faster-than-storage", f"{named}: {reason}", _ADVICE, of=group)


def _sample_bytes(repeats: Repeats) -> float | None:
    sizes = [
        float(trial.metrics["mb_per_s"]) * 1e6 / float(trial.metrics["samples_per_s"])
        for trial in repeats
        if trial.metrics.get("mb_per_s") and trial.metrics.get("samples_per_s")
    ]
    return max(sizes, default=None)


def _unbalanced(trials: Sequence[Trial]) -> Iterator[tuple[str, str]]:
    for trial in trials:
        balance = trial.metrics.get("balance")
        if trial.status == "done" and is_number(balance) and abs(balance - 1) > UNBALANCED:
            yield trial.id, f"fetched samples are {percent(balance)} of the consumed ones"


def _disagreeing(trials: Sequence[Trial]) -> Iterator[tuple[str, str]]:
    for kind in dict.fromkeys(trial.kind for trial in trials):
        for _, repeats in by_point(trials, kind):
            rates = values(repeats, _KINDS.get(kind, "samples_per_s"))
            if rates and max(rates) > DISAGREE * min(rates):
                times = max(rates) / min(rates) if min(rates) > 0 else math.inf
                reason = f"the largest repeat is {times:.1f} times the smallest"
                yield from ((trial.id, reason) for trial in repeats)


def _without(trials: Sequence[Trial], reasons: Mapping[str, str]) -> tuple[Trial, ...]:
    return tuple(
        replace(trial, status="skipped", reason=f"no evidence: {reasons[trial.id]}")
        if trial.id in reasons
        else trial
        for trial in trials
    )
