"""What a record format does: samples to records and back. Formats see bytes, never paths."""

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
"""Contiguous bytes; a reader given a ``memoryview`` of a mapped file copies nothing."""

Extent: TypeAlias = tuple[int, int]
"""Offset and length of an encoded record in bytes, framing included."""

Where: TypeAlias = tuple[str, int]
"""The name of a file and the number of a record in it, for errors."""

HEAD_BYTES = 1536
"""How many first bytes of a shard tell its format."""

_PLACE = re.compile(r"^.*?record \d+ at byte \d+: ", re.DOTALL)


class Window(Protocol):
    """The bytes of a shard by their place: a ``memoryview``, or ranges read when asked for."""

    def __len__(self) -> int: ...

    def __getitem__(self, where: slice, /) -> Buffer: ...


class Sink(Protocol):
    """Anything bytes can be written to, such as a binary file; each write takes all of them."""

    def write(self, data: Buffer, /) -> object:
        """Write all of ``data``; do not modify it later."""


class Span(NamedTuple):
    """The place of one encoded record in its shard, in bytes.

    ``offset`` and ``length`` include framing and padding. ``payload`` is where the payload
    begins. A RecordIO record that was split has several ``parts``; ``payload`` and
    ``payload_bytes`` are then those of its first part.
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
    """One record and its place in the shard, in bytes, framing and padding included.

    ``payload`` is a view of the buffer that was read, or ``bytes`` where the record was joined
    from parts.
    """

    offset: int
    length: int
    payload: Buffer


class Box(NamedTuple):
    """An object in an image: its sides from 0 to 1 of the stored image, its 0-based class."""

    xmin: float
    ymin: float
    xmax: float
    ymax: float
    label: int = 0


@dataclass(frozen=True, slots=True)
class Sample:
    """One image on its way into a record or out of one.

    Attributes:
        image: the encoded image.
        label: 0-based class index, or -1 without a class; offsets exist only inside records.
        number: position in the split's plan, the key of MXNet's index.
        width, height, channels, colorspace: of ``image``; 0 and empty where a format does
            not keep them.
        filename: base name of the source; empty where a format does not keep it.
        synset, text: of the class; empty where a format does not keep them.
        encoding: the format of ``image``: ``JPEG``, ``PNG`` or ``WEBP``.
        values: all labels of a sample that has several, its class first; else empty.
        boxes: objects; empty where there are none, or a format does not keep them.
        source: whole name of the source; empty where a format does not keep it.
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
    """How records of one data set are written and read.

    ``label_offset`` is added to each 0-based label inside records. ``layout`` names the features
    of an Example.
    """

    label_offset: int = 0
    layout: Layout = IMAGENET

    @classmethod
    def of(cls, config: Mapping[str, Any], label_offset: int) -> RecordOptions:
        """The options of a data set, from the ``config`` of its job or manifest.

        Raises:
            ConfigError: its layout is not one that this version knows.
        """
        layout = Layout.of(config.get("layout", "imagenet"))
        return cls(label_offset, layout.without_classes() if config.get("unlabelled") else layout)


class IndexEntry(NamedTuple):
    """A record for an index. ``name`` is the escaped source name, ``length`` in bytes.

    ``label`` is the class plus the format's offset. ``values`` are all labels of a sample that
    has several, as in ``Sample``.
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
        """Write a sample; return offset and length of the encoded record, framing included."""


class RecordFormat(Protocol):
    """A format by name.

    A shard is the records of its samples, one after the other, and the trailer.

    Attributes:
        name: the name of the format in commands, and of the folder of its shards.
        extension: what the names of shards end with; may be empty.
        trailer: the bytes after the last record of a shard; empty for most formats.
        has_checksums: whether ``read`` finds every changed byte of a record. Readers compare
            records of other formats with their CRC-32C in the table of samples.
    """

    name: str
    extension: str
    trailer: bytes
    has_checksums: bool

    def default_label_offset(self, are_synsets: bool, layout: Layout = IMAGENET) -> int:
        """What is added to the 0-based label inside a record."""

    def keeps_boxes(self, options: RecordOptions) -> bool:
        """Whether records hold bounding boxes."""

    def writer(self, sink: Sink, options: RecordOptions) -> RecordWriter:
        """A writer of records that begin at the sink's first byte.

        A shard is several such runs of records, one after the other. Their writers do not write
        the trailer.
        """

    def matches(self, head: Buffer) -> bool:
        """Whether a shard may begin with ``head``: its first ``HEAD_BYTES``, or all its bytes."""

    def span_at(self, data: Window, offset: int, where: Where) -> Extent | None:
        """The place of the record at ``offset`` of a shard; None where the trailer begins.

        This reads headers only. ``where`` is for errors, which are those of ``read``.
        """

    def read(self, data: Buffer, name: str) -> Iterator[RawRecord]:
        """The records of a shard, or of a part that begins and ends with whole records.

        ``name`` is for errors. Raises CorruptRecord or TruncatedRecord with the record's number
        and offset.
        """

    def decode(self, payload: Buffer, options: RecordOptions) -> Sample:
        """The sample in a record's payload. Raises CorruptRecord."""

    def image(self, payload: Buffer, options: RecordOptions) -> Buffer:
        """The encoded image in a record's payload, not copied. Raises CorruptRecord."""

    def fields(self, payload: Buffer) -> Mapping[str, Feature]:
        """Everything in a record's payload by name, as it is stored, for people to look at.

        Records that other programs may have written are read as a source by these names:
        ``image``, ``label`` (a number, or several), ``synset``, ``file_name`` and ``bbox/xmin``,
        unless they are those of a layout. Raises CorruptRecord.
        """

    def indexes(self, entries: Sequence[IndexEntry]) -> Mapping[str, bytes]:
        """Index files of one shard, by extension; may be empty."""


RecordAt: TypeAlias = Callable[[memoryview, int, Where], RawRecord | None]
"""The record at an offset of a shard, or None where the trailer begins."""


def records_in(data: Buffer, name: str, record_at: RecordAt) -> Iterator[RawRecord]:
    """Yield the records of a shard, each of which begins where the one before it ends.

    ``name`` is for errors, which are those of ``record_at``.
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
    """``JPEG``, ``PNG`` or ``WEBP`` by the first bytes; JPEG where they say nothing."""
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


def without_place(message: str) -> str:
    """The message of a reader's error without name, record and offset.

    For a record that was read alone: its number and offset there mean nothing to the user.
    """
    return _PLACE.sub("", message, count=1)
