"""Where samples come from: class folders, tars, Parquet files, tables of paths, existing shards.

Each kind of source has a module with its own name, such as ``imagefolder.py`` or ``parquet.py``. To
support another kind, write a class with the methods of ``protocol.Source``, register it in the
entry-point group ``dataprep.sources``, and declare its settings in ``options.py``. Most kinds
inherit from ``files.FilesSource``, or from ``tar_source.TarSource`` if they read tars.

These modules use four terms:

- An *entry* is an item that a source lists. It is a sample, or a file that is not a sample.
- The *row* of an entry is its index in the columns of a ``Listing``.
- A *container* is a file that contains several entries, its decompressed content, or one of its row
  groups.
- The *location* of an entry is its container, its offset there, and its number of bytes. The offset
  is the first byte, or the row in a row group.
"""

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

_SOURCES: Registry[Source] = Registry("dataprep.sources", "source kind")


def open_source(
    uri: str,
    kind: str = "imagefolder",
    options: StoreOptions | None = None,
    section: object | None = None,
) -> Source:
    """Open the source at ``uri``.

    Args:
        uri: a path, or the address of a source in a store.
        kind: the name of the kind in the entry-point group ``dataprep.sources``.
        options: how the store is reached: endpoint, profile and so on.
        section: the settings of the kind, if it has any (see ``options.py``).

    Raises:
        ConfigError: there is no such kind, or the address is invalid.
    """
    source_class: Callable[..., Source] = _SOURCES.load(kind)
    if section is None:
        return source_class(uri, options)
    return source_class(uri, options, section)


def reads_runs(kind: str) -> bool:
    """Whether sources of this kind read runs of samples, so that jobs must keep their order."""
    return _SOURCES.has(kind) and hasattr(_SOURCES.load(kind), "read_runs")
