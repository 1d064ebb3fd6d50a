"""PURE. The protocol of record formats. A format encodes samples as records and decodes records.

Formats work on bytes. They do not know where shards are stored. To add a format to this package,
write its file and register its class as an entry point ``dataprep.formats`` in ``pyproject.toml``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from dataprep.errors import RecordError
from dataprep.formats.layout import IMAGENET, Layout

if TYPE_CHECKING:
    from dataprep.formats.example import Feature

Buffer: TypeAlias = bytes | bytearray | memoryview
"""Contiguous bytes. Readers of a ``memoryview`` do not copy its bytes."""

Extent: TypeAlias = tuple[int, int]
"""The offset and the length of an encoded record in bytes. The length includes the framing."""

Where: TypeAlias = tuple[str, int]
"""The name of a file and the number of a record in this file. Error messages contain both."""

HEAD_BYTES = 1536
"""The number of bytes at the start of a shard that are enough to recognise its format.

A tar needs the most: an empty tar is recognised because it ends after 1,024 zero bytes.
"""

_LOCATION = re.compile(r"^.*?record \d+ at byte \d+: ", re.DOTALL)


class Window(Protocol):
    """The bytes of a shard: a ``memoryview``, or an object that reads a slice when it is needed."""

    def __len__(self) -> int: ...

    def __getitem__(self, bounds: slice, /) -> Buffer: ...


class Sink(Protocol):
    """An object to which bytes are written, such as a binary file."""

    def write(self, data: Buffer, /) -> object:
        """Write all of ``data``. The caller must not modify ``data`` later."""


class Span(NamedTuple):
    """The location of one encoded record in its shard, in bytes.

    Attributes:
        offset: where the record begins, which is where its framing begins.
        length: the size of the record with framing and padding.
        payload_offset: where the payload begins. In a split record, where its first part begins.
        payload_bytes: the size of the payload. In a split record, the size of its first part.
        parts: the number of parts of a RecordIO record; more than 1 if the record is split.
    """

    offset: int
    length: int
    payload_offset: int
    payload_bytes: int
    parts: int = 1

    @property
    def end(self) -> int:
        """The offset at which the next record begins."""
        return self.offset + self.length


class RawRecord(NamedTuple):
    """One record and its location in the shard.

    Attributes:
        offset: where the record begins, in bytes.
        length: the size of the record with framing and padding, in bytes.
        payload: the content without framing. It is a view of the buffer that was read, or ``bytes``
            if it was joined from parts.
    """

    offset: int
    length: int
    payload: Buffer


class Box(NamedTuple):
    """The bounding box of an object in an image.

    Attributes:
        xmin, ymin, xmax, ymax: the sides, as shares of the width or height of the stored image,
            from 0 to 1.
        label: the 0-based class of the object.
    """

    xmin: float
    ymin: float
    xmax: float
    ymax: float
    label: int = 0


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample that is written into a record, or was read from a record.

    If a format does not store an attribute, it is 0 or empty after reading.

    Attributes:
        image: the encoded image.
        label: 0-based class index, without the offset that is added in records; -1 if the sample
            has no class.
        number: position of the sample in the plan of the split. It is also the key in MXNet's
            index.
        width, height, channels, colorspace: properties of ``image``.
        filename: base name of the source file.
        synset, text: name and description of the class.
        encoding: the format of ``image``: ``JPEG``, ``PNG`` or ``WEBP``.
        values: all labels of a sample with several labels. The first value is the class. Empty for
            samples with one label.
        boxes: the objects in the image.
        source: full name of the source file.
    """

    image: Buffer
    label: int
    number: int = 0
    width: int = 0
    height: int = 0
    channels: int = 0
    colorspace: str = ""
    filename: bytes = b""
    synset: bytes = b""
    text: bytes = b""
    encoding: str = "JPEG"
    values: tuple[float, ...] = ()
    boxes: tuple[Box, ...] = ()
    source: bytes = b""


@dataclass(frozen=True, slots=True)
class RecordOptions:
    """How the records of one data set are written and read.

    Attributes:
        label_offset: the number that is added to each 0-based label inside records.
        layout: the names of the features of an Example.
    """

    label_offset: int = 0
    layout: Layout = IMAGENET

    @classmethod
    def of(cls, config: Mapping[str, Any], label_offset: int) -> RecordOptions:
        """The options of a data set, from the ``config`` of its job or manifest.

        Raises:
            ConfigError: this version does not support the layout.
        """
        layout = Layout.of(config.get("layout", "imagenet"))
        if config.get("unlabelled"):
            layout = layout.without_classes()
        return cls(label_offset, layout)


