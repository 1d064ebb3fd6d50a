"""PURE. A watched loop that waits: what its figures say of the cause, and what to try.

After what the cloud's guides to training say: a long wait before the first step is download or
start; much waiting with busy processors is preparation; much waiting with idle processors and
quiet disks is a loader with too few workers, or a store that is waited for. Not more is claimed
than what stands beside it as evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from iobench.result import Finding
from iobench.trial import Trial

_HIGH = 0.20  # share of the time that is spent waiting
_BUSY, _IDLE = 0.80, 0.50  # of all processors
_LATE, _STARTS = 0.05, 0.05  # of the loop's time: a first batch, the starts of epochs
_OUTLIER = 3.0  # times the median step

LATE_S = 10.0
"""A first batch that is worth a word comes no earlier."""


def findings(trials: Iterable[Trial]) -> Iterator[Finding]:
    """Of each watched loop."""
    for trial in trials:
        if trial.kind == "watch" and trial.status == "done":
            named = f"loop over {trial.params.get('loader', '')}"
            for rule in _RULES:
                yield from rule(named, trial.metrics)


def _waiting(named: str, metrics: Any) -> Iterator[Finding]:
    share, busy = metrics.get("wait_share") or 0.0, metrics.get("cpu_busy_share")
    idle = metrics.get("device_wait_share")
    # What a host waits for while its GPU computes is not lost.
    if (share if idle is None else idle) <= _HIGH:
        return
    said = f"{named}: waits for data {share:.0%} of its time"
    if idle is not None:
        said += f", its GPU idle for {idle:.0%}"
    if busy is None:
        advice = "see which of processors, disks and network is busy meanwhile"
        yield Finding("waiting", "problem", said, advice)
    elif busy >= _BUSY and metrics.get("loop_cpu_share", busy) < busy / 2:
        own = metrics["loop_cpu_share"]
        yield Finding(
            "waiting-others",
            "problem",
            f"{said}, all processors are busy {busy:.0%}, of that {own:.0%} by the loop and its "
            "workers",
            "other programs have the processors: look at what runs beside the training",
        )
    elif busy >= _BUSY:
        yield Finding(
            "waiting-preparation",
            "problem",
            f"{said}, all processors are busy {busy:.0%}",
            "less work a sample: images resized beforehand (dataprep shard --size), cheaper "
            "augmentation, decoding to the size that is needed; or more processors",
        )
    elif busy < _IDLE:
        disk = metrics.get("disk_read_mb_per_s")
        read = "" if disk is None else f", disks give {disk:,.0f} MB/s"
        yield Finding(
            "waiting-workers",
            "problem",
            f"{said}, all processors are busy only {busy:.0%}{read}",
            "more workers and more batches ahead (num_workers, prefetch_factor); if that brings "
            "nothing, storage is waited for: iobench run configs/bench/disk.yaml or s3.yaml "
            "tells what it can give",
        )
    else:
        yield Finding(
            "waiting",
            "problem",
            f"{said}, all processors are busy {busy:.0%}: neither idle nor full",
            "try more workers; iobench run configs/bench/train-resnet50.yaml splits reading "
            "from preparing",
        )


def _first_batch(named: str, metrics: Any) -> Iterator[Finding]:
    first_s, seconds = metrics.get("time_to_first_batch_s") or 0.0, metrics.get("seconds") or 0.0
    if first_s >= LATE_S and first_s >= _LATE * seconds:
        yield Finding(
            "late-first-batch",
            "warning",
            f"{named}: {first_s:.0f} s to the first batch, beside {seconds:.0f} s of steps",
            "look for a download, a listing of many files or workers that import much before it",
        )


def _starts(named: str, metrics: Any) -> Iterator[Finding]:
    share = metrics.get("epoch_start_share") or 0.0
    if share > _STARTS:
        each_s = metrics.get("epoch_start_s") or 0.0
        yield Finding(
            "epoch-starts",
            "warning",
            f"{named}: {share:.0%} of its time is the start of epochs, {_duration(each_s)} each",
            "keep the workers from epoch to epoch (persistent_workers=True)",
        )


def _outliers(named: str, metrics: Any) -> Iterator[Finding]:
    middle, rare = metrics.get("step_s_p50"), metrics.get("step_s_p99")
    if middle and rare and rare > _OUTLIER * middle:
        yield Finding(
            "step-outliers",
            "info",
            f"{named}: one step of a hundred takes {rare / middle:.1f} times the median or more",
            "see in the charts whether waits or work stand out, and what the machine did then",
        )


def _duration(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1e3:.0f} ms"


_RULES: tuple[Callable[[str, Any], Iterator[Finding]], ...] = (
    _waiting,
    _first_batch,
    _starts,
    _outliers,
)
