"""PURE. Loops that wait for disk or store, and for what about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from iobench.diagnosis.loop import Loop
from iobench.diagnosis.rule import FINE, Rule, Share, percent
from iobench.diagnosis.sources import CLOUD_GUIDE, S3_GUIDE, STALLS
from iobench.result import Finding
from iobench.summary.points import by_point
from iobench.trial import Trial
from iobench.words import params_words

REFUSED = 0.01
"""Of all requests: answers 503 and 429."""
SMALL_BYTES = 1_000_000
"""Of one read: below it what a read costs before its first byte is most of what it costs."""
LATENCY = 0.5
"""Of a GET's time, before its first byte."""
BEHIND = 0.5
"""Times the rate of whole shards at which small files are read."""

_WAITS = "fetch_stall ((T2 − T3) ÷ T2), or the ladder's last rung"
THROTTLED = Rule(
    "store-throttles",
    "The store refuses requests: 503 Slow Down",
    "cause",
    "problem",
    f"more than {REFUSED:.0%} of the answers are 503 or 429",
    "store_refused beside store_requests of the loop; refused beside requests of the object probe",
    "fewer and larger requests: training.loader: torch-iterable, which reads neighbouring samples "
    "at once, fewer workers and connections; or no requests while training: dataprep stage OUTPUT "
    "DEST copies the shards to a local disk",
    S3_GUIDE,
)
TINY_FILES = Rule(
    "tiny-files",
    "Samples are read as many small files",
    "cause",
    "problem",
    f"each sample is a file, an object or a range of its own, of less than {SMALL_BYTES / 1e6:g} "
    f"MB, and reading takes {FINE:.0%} of the time or more; or the layout probe reads small files "
    f"at less than {BEHIND:g} times the rate of whole shards",
    f"mean_object_bytes, or store_read_bytes ÷ store_requests, beside {_WAITS}; samples/s of the "
    "layout probe",
    "pack them into shards, one read for hundreds of samples: dataprep shard --source DIR "
    "--output OUT --shard-size 64MB, then training.data: shards",
    CLOUD_GUIDE,
)
LATENCY_BOUND = Rule(
    "slow-store-latency",
    "The store is waited for: latency",
    "cause",
    "problem",
    f"reading from a store takes {FINE:.0%} of the time or more, and more than {LATENCY:.0%} of a "
    "GET's time passes before its first byte",
    f"{_WAITS}; store_first_byte_s ÷ store_get_s",
    "more requests under way: training.workers, training.prefetch; fewer and larger ones: "
    "training.loader: torch-iterable, which reads neighbouring samples at once; or none while "
    "training: dataprep stage OUTPUT DEST copies the shards to a local disk",
    S3_GUIDE,
)
BANDWIDTH_BOUND = Rule(
    "slow-store-bandwidth",
    "The store is waited for: bandwidth",
    "cause",
    "problem",
    f"reading from a store takes {FINE:.0%} of the time or more, and at least {LATENCY:.0%} of a "
    "GET's time passes while its body comes",
    f"{_WAITS}; store_first_byte_s ÷ store_get_s, store_read_bytes",
    "fewer bytes a sample: images resized beforehand (dataprep shard --size 256); or read them "
    "once: dataprep stage OUTPUT DEST copies the shards to a local disk; iobench run "
    "configs/bench/s3.yaml tells what more connections would give",
    S3_GUIDE,
)
SLOW_STORE = Rule(
    "slow-store",
    "The store is waited for",
    "cause",
    "problem",
    f"reading from a store takes {FINE:.0%} of the time or more; its requests were not seen",
    _WAITS,
    "iobench run configs/bench/s3.yaml tells what the store gives, and from which object size and "
    "how many connections on",
    STALLS,
)
SLOW_DISK = Rule(
    "slow-disk",
    "The disk is waited for",
    "cause",
    "problem",
    f"reading from a disk takes {FINE:.0%} of the time or more",
    f"{_WAITS}; disk_read_mb_per_s and cpu_iowait_share meanwhile; the disk probe's peak",
    "where the disk gives more than the loop asked for (iobench run configs/bench/disk.yaml): more "
    "training.workers and training.prefetch; else fewer bytes a sample (dataprep shard --size "
    "256), or a faster disk (dataprep stage OUTPUT DEST copies the shards there)",
    STALLS,
)
RULES = (THROTTLED, TINY_FILES, LATENCY_BOUND, BANDWIDTH_BOUND, SLOW_STORE, SLOW_DISK)


def findings(
    loops: Iterable[Loop], trials: Sequence[Trial], summary: Mapping[str, Any]
) -> Iterator[Finding]:
    """Of each loop that waits for storage, and of probes."""
    for loop in loops:
        share = loop.rungs.get("store" if loop.remote else "cold") or loop.reading
        if share is not None and share.counts:
            named = list(_named_causes(loop, share))
            yield from named or [_slow(loop, share, summary)]
    yield from _throttled_probes(trials)
    yield from _layouts(summary.get("layouts") or ())


