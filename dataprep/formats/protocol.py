"""What a record format does: samples to records and back. Formats see bytes, never paths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from dataprep.formats.records import Buffer, RawRecord, Sink


@dataclass(frozen=True, slots=True)
class Sample:
    """One image on its way into a record or out of one.

    Attributes:
        image: the encoded JPEG.
        label: 0-based class index; offsets exist only inside records.
        number: position in the split's plan, the key of MXNet's index.
        width, height, channels, colorspace: of ``image``; 0 and empty where a format does
            not keep them.
        filename: base name of the source; empty where a format does not keep it.
        synset, text: of the class; empty where a format does not keep them.
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


class IndexEntry(NamedTuple):
    """Where a record stands. ``name`` is the escaped source name, ``length`` in bytes."""

    number: int
    label: int
    offset: int
    length: int
    name: str


class RecordWriter(Protocol):
    """Appends samples to one shard."""

    def write(self, sample: Sample) -> tuple[int, int]:
        """Offset and length of the encoded record, framing included."""
        ...


class RecordFormat(Protocol):
    """A format by name. ``extension`` is what shard names end with."""

    name: str
    extension: str

    def default_label_offset(self, are_synsets: bool) -> int:
        """What is added to the 0-based label inside a record."""
        ...

    def writer(self, sink: Sink, label_offset: int) -> RecordWriter:
        """A writer for one shard that begins at the sink's first byte."""
        ...

    def read(self, data: Buffer, name: str) -> Iterator[RawRecord]:
        """The records of one shard; ``name`` is for errors.

        Raises CorruptRecord or TruncatedRecord with the record's number and offset.
        """
        ...

    def resynchronise(self, data: Buffer, offset: int) -> int | None:
        """Where the next whole record may begin after damage at ``offset``, if one can tell."""
        ...

    def decode(self, payload: Buffer, label_offset: int) -> Sample:
        """What a record's payload holds. Raises CorruptRecord."""
        ...

    def indexes(self, entries: Sequence[IndexEntry]) -> Mapping[str, bytes]:
        """Index files of one shard, by extension."""
        ...
