"""Storage to batches: loaders by name, through entry points."""

from __future__ import annotations

from dataprep.registry import Registry
from iobench.loaders.protocol import (
    Batch,
    CountsBatches,
    CountsReads,
    FirstBatch,
    Framework,
    HoldsSamples,
    Loader,
    LoaderSettings,
    ReadPattern,
    SplitsFirstBatch,
    TimesBatches,
    WorkerBatch,
)

__all__ = [
    "LOADERS",
    "Batch",
    "CountsBatches",
    "CountsReads",
    "FirstBatch",
    "Framework",
    "HoldsSamples",
    "Loader",
    "LoaderSettings",
    "ReadPattern",
    "SplitsFirstBatch",
    "TimesBatches",
    "WorkerBatch",
]

LOADERS: Registry[Loader] = Registry("iobench.loaders", "loader")
