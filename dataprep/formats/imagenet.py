"""TFRecord shards of tf.train.Example, with the features of a layout.

Height, width, channels and colour space are those of the stored image.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dataprep.formats.encoder import example_encoder
from dataprep.formats.example import decode_example
from dataprep.formats.fields import sample_of
from dataprep.formats.layout import IMAGENET, Layout
from dataprep.formats.protocol import IndexEntry, RecordOptions, Sample
from dataprep.formats.records import Buffer, RawRecord, Sink
from dataprep.formats.tfrecord import TFRecordWriter, dali_index, read_tfrecords


class TFRecordFormat:
    """``tfrecord``: in the customary layout labels count from 1 when the classes are synsets."""

    name = "tfrecord"
    extension = ""

    def default_label_offset(self, are_synsets: bool, layout: Layout = IMAGENET) -> int:
        """1 for synsets where the layout has 0 for background, otherwise 0."""
        return 1 if are_synsets and layout.counts_from_background else 0

    def keeps_boxes(self, options: RecordOptions) -> bool:
        """Where the layout has features for them."""
        return options.layout.keeps_boxes

    def writer(self, sink: Sink, options: RecordOptions) -> ExampleWriter:
        """A writer of one shard."""
        return ExampleWriter(sink, options)

    def read(self, data: Buffer, name: str) -> Iterator[RawRecord]:
        """Records with both CRCs checked."""
        return read_tfrecords(data, name=name)

    def resynchronise(self, data: Buffer, offset: int) -> int | None:
        """TFRecord has no mark to search for; the next record follows from an intact length."""
        return None

    def decode(self, payload: Buffer, options: RecordOptions) -> Sample:
        """The sample of one Example."""
        return sample_of(decode_example(payload), options.layout, options.label_offset)

    def indexes(self, entries: Sequence[IndexEntry]) -> Mapping[str, bytes]:
        """DALI's index."""
        return {".idx": dali_index([(entry.offset, entry.length) for entry in entries])}


class ExampleWriter:
    """Writes Examples; what repeats from sample to sample is encoded once."""

    def __init__(self, sink: Sink, options: RecordOptions) -> None:
        self._records = TFRecordWriter(sink)
        self._encoder = example_encoder(options.layout, options.label_offset)

    def write(self, sample: Sample) -> tuple[int, int]:
        """Append one Example; the image is not copied on its way to the sink."""
        return self._records.write_parts(self._encoder.parts(sample))
