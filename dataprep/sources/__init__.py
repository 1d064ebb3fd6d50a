"""Sources of samples: the kinds of this package, and those that other packages register."""

from __future__ import annotations

from collections.abc import Callable

from dataprep.registry import Registry
from dataprep.sources.protocol import (
    Announcing,
    HavingFolders,
    LeavingOut,
    Listing,
    Located,
    OnDisk,
    Problem,
    ReadsRuns,
    Source,
)
from dataprep.stores import StoreOptions

__all__ = [
    "Announcing",
    "HavingFolders",
    "LeavingOut",
    "Listing",
    "Located",
    "OnDisk",
    "Problem",
    "ReadsRuns",
    "Source",
    "open_source",
    "reads_runs",
]

_KINDS: Registry[Source] = Registry("dataprep.sources", "source kind")


def open_source(
    uri: str,
    kind: str = "imagefolder",
    options: StoreOptions | None = None,
    section: object | None = None,
) -> Source:
    """The source at ``uri``; kinds resolve through the entry-point group ``dataprep.sources``.

    Args:
        uri: a path or URI.
        kind: the name of the entry point.
        options: endpoint, profile and the like.
        section: the part of the config with the name of the kind, for kinds that have one.

    Raises:
        ConfigError: no such kind.
    """
    source: Callable[..., Source] = _KINDS.load(kind)
    return source(uri, options) if section is None else source(uri, options, section)


def reads_runs(kind: str) -> bool:
    """Whether jobs have to keep the order of sources of this kind; see ``ReadsRuns``."""
    return _KINDS.has(kind) and hasattr(_KINDS.load(kind), "read_runs")
