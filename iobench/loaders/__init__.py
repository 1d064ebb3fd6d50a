"""Loaders turn stored data into batches. They are found by name, through entry points."""

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
    ReadPattern,
    SplitsFirstBatch,
    TimesBatches,
    WorkerBatch,
)
from iobench.loaders.settings import ImageSettings, LoaderSettings

__all__ = [
    "LOADERS",
    "Batch",
    "CountsBatches",
    "CountsReads",
    "FirstBatch",
    "Framework",
    "HoldsSamples",
    "ImageSettings",
    "Loader",
    "LoaderSettings",
    "ReadPattern",
    "SplitsFirstBatch",
    "TimesBatches",
    "WorkerBatch",
]

LOADERS: Registry[Loader] = Registry("iobench.loaders", "loader")
