"""Storage to batches: loaders by name, through entry points."""

from __future__ import annotations

from dataprep.registry import Registry
from iobench.loaders.protocol import Batch, CountsBatches, Framework, Loader, LoaderSettings

__all__ = ["LOADERS", "Batch", "CountsBatches", "Framework", "Loader", "LoaderSettings"]

LOADERS: Registry[Loader] = Registry("iobench.loaders", "loader")
