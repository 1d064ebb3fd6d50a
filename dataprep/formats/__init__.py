"""Pure codecs of record formats; others join by the entry-point group ``dataprep.formats``."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import cast

from dataprep.errors import ConfigError
from dataprep.formats.protocol import IndexEntry, RecordFormat, RecordWriter, Sample

__all__ = ["IndexEntry", "RecordFormat", "RecordWriter", "Sample", "format_names", "get_format"]


def format_names() -> tuple[str, ...]:
    """Every registered format, sorted."""
    return tuple(sorted(entry_points(group="dataprep.formats").names))


def get_format(name: str) -> RecordFormat:
    """The format called ``name``.

    Raises:
        ConfigError: none is registered under that name.
    """
    known = entry_points(group="dataprep.formats")
    if name not in known.names:
        raise ConfigError(f"no format {name!r}: use one of {', '.join(format_names())}")
    return cast(RecordFormat, known[name].load()())
