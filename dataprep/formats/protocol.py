"""PURE. The protocol of record formats, which turn samples into records and back.

Formats work on bytes. They do not know where shards are stored.
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
"""Contiguous bytes. From a ``memoryview`` of a mapped file, readers copy nothing."""

Extent: TypeAlias = tuple[int, int]
"""Offset and length of an encoded record in bytes, framing included."""

Where: TypeAlias = tuple[str, int]
"""The name of a file and the number of a record in it, for errors."""

HEAD_BYTES = 1536
"""How many bytes at the start of a shard are enough to recognise its format."""

_LOCATION = re.compile(r"^.*?record \d+ at byte \d+: ", re.DOTALL)


class Window(Protocol):
    """The bytes of a shard: a ``memoryview``, or an object that reads each slice when needed."""

    def __len__(self) -> int: ...

    def __getitem__(self, where: slice, /) -> Buffer: ...


class Sink(Protocol):
    """Anything that takes bytes, such as a binary file. Each write takes all bytes."""

    def write(self, data: Buffer, /) -> object:
        """Write all of ``data``; do not modify it later."""


class Span(NamedTuple):
    """The location of one encoded record in its shard, in bytes.

    Attributes:
        offset: the first byte of the record, which is that of its framing.
        length: the size of the record with framing and padding.
        payload: the first byte of the payload; in a split record, of its first part.
        payload_bytes: the size of the payload; in a split record, of its first part.
        parts: the number of parts of a RecordIO record; more than 1 if it was split.
    """

    offset: int
    length: int
    payload: int
    payload_bytes: int
    parts: int = 1

    @property
    def end(self) -> int:
        """Where the next record begins."""
        return self.offset + self.length


class RawRecord(NamedTuple):
    """One record and its location in the shard.

    Attributes:
        offset: the first byte of the record, which is that of its framing.
        length: the size of the record with framing and padding.
        payload: a view of the buffer that was read, or ``bytes`` if the payload was joined from
            parts.
    """

    offset: int
    length: int
    payload: Buffer


class Box(NamedTuple):
    """An object in an image. Its sides are fractions of the stored image, from 0 to 1.

    ``label`` is its 0-based class.
    """

    xmin: float
    ymin: float
    xmax: float
    ymax: float
    label: int = 0


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample, to be written into a record or read from a record.

    An attribute that the format does not store is 0 or empty when it is read.

    Attributes:
        image: the encoded image.
        label: 0-based class index, without the offset that records add; -1 without a class.
        number: position in the plan of the split, and key in MXNet's index.
        width, height, channels, colorspace: properties of ``image``.
        filename: base name of the source file.
        synset, text: name and description of the class.
        encoding: the format of ``image``: ``JPEG``, ``PNG`` or ``WEBP``.
        values: all labels, the class first, if the sample has several labels; otherwise empty.
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
        return cls(label_offset, layout.without_classes() if config.get("unlabelled") else layout)


class IndexEntry(NamedTuple):
    """The description of one record for an index.

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
        """Write a sample; return offset and length of the encoded record, with framing."""


class RecordFormat(Protocol):
    """A record format.

    A shard consists of the records of its samples, one after the other, and the trailer.

    Attributes:
        name: the name of the format in commands, and of the folder with its shards.
        extension: the end of the names of shards; may be empty.
        trailer: the bytes after the last record of a shard; empty for most formats.
        has_checksums: whether ``read`` detects every changed byte of a record. If not, readers
            compare records with their CRC-32C in the table of samples.
    """

    name: str
    extension: str
    trailer: bytes
    has_checksums: bool

    def default_label_offset(self, are_synsets: bool, layout: Layout = IMAGENET) -> int:
        """The number that is added to the 0-based label inside a record, unless configured."""

    def keeps_boxes(self, options: RecordOptions) -> bool:
        """Whether records store bounding boxes."""

    def writer(self, sink: Sink, options: RecordOptions) -> RecordWriter:
        """A writer that appends records to an empty sink.

        A shard is joined from the records of several writers and the trailer. Writers do not write
        the trailer.
        """

    def matches(self, head: Buffer) -> bool:
        """Whether ``head`` can be the start of a shard of this format.

        ``head`` is the first ``HEAD_BYTES`` of a file, or the whole file if it is shorter.
        """

    def span_at(self, data: Window, offset: int, where: Where) -> Extent | None:
        """The location of the record at ``offset`` of a shard; None if the trailer begins there.

        Only headers are read. ``where`` is for errors, which are those of ``read``.
        """

    def read(self, data: Buffer, name: str) -> Iterator[RawRecord]:
        """Yield the records of a shard, or of a part of it that consists of whole records.

        ``name`` is what errors call the shard. Raises CorruptRecord or TruncatedRecord with the
        record's number and offset.
        """

    def decode(self, payload: Buffer, options: RecordOptions) -> Sample:
        """The sample in a record's payload. Raises CorruptRecord."""

    def image(self, payload: Buffer, options: RecordOptions) -> Buffer:
        """The encoded image in a record's payload, not copied. Raises CorruptRecord."""

    def fields(self, payload: Buffer) -> Mapping[str, Feature]:
        """All values in a record's payload, by name, as they are stored.

        ``dataprep inspect`` shows them. A source of records of other programs uses the names
        ``image``, ``label`` (one or more numbers), ``synset``, ``file_name`` and ``bbox/xmin``,
        unless the names are those of a layout. Raises CorruptRecord.
        """

    def indexes(self, entries: Sequence[IndexEntry]) -> Mapping[str, bytes]:
        """The index files of one shard, by extension; may be empty."""


RecordAt: TypeAlias = Callable[[memoryview, int, Where], RawRecord | None]
"""Reads the record at an offset of a shard; returns None if the trailer begins there."""


def records_in(data: Buffer, name: str, record_at: RecordAt) -> Iterator[RawRecord]:
    """Yield the records of a shard, which follow each other without gaps.

    ``name`` is what errors call the shard. Raises as ``record_at``.
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
    """``PNG`` or ``WEBP``, recognised by the first bytes; ``JPEG`` for all other images."""
    head = bytes(image[:12])
    if head.startswith(b"\x89PNG"):
        return "PNG"
    return "WEBP" if head[:4] == b"RIFF" and head[8:] == b"WEBP" else "JPEG"


def damaged(
    kind: type[RecordError], name: str, record: int, offset: int, problem: str
) -> RecordError:
    """The error for record number ``record`` of ``name``, which begins at byte ``offset``."""
    message = f"{name}: record {record} at byte {offset}: {problem}; fetch or write the file again"
    return kind(message, record=record, offset=offset)


def without_location(message: str) -> str:
    """Remove file name, record number and offset from the message of a reader's error.

    Use it for a record that was read alone, so that its number and offset would be misleading.
    """
    return _LOCATION.sub("", message, count=1)
