"""RecordIO shards of MXNet's image records: a 24-byte header, labels, then the image.

A sample with several labels has them all after the header, as float32: the number of its class
first, so that every reader finds it there, then the others as they came.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dataprep.errors import CorruptRecord
from dataprep.formats.fields import encoding_of
from dataprep.formats.layout import IMAGENET, Layout
from dataprep.formats.protocol import IndexEntry, RecordOptions, Sample
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

    def default_label_offset(self, are_synsets: bool, layout: Layout = IMAGENET) -> int:
        """0: MXNet counts classes from 0."""
        return 0

    def keeps_boxes(self, options: RecordOptions) -> bool:
        """No: an image record has labels only."""
        return False

    def writer(self, sink: Sink, options: RecordOptions) -> ImageRecordWriter:
        """A writer of one shard."""
        return ImageRecordWriter(sink, options.label_offset)

    def read(self, data: Buffer, name: str) -> Iterator[RawRecord]:
        """Records, the parts of split ones joined."""
        return read_recordio(data, name=name)

    def resynchronise(self, data: Buffer, offset: int) -> int | None:
        """The next magic that begins a record."""
        return resynchronise(data, offset)

    def decode(self, payload: Buffer, options: RecordOptions) -> Sample:
        """The sample of one image record; its first label must be a whole number."""
        record = unpack_image_record(payload)
        if not record.labels or not float(record.labels[0]).is_integer():
            raise CorruptRecord(f"labels {record.labels!r} do not begin with a class index")
        label = int(record.labels[0]) - options.label_offset
        return Sample(
            image=record.image,
            label=label,
            number=record.id,
            encoding=encoding_of(record.image),
            values=(float(label), *record.labels[1:]) if len(record.labels) > 1 else (),
        )

    def indexes(self, entries: Sequence[IndexEntry]) -> Mapping[str, bytes]:
        """MXNet's ``.idx`` and im2rec's ``.lst``."""
        rows = [
            f"{entry.number}\t{entry.label:.6f}{_others(entry.values)}\t{entry.name}\n"
            if entry.values
            else f"{entry.number}\t{entry.label:.6f}\t{entry.name}\n"
            for entry in entries
        ]
        return {
            ".idx": mxnet_index([(entry.number, entry.offset) for entry in entries]),
            ".lst": "".join(rows).encode(),
        }


def _others(values: Sequence[float]) -> str:
    return "".join([f"\t{label:.6f}" for label in values[1:]])


class ImageRecordWriter:
    """Writes image records."""

    def __init__(self, sink: Sink, label_offset: int) -> None:
        self._records = RecordIOWriter(sink)
        self._label_offset = label_offset

    def write(self, sample: Sample) -> tuple[int, int]:
        """Append one record; the image is not copied on its way to the sink."""
        labels = [sample.label + self._label_offset, *sample.values[1:]]
        header = pack_image_header(labels, sample.number)
        return self._records.write_parts([header, sample.image])