class IndexEntry(NamedTuple):
    """The properties of one record that index files contain.

    Attributes:
        number: the number of the sample in the plan.
        label: the class plus the label offset of the format.
        offset, length: the location of the record, with framing, in bytes.
        name: the escaped name of the source file.
        values: all labels of a sample with several labels, as in ``Sample``.
    """

    number: int
    label: int
    offset: int
    length: int
    name: str
    values: tuple[float, ...] = ()


class RecordWriter(Protocol):
    """Appends samples to one shard."""

    def write(self, sample: Sample) -> Extent:
        """Write a sample. Return the offset and the length of the encoded record, with framing."""


class RecordFormat(Protocol):
    """A record format.

    A shard consists of the records of its samples, one after the other, followed by the trailer.

    Attributes:
        name: the name of the format in commands. The folder with its shards has the same name.
        extension: the extension of the names of shards; may be empty.
        trailer: the bytes after the last record of a shard; empty for most formats.
        has_checksums: whether ``read`` detects a changed byte anywhere in a record. If false,
            readers compare each record with its CRC-32C in the table of samples.
    """

    name: str
    extension: str
    trailer: bytes
    has_checksums: bool

    def default_label_offset(self, are_synsets: bool, layout: Layout = IMAGENET) -> int:
        """The number that is added to 0-based labels in records, unless the config sets it."""

    def keeps_boxes(self, options: RecordOptions) -> bool:
        """Whether records store bounding boxes."""

    def writer(self, sink: Sink, options: RecordOptions) -> RecordWriter:
        """A writer that appends records to an empty sink.

        Writers do not write the trailer, because a shard is joined from the records of several
        writers.
        """

    def matches(self, head: Buffer) -> bool:
        """Whether ``head`` can be the start of a shard of this format.

        ``head`` is the first ``HEAD_BYTES`` of a file, or the whole file if it is shorter.
        """

    def span_at(self, data: Window, offset: int, where: Where) -> Extent | None:
        """The location of the record at ``offset``; None if the trailer begins there.

        Only the headers of the record are read. Raises the same errors as ``read``. Their messages
        contain ``where``.
        """

    def read(self, data: Buffer, name: str) -> Iterator[RawRecord]:
        """Yield the records of a shard, or of a part of it that consists of whole records.

        Error messages contain the ``name`` of the shard. Raises CorruptRecord or TruncatedRecord
        with the number and the offset of the record.
        """

    def decode(self, payload: Buffer, options: RecordOptions) -> Sample:
        """The sample in a record's payload. Raises CorruptRecord."""

    def image(self, payload: Buffer, options: RecordOptions) -> Buffer:
        """The encoded image in a record's payload, without a copy. Raises CorruptRecord."""

    def fields(self, payload: Buffer) -> Mapping[str, Feature]:
        """All values in a record's payload, by name, as they are stored.

        ``dataprep inspect`` shows these values. A source that reads records of other programs
        expects the names of a layout, or the names ``image``, ``label`` (one or more numbers),
        ``synset``, ``file_name`` and ``bbox/xmin`` (which shows that there are boxes). Raises
        CorruptRecord.
        """

    def indexes(self, entries: Sequence[IndexEntry]) -> Mapping[str, bytes]:
        """The content of each index file of a shard, by extension; empty if there are none."""


RecordAt: TypeAlias = Callable[[memoryview, int, Where], RawRecord | None]
"""Reads the record at an offset of a shard; returns None if the trailer begins there."""


def records_in(data: Buffer, name: str, record_at: RecordAt) -> Iterator[RawRecord]:
    """Yield the records of a shard, which follow each other without gaps.

    ``name`` is the name of the shard in errors. Raises the same errors as ``record_at``.
    """
    view = memoryview(data).cast("B")
    number = offset = 0
    while offset < len(view):
        record = record_at(view, offset, (name, number))
        if record is None:
            return
        yield record
        number += 1
        offset += record.length


def encoding_of(image: Buffer) -> str:
    """The format of an image: ``PNG`` or ``WEBP`` by its first bytes, otherwise ``JPEG``."""
    head = bytes(image[:12])
    if head.startswith(b"\x89PNG"):
        return "PNG"
    if head[:4] == b"RIFF" and head[8:] == b"WEBP":
        return "WEBP"
    return "JPEG"


def damaged(
    kind: type[RecordError], name: str, record: int, offset: int, problem: str
) -> RecordError:
    """The error for a damaged record, with its shard, its number and its offset in bytes."""
    message = f"{name}: record {record} at byte {offset}: {problem}; fetch or write the file again"
    return kind(message, record=record, offset=offset)


def without_location(message: str) -> str:
    """Remove the file name, the record number and the offset from an error message.

    If a record was read alone, its number and offset in the message would be misleading.
    """
    return _LOCATION.sub("", message, count=1)
