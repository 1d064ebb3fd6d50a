"""Pure codecs of record formats; others join by the entry-point group ``dataprep.formats``."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress

from dataprep.errors import ConfigError
from dataprep.formats.example import BytesList, Feature, FloatList, Int64List
from dataprep.formats.layout import IMAGENET, Layout
from dataprep.formats.protocol import (
    HEAD_BYTES,
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
    "DEFAULT_FORMAT",
    "HEAD_BYTES",
    "IMAGENET",
    "Box",
    "Buffer",
    "BytesList",
    "Feature",
    "FloatList",
    "IndexEntry",
    "Int64List",
    "Layout",
    "RecordFormat",
    "RecordOptions",
    "RecordWriter",
    "Sample",
    "format_names",
    "formats_like",
    "get_format",
    "preferred_format",
    "usable_formats",
]

DEFAULT_FORMAT = "tfrecord"
"""The format that is written and read if none is named."""


_FORMATS: Registry[RecordFormat] = Registry("dataprep.formats", "format")


def format_names() -> tuple[str, ...]:
    """Every registered format, sorted."""
    return tuple(_FORMATS.names())


def get_format(name: str) -> RecordFormat:
    """The format called ``name``.

    Raises:
        ConfigError: none is registered under that name, or it lacks a member of the protocol.
    """
    record_format = _FORMATS.load(name)()
    missing = [member for member in _MEMBERS if not hasattr(record_format, member)]
    if missing:
        raise ConfigError(
            f"{_FORMATS.described(name)} has no {', '.join(missing)}: install a version of its "
            "package that is made for this version of dataprep"
        )
    return record_format


_MEMBERS = (
    *("name", "extension", "trailer", "has_checksums", "default_label_offset", "keeps_boxes"),
    *("writer", "matches", "span_at", "read", "decode", "image", "fields", "indexes"),
)


def preferred_format(names: Collection[str]) -> str:
    """The format to read of an output that has these: the default one, or the first."""
    return DEFAULT_FORMAT if DEFAULT_FORMAT in names else next(iter(names))


def formats_like(head: Buffer) -> Sequence[str]:
    """The formats of which a shard may begin with these bytes, those of this package first.

    A format of another package that cannot be loaded is left out.
    """
    matching = [form.name for form in usable_formats() if form.matches(head)]
    return sorted(matching, key=lambda name: (bool(_FORMATS.origin(name)), name))


def usable_formats() -> Iterator[RecordFormat]:
    """Every registered format that can be loaded and has all members of the protocol."""
    for name in format_names():
        with suppress(ConfigError):
            yield get_format(name)
