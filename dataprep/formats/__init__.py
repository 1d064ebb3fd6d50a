"""Record formats. Other packages can add formats through the entry points ``dataprep.formats``."""

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
"""The format that is written and read if no format is named."""

_FORMATS: Registry[RecordFormat] = Registry("dataprep.formats", "format")

_MEMBERS = (
    "name",
    "extension",
    "trailer",
    "has_checksums",
    "default_label_offset",
    "keeps_boxes",
    "writer",
    "matches",
    "span_at",
    "read",
    "decode",
    "image",
    "fields",
    "indexes",
)
"""The attributes and methods of the protocol ``RecordFormat``."""


def format_names() -> tuple[str, ...]:
    """The names of all registered formats, sorted."""
    return tuple(_FORMATS.names())


def get_format(name: str) -> RecordFormat:
    """The format with this name.

    Raises:
        ConfigError: no format has this name, its package cannot be loaded, or the format lacks a
            member of the protocol.
    """
    record_format = _FORMATS.load(name)()
    missing = [member for member in _MEMBERS if not hasattr(record_format, member)]
    if missing:
        raise ConfigError(
            f"{_FORMATS.described(name)} has no {', '.join(missing)}: install a version of its "
            "package that is made for this version of dataprep"
        )
    return record_format


def preferred_format(names: Collection[str]) -> str:
    """The format that is read if an output has these formats and no format is named.

    It is the default format, or the first of ``names`` if the output lacks the default format.
    """
    return DEFAULT_FORMAT if DEFAULT_FORMAT in names else next(iter(names))


def formats_like(head: Buffer) -> Sequence[str]:
    """The names of the formats whose shards can begin with the bytes ``head``.

    Formats of this package come first. Formats of other packages that cannot be loaded are left
    out.
    """
    own_names: list[str] = []
    other_names: list[str] = []
    for record_format in usable_formats():
        if not record_format.matches(head):
            continue
        is_of_another_package = bool(_FORMATS.origin(record_format.name))
        names = other_names if is_of_another_package else own_names
        names.append(record_format.name)
    return sorted(own_names) + sorted(other_names)


def usable_formats() -> Iterator[RecordFormat]:
    """Yield each registered format that can be loaded and has all members of the protocol."""
    for name in format_names():
        with suppress(ConfigError):
            yield get_format(name)
