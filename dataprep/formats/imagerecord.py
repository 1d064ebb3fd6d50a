"""RecordIO shards of MXNet's image records: a 24-byte header, then the JPEG."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dataprep.errors import CorruptRecord
from dataprep.formats.protocol import IndexEntry, Sample
from dataprep.formats.recordio import (
    RecordIOWriter,
    mxnet_index,
    pack_image_header,
    read_recordio,
    resynchronise,
    unpack_image_record,
)
from dataprep.formats.records import Buffer, RawRecord, Sink


class RecordIOFormat:
    """``recordio``: labels from 0, an index by plan position, and a ``.lst``."""

    name = "recordio"
    extension = ".rec"

    def default_label_offset(self, are_synsets: bool) -> int:
        """0: MXNet counts classes from 0."""
        return 0

    def writer(self, sink: Sink, label_offset: int) -> ImageRecordWriter:
        """A writer of one shard."""
        return ImageRecordWriter(sink, label_offset)

    def read(self, data: Buffer, name: str) -> Iterator[RawRecord]:
        """Records, the parts of split ones joined."""
        return read_recordio(data, name=name)

    def resynchronise(self, data: Buffer, offset: int) -> int | None:
        """The next magic that begins a record."""
        return resynchronise(data, offset)

    def decode(self, payload: Buffer, label_offset: int) -> Sample:
        """The sample of one image record; its label must be one whole number."""
        record = unpack_image_record(payload)
        if len(record.labels) != 1 or not float(record.labels[0]).is_integer():
            raise CorruptRecord(f"labels {record.labels!r} are not one class index")
        return Sample(
            image=record.image, label=int(record.labels[0]) - label_offset, number=record.id
        )

    def indexes(self, entries: Sequence[IndexEntry]) -> Mapping[str, bytes]:
        """MXNet's ``.idx`` and im2rec's ``.lst``."""
        rows = (f"{entry.number}\t{entry.label:.6f}\t{entry.name}\n" for entry in entries)
        return {
            ".idx": mxnet_index((entry.number, entry.offset) for entry in entries),
            ".lst": "".join(rows).encode(),
        }


class ImageRecordWriter:
    """Writes image records."""

    def __init__(self, sink: Sink, label_offset: int) -> None:
        self._records = RecordIOWriter(sink)
        self._label_offset = label_offset

    def write(self, sample: Sample) -> tuple[int, int]:
        """Append one record; the image is not copied on its way to the sink."""
        header = pack_image_header([sample.label + self._label_offset], sample.number)
        return self._records.write_parts([header, sample.image])
