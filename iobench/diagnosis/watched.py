"""PURE. A watched loop that waits: what its figures say of the cause, and what to try.

After what the cloud's guides to training say: a long wait before the first step is download or
start; much waiting with busy processors is preparation; much waiting with idle processors and
quiet disks is a loader with too few workers, or a store that is waited for. Not more is claimed
than what stands beside it as evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from iobench.diagnosis.loop import BUSY, IDLE
from iobench.diagnosis.rule import FINE, HIGH, Rule
from iobench.diagnosis.sources import CLOUD_GUIDE, OURS, PROFILER
from iobench.diagnosis.steps import LATE_FIRST, LATE_S, outlier
from iobench.result import Finding
from iobench.trial import Trial

_STARTS = 0.05  # of the loop's time

_WAITS = f"a watched loop waits for data more than {HIGH:.0%} of its time"
_SEEN = "wait_share, or device_wait_share where the GPU's idle time is known; cpu_busy_share"
OTHERS = Rule(
    "waiting-others",
    "Other programs have the processors",
    "cause",
    "problem",
    f"{_WAITS}, {BUSY:.0%} of the processors are busy, and less than half of that is its own",
    f"{_SEEN}, loop_cpu_share",
    "other programs have the processors: look at what runs beside the training",
    CLOUD_GUIDE,
)
PREPARATION = Rule(
    "waiting-preparation",
    "The loop waits for preparing: processors are busy",
    "cause",
    "problem",
    f"{_WAITS}, and {BUSY:.0%} of the processors are busy",
    _SEEN,
    "less work a sample: images resized beforehand (dataprep shard --size), cheaper "
    "augmentation, decoding to the size that is needed; or more processors",
    CLOUD_GUIDE,
)
WORKERS = Rule(
    "waiting-workers",
    "The loop waits while processors are idle: too few workers, or a store that is waited for",
    "cause",
    "problem",
    f"{_WAITS}, and less than {IDLE:.0%} of the processors are busy",
    f"{_SEEN}, disk_read_mb_per_s",
    "more workers and more batches ahead (num_workers, prefetch_factor); if that brings "
    "nothing, storage is waited for: iobench run configs/bench/disk.yaml or s3.yaml "
    "tells what it can give",
    CLOUD_GUIDE,
)
WAITING = Rule(
    "waiting",
    "The loop waits for data",
    "cause",
    "problem",
    f"{_WAITS}, and processors are neither idle nor busy, or were not read",
    _SEEN,
    "try more workers; iobench run configs/bench/train-resnet50.yaml splits reading from preparing",
    PROFILER,
)
EPOCH_STARTS = Rule(
    "epoch-starts",
    "Each epoch begins anew",
    "cause",
    "warning",
    f"the starts of epochs take more than {_STARTS:.0%} of a watched loop's time",
    "epoch_start_share, epoch_start_s",
    "keep the workers from epoch to epoch (persistent_workers=True)",
    OURS,
)
RULES = (OTHERS, PREPARATION, WORKERS, WAITING, EPOCH_STARTS)


def findings(trials: Iterable[Trial]) -> Iterator[Finding]:
    """Of each watched loop."""
    for trial in trials:
        if trial.kind == "watch" and trial.status == "done":
            named = f"loop over {trial.params.get('loader', '')}"
            for rule in _FIRING:
                yield from rule(named, trial.metrics)


def _waiting(named: str, metrics: Any) -> Iterator[Finding]:
    share, busy = metrics.get("wait_share") or 0.0, metrics.get("cpu_busy_share")
    idle = metrics.get("device_wait_share")
    # What a host waits for while its GPU computes is not lost.
    lost = share if idle is None else idle
    if lost <= HIGH:
        return
    said = f"{named}: waits for data {share:.0%} of its time"
    if idle is not None:
        said += f", its GPU idle for {idle:.0%}"
    if busy is None:
        advice = "see which of processors, disks and network is busy meanwhile"
        yield WAITING.found(said, advice, share=lost)
    elif busy >= BUSY and metrics.get("loop_cpu_share", busy) < busy / 2:
        own = metrics["loop_cpu_share"]
        yield OTHERS.found(
            f"{said}, all processors are busy {busy:.0%}, of that {own:.0%} by the loop and its "
            "workers",
            share=lost,
        )
    elif busy >= BUSY:
        yield PREPARATION.found(f"{said}, all processors are busy {busy:.0%}", share=lost)
    elif busy < IDLE:
        disk = metrics.get("disk_read_mb_per_s")
        read = "" if disk is None else f", disks give {disk:,.0f} MB/s"
        yield WORKERS.found(f"{said}, all processors are busy only {busy:.0%}{read}", share=lost)
    else:
        yield WAITING.found(
            f"{said}, all processors are busy {busy:.0%}: neither idle nor full", share=lost
        )


def _first_batch(named: str, metrics: Any) -> Iterator[Finding]:
    first_s, seconds = metrics.get("time_to_first_batch_s") or 0.0, metrics.get("seconds") or 0.0
    if first_s >= LATE_S and first_s >= FINE * seconds:
        yield LATE_FIRST.found(
            f"{named}: {first_s:.0f} s to the first batch, beside {seconds:.0f} s of steps",
            "look for a download, a listing of many files or workers that import much before it",
        )


def _starts(named: str, metrics: Any) -> Iterator[Finding]:
    share = metrics.get("epoch_start_share") or 0.0
    if share > _STARTS:
        each_s = metrics.get("epoch_start_s") or 0.0
        yield EPOCH_STARTS.found(
            f"{named}: {share:.0%} of its time is the start of epochs, {_duration(each_s)} each",
            share=share,
        )


_FIRING: tuple[Callable[[str, Any], Iterator[Finding]], ...] = (
    _waiting,
    _first_batch,
    _starts,
    outlier,
)


def _duration(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1e3:.0f} ms"
