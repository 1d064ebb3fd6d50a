"""Pure codecs of record formats; others join by the entry-point group ``dataprep.formats``."""

from __future__ import annotations

from dataprep.formats.layout import IMAGENET, Layout
from dataprep.formats.protocol import (
    Box,
    Buffer,
    IndexEntry,
    RecordFormat,
    RecordOptions,
    RecordWriter,
    Sample,
)
from dataprep.registry import Registry

__all__ = [
    "IMAGENET",
    "Box",
    "Buffer",
    "IndexEntry",
    "Layout",
    "RecordFormat",
    "RecordOptions",
    "RecordWriter",
    "Sample",
    "format_names",
    "get_format",
]

_FORMATS: Registry[RecordFormat] = Registry("dataprep.formats", "format")


def format_names() -> tuple[str, ...]:
    """Every registered format, sorted."""
    return tuple(_FORMATS.names())


def get_format(name: str) -> RecordFormat:
    """The format called ``name``.

    Raises:
        ConfigError: none is registered under that name.
    """
    return _FORMATS.load(name)()
