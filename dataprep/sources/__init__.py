"""Where samples come from: class folders, and whatever another package registers."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import cast

from dataprep.errors import ConfigError
from dataprep.sources.protocol import Listing, Problem, Source
from dataprep.stores import StoreOptions

__all__ = ["Listing", "Problem", "Source", "open_source"]


def open_source(uri: str, kind: str = "imagefolder", options: StoreOptions | None = None) -> Source:
    """The source at ``uri``; kinds resolve through the entry-point group ``dataprep.sources``.

    Raises:
        ConfigError: no such kind.
    """
    known = entry_points(group="dataprep.sources")
    if kind not in known.names:
        raise ConfigError(f"no source kind {kind!r}: use one of {', '.join(sorted(known.names))}")
    return cast(Source, known[kind].load()(uri, options))
