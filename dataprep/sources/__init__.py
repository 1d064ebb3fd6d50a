"""Where samples come from: class folders, and whatever another package registers."""

from __future__ import annotations

from collections.abc import Callable

from dataprep.registry import Registry
from dataprep.sources.protocol import Listing, Problem, Source
from dataprep.stores import StoreOptions

__all__ = ["Listing", "Problem", "Source", "open_source"]

_KINDS: Registry[Source] = Registry("dataprep.sources", "source kind")


def open_source(uri: str, kind: str = "imagefolder", options: StoreOptions | None = None) -> Source:
    """The source at ``uri``; kinds resolve through the entry-point group ``dataprep.sources``.

    Raises:
        ConfigError: no such kind.
    """
    source: Callable[..., Source] = _KINDS.load(kind)
    return source(uri, options)
