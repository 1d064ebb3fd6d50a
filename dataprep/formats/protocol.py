"""What a record format does: samples to records and back. Formats see bytes, never paths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from dataprep.errors import ConfigError
from dataprep.formats.layout import IMAGENET, Layout
from dataprep.formats.records import Buffer, RawRecord, Sink


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
        label: 0-based class index; offsets exist only inside records.
        number: position in the split's plan, the key of MXNet's index.
        width, height, channels, colorspace: of ``image``; 0 and empty where a format does
            not keep them.
        filename: base name of the source; empty where a format does not keep it.
        synset, text: of the class; empty where a format does not keep them.
        encoding: what ``image`` is: ``JPEG``, ``PNG`` or ``WEBP``.
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

    ``label_offset`` is what a record adds to each 0-based label, ``layout`` which features an
    Example has.
    """

    label_offset: int = 0
    layout: Layout = IMAGENET

    @classmethod
    def of(cls, config: Mapping[str, Any], label_offset: int) -> RecordOptions:
        """Those of a data set, from the ``config`` of its job or manifest.

        Raises:
            ConfigError: it has a layout that this version does not know.
        """
        layout = config.get("layout", "imagenet")
        parts = layout.values() if isinstance(layout, Mapping) else [layout]
        if not all(isinstance(part, str) for part in parts):
            raise ConfigError("what it was made with, 'config.layout': neither a name nor features")
        try:
            return cls(label_offset, Layout.of(layout))
        except ConfigError as error:
            raise ConfigError(f"what it was made with, 'config.layout': {error}") from None


class IndexEntry(NamedTuple):
    """Where a record stands. ``name`` is the escaped source name, ``length`` in bytes.

    ``label`` is what the record has: the class plus the format's offset.
    ``values`` are all labels of a sample that has several, as ``Sample`` has them.
    """

    number: int
    label: int
    offset: int
    length: int
    name: str
    values: tuple[float, ...] = ()


class RecordWriter(Protocol):
    """Appends samples to one shard."""

    def write(self, sample: Sample) -> tuple[int, int]:
        """Offset and length of the encoded record, framing included."""
        ...


class RecordFormat(Protocol):
    """A format by name. ``extension`` is what shard names end with."""

    name: str
    extension: str

    def default_label_offset(self, are_synsets: bool, layout: Layout = IMAGENET) -> int:
        """What is added to the 0-based label inside a record."""
        ...

    def keeps_boxes(self, options: RecordOptions) -> bool:
        """Whether records hold bounding boxes."""
        ...

    def writer(self, sink: Sink, options: RecordOptions) -> RecordWriter:
        """A writer of records that begin at the sink's first byte.

        A shard is several such runs of records, one after the other.
        """
        ...

    def read(self, data: Buffer, name: str) -> Iterator[RawRecord]:
        """The records of one shard; ``name`` is for errors.

        Raises CorruptRecord or TruncatedRecord with the record's number and offset.
        """
        ...

    def resynchronise(self, data: Buffer, offset: int) -> int | None:
        """Where the next whole record may begin after damage at ``offset``, if one can tell."""
        ...

    def decode(self, payload: Buffer, options: RecordOptions) -> Sample:
        """What a record's payload holds. Raises CorruptRecord."""
        ...

    def indexes(self, entries: Sequence[IndexEntry]) -> Mapping[str, bytes]:
        """Index files of one shard, by extension."""
        ...