def _named_causes(loop: Loop, share: Share) -> Iterator[Finding]:
    refused, requests = loop.metric("store_refused"), loop.metric("store_requests")
    if refused and requests is not None and refused / (refused + requests) > REFUSED:
        yield THROTTLED.costing(
            f"{_waits(loop, share)}; {refused:,.0f} of {refused + requests:,.0f} answers were 503 "
            "or 429",
            share,
        )
    read_bytes = _read_bytes(loop)
    if read_bytes is not None and read_bytes < SMALL_BYTES:
        yield TINY_FILES.costing(
            f"{_waits(loop, share)}; each read brings {read_bytes / 1e3:,.0f} kB", share
        )


def _slow(loop: Loop, share: Share, summary: Mapping[str, Any]) -> Finding:
    said = _waits(loop, share)
    if not loop.remote:
        return SLOW_DISK.costing(said + _of_disk(loop, summary), share)
    first_s, whole_s = loop.metric("store_first_byte_s"), loop.metric("store_get_s")
    if first_s is None or not whole_s:
        return SLOW_STORE.costing(said, share)
    rule = LATENCY_BOUND if first_s / whole_s > LATENCY else BANDWIDTH_BOUND
    said += (
        f"; a GET takes {whole_s * 1e3:,.0f} ms, of that {first_s * 1e3:,.0f} ms "
        f"({percent(first_s / whole_s)}) to its first byte"
    )
    return rule.costing(said + _of_store(loop, summary), share)


def _waits(loop: Loop, share: Share) -> str:
    where = "the object store" if loop.remote else "the disk"
    return f"{loop.name}: waiting for {where} takes {share} of its time"


def _read_bytes(loop: Loop) -> float | None:
    """What one read for one sample brings; None where a read brings many samples."""
    if loop.reads_files:
        return loop.metric("mean_object_bytes")
    read, requests = loop.metric("store_read_bytes"), loop.metric("store_requests")
    lazy = loop.remote and loop.param.get("access") == "lazy"
    return read / requests if lazy and read and requests else None


def _of_store(loop: Loop, summary: Mapping[str, Any]) -> str:
    rate = loop.metric("mb_per_s")
    said = "" if rate is None else f"; the loop takes {rate:,.1f} MB/s"
    peaks = [
        float(entry["peak_mb_per_s"])
        for entry in summary.get("object_stores") or ()
        if entry.get("operation") in ("get", "range_get") and entry.get("peak_mb_per_s")
    ]
    return said + (f", the object probe got {max(peaks):,.0f}" if peaks else "")


def _of_disk(loop: Loop, summary: Mapping[str, Any]) -> str:
    said = ""
    rate, waiting = loop.metric("disk_read_mb_per_s"), loop.metric("cpu_iowait_share")
    if rate is not None:
        said += f"; disks gave {rate:,.0f} MB/s meanwhile"
    if waiting is not None:
        said += f", iowait {percent(waiting)}"
    peaks = [
        float(entry["mb_per_s"]["median"])
        for entry in summary.get("disks") or ()
        if entry.get("operation") == "read" and entry.get("label") in ("cold", "direct")
    ]
    if peaks:
        said += f"; the disk probe got {max(peaks):,.0f}"
    return said if loop.group.get("cold_proved") else f"{said}; it was not shown to be cold"


def _throttled_probes(trials: Iterable[Trial]) -> Iterator[Finding]:
    """Of the point of the object probe that was refused most often."""
    points = []
    for params, repeats in by_point(trials, "object"):
        refused = sum(int(trial.metrics.get("refused") or 0) for trial in repeats)
        requests = sum(int(trial.metrics.get("requests") or 0) for trial in repeats)
        if refused and refused / (refused + requests) > REFUSED:
            points.append((refused / (refused + requests), refused, refused + requests, params))
    if points:
        share, refused, answers, params = max(points, key=lambda point: point[0])
        yield THROTTLED.found(
            f"{params_words('object', params)}: {refused:,} of {answers:,} answers "
            f"({percent(share)}) were 503 or 429"
            + (f"; so too in {len(points) - 1} more points" if len(points) > 1 else ""),
            severity="warning",
        )


def _layouts(layouts: Iterable[Mapping[str, Any]]) -> Iterator[Finding]:
    """Small files beside whole shards, read by the same way from the same kind of place."""
    rates: dict[tuple[str, ...], dict[str, float]] = {}
    for entry in layouts:
        found = Share.of(entry.get("samples_per_s"))
        if found is not None:
            where = str(entry.get("data", "")).partition("@")[2]
            key = (where, str(entry.get("parallelism", "")), str(entry.get("label", "")))
            access = str(entry.get("access", ""))
            best = rates.setdefault(key, {})
            best[access] = max(best.get(access, 0.0), found.median)
    for (where, _, label), found_rates in rates.items():
        files, shards = found_rates.get("files"), found_rates.get("shards")
        if files and shards and files < BEHIND * shards:
            yield TINY_FILES.found(
                f"layouts on {where}{f', {label}' if label else ''}: small files give {files:,.0f} "
                f"samples/s, whole shards {shards:,.0f}",
                severity="warning",
            )
