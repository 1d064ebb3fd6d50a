"""Sources of samples: the kinds of this package, and those that other packages register."""

from __future__ import annotations

from collections.abc import Callable

from dataprep.errors import ConfigError
from dataprep.registry import Registry
from dataprep.sources.other_kinds import NOT_READ
from dataprep.sources.protocol import (
    Announcing,
    HavingFolders,
    LeavingOut,
    Listing,
    Located,
    OnDisk,
    Problem,
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
    "Source",
    "open_source",
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
        ConfigError: no such kind, or one that this version does not read.
    """
    if kind in NOT_READ and not _KINDS.has(kind):
        raise ConfigError(f"--kind {kind}: {NOT_READ[kind]}")
    source: Callable[..., Source] = _KINDS.load(kind)
    return source(uri, options) if section is None else source(uri, options, section)
