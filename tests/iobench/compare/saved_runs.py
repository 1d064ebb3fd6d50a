"""Saved runs whose figures are known, for tests of comparisons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from iobench.compare import Saved
from iobench.result import Result
from iobench.trial import Cold, Status, Trial, TrialSpec

MACHINE: Mapping[str, Any] = {
    "iobench": "0.3.0",
    "python": "3.11.2",
    "kernel": "Linux 6.8.0",
    "processor": "AMD EPYC 9354 32-Core Processor",
    "processors": 16,
    "memory_bytes": 128 * 2**30,
    "gpus": [{"name": "NVIDIA H200", "memory.total": "143771 MiB", "driver_version": "570.86"}],
    "libraries": {"numpy": "2.4.1", "torch": "2.13.0"},
    "targets": {
        "nvme": {
            "file_system": "xfs",
            "mount_options": "rw",
            "total_bytes": 64 * 10**9,
            "free_bytes": 5 * 10**9,
        }
    },
}
COLD = Cold("cold", "cold", 0.0, 0.998, True)
UNPROVED = Cold("cold", "warm", 0.34, 0.61, True, "34 % of the pages stayed resident")
WARM = Cold("warm", "warm", 1.0, 0.0, True)

STEADY = (100.0, 100.4, 99.7, 100.2, 99.9, 100.6)
"""Six repeats that hardly scatter: a change of 5 % is told."""

NOISY = (100.0, 112.0, 91.0, 104.0, 96.0, 108.0)
"""Six repeats that scatter by 8 %: it is not."""


def params(loader: str = "torch-map", **changes: Any) -> dict[str, Any]:
    """Of a loader's point."""
    return {
        "loader": loader,
        "data": "shards@disk",
        "cache": "warm",
        "batch_size": 64,
        "workers": 2,
        "prefetch": 2,
        "seconds": 1.0,
        **changes,
    }


def repeats(
    values: Sequence[float],
    point: Mapping[str, Any] | None = None,
    *,
    kind: str = "loader",
    metric: str = "samples_per_s",
    cold: Cold | None = WARM,
    **metrics: Any,
) -> list[Trial]:
    """Trials of one point that were done."""
    at = params() if point is None else dict(point)
    return [
        Trial(
            TrialSpec(kind, at, repeat).id,
            kind,
            at,
            repeat,
            "done",
            {metric: value, **metrics},
            cold,
            seconds=2.0,
        )
        for repeat, value in enumerate(values)
    ]


def stopped(status: Status, reason: str, count: int = 6, **changes: Any) -> list[Trial]:
    """Trials of one point that were not."""
    at = params(**changes)
    return [
        Trial(TrialSpec("loader", at, i).id, "loader", at, i, status, reason=reason)
        for i in range(count)
    ]


def saved(
    *trials: Trial,
    where: str = "base",
    started: str = "2026-11-21T14:35:00+00:00",
    environment: Mapping[str, Any] = MACHINE,
    config: Mapping[str, Any] | None = None,
) -> Saved:
    """A run as it is read."""
    told = {"name": "nightly", "repeats": 6} if config is None else config
    return Saved(where, Result("nightly", started, environment, told, tuple(trials)))


def scaled(values: Sequence[float], factor: float) -> list[float]:
    """Every repeat by the same factor."""
    return [value * factor for value in values]
