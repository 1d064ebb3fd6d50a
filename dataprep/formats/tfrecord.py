"""PURE. TFRecord files: each record has a length, two checksums, and an Example as its payload.

A record is ``u64 length | u32 masked CRC of the length | payload | u32 masked CRC of the payload``.
All numbers are little-endian. References: TensorFlow, ``tensorflow/core/lib/io/record_writer.h``
and ``tensorflow/core/lib/hash/crc32c.h``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence

from crc32c import crc32c

from dataprep.errors import CorruptRecord, TruncatedRecord
from dataprep.formats.example import Feature, decode_example, first_byte_string
from dataprep.formats.features import example_encoder, sample_of
from dataprep.formats.layout import IMAGENET, Layout
from dataprep.formats.payload_writer import PayloadWriter
from dataprep.formats.protocol import (
    Buffer,
    Extent,
    IndexEntry,
    RawRecord,
    RecordOptions,
    Sample,
    Sink,
    Span,
    Where,
    Window,
    damaged,
    records_in,
)

HEADER_BYTES = 12
"""The size of the header of a record: the length, and the checksum of the length."""

OVERHEAD_BYTES = 16
"""The number of bytes that the framing adds to a payload: the header and the last checksum."""

_LENGTH = struct.Struct("<Q")
_HEADER = struct.Struct("<QI")
_FOOTER = struct.Struct("<I")


def mask(crc: int) -> int:
    """Mask a CRC-32C as TFRecord files store it: rotate it right by 15 bits, and add a constant."""
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def masked_crc32c(data: Buffer) -> int:
    """The masked CRC-32C (Castagnoli) of ``data``."""
    return mask(crc32c(data))


class TFRecordWriter(PayloadWriter):
    """Write payloads as TFRecord records into a file or another sink, without copying them.

    >>> with dataprep.TFRecordWriter("photos.tfrecord") as writer:      # doctest: +SKIP
    ...     offset, length = writer.write(payload)

    The parameters are the same as in ``PayloadWriter``.
    """

    def write_parts(self, parts: Sequence[Buffer]) -> Extent:
        """Write one record. Its payload consists of ``parts``, one after the other.

        Returns:
            The offset and the length of the encoded record in bytes.
        """
        size_bytes = 0
        crc = 0
        for part in parts:
            size_bytes += memoryview(part).nbytes
            crc = crc32c(part, crc)
        write = self._sink.write
        write(_HEADER.pack(size_bytes, masked_crc32c(_LENGTH.pack(size_bytes))))
        for part in parts:
            write(part)
        write(_FOOTER.pack(mask(crc)))
        return self._advance(size_bytes + OVERHEAD_BYTES)


def read_tfrecords(
    data: Buffer, *, name: str = "TFRecord", check: bool = True
) -> Iterator[RawRecord]:
    """Yield the records of a TFRecord file. Payloads are views of ``data``.

    Args:
        data: the content of the whole file.
        name: the name of the file in errors.
        check: whether both checksums of each record are verified.

    Raises:
        CorruptRecord: a checksum does not match.
        TruncatedRecord: the file ends inside a record, or a length runs past the end of the file.
            Both errors name the file, the number of the record, and its byte offset.
    """

    def record_at(view: memoryview, offset: int, where: Where) -> RawRecord:
        span = span_at(view, offset, where, check=check)
        return RawRecord(offset, span.length, payload_at(view, span, where, check=check))

    return records_in(data, name, record_at)


def span_at(
    data: Window, offset: int, where: Where = ("TFRecord", 0), *, check: bool = True
) -> Span:
    """The location of the record at ``offset``. Only its header is read.

    ``where`` is the name of the file and the number of the record, for errors. Raises the same
    errors as ``read_tfrecords``.
    """
    header = data[offset : offset + HEADER_BYTES]
    if len(header) < HEADER_BYTES:
        raise damaged(TruncatedRecord, *where, offset, "the file ends inside the record's header")
    size_bytes, crc = _HEADER.unpack(header)
    if check and masked_crc32c(header[: _LENGTH.size]) != crc:
        raise damaged(CorruptRecord, *where, offset, "the checksum of the length does not match")
    if offset + size_bytes + OVERHEAD_BYTES > len(data):
        problem = f"its {size_bytes} payload bytes run past the end of the file at byte {len(data)}"
        raise damaged(TruncatedRecord, *where, offset, problem)
    return Span(offset, size_bytes + OVERHEAD_BYTES, offset + HEADER_BYTES, size_bytes)


def payload_at(
    data: Window, span: Span, where: Where = ("TFRecord", 0), *, check: bool = True
) -> Buffer:
    """The payload of the record at ``span``. ``where`` and the errors are as in ``span_at``."""
    payload_and_crc = data[span.payload_offset : span.end]
    payload = payload_and_crc[: span.payload_bytes]
    if check and payload_and_crc[span.payload_bytes :] != _FOOTER.pack(masked_crc32c(payload)):
        problem = "the checksum of the payload does not match"
        raise damaged(CorruptRecord, *where, span.offset, problem)
    return payload


class TFRecordFormat:
    """The format ``tfrecord``: TFRecord files of Examples."""

    name = "tfrecord"
    extension = ""
    trailer = b""
    has_checksums = True

    def default_label_offset(self, are_synsets: bool, layout: Layout = IMAGENET) -> int:
        """1 for synsets if label 0 of the layout means the background; otherwise 0."""
        return 1 if are_synsets and layout.counts_from_background else 0

    def keeps_boxes(self, options: RecordOptions) -> bool:
        """Whether the layout has features for boxes."""
        return options.layout.keeps_boxes

    def writer(self, sink: Sink, options: RecordOptions) -> ExampleWriter:
        """A writer that appends Examples to one shard."""
        return ExampleWriter(sink, example_encoder(options.layout, options.label_offset))

    def matches(self, head: Buffer) -> bool:
        """Whether ``head`` begins with a length and its correct checksum."""
        header = bytes(memoryview(head).cast("B")[:HEADER_BYTES])
        if len(header) < HEADER_BYTES:
            return False
        _, crc = _HEADER.unpack(header)
        return bool(masked_crc32c(header[: _LENGTH.size]) == crc)

    def span_at(self, data: Window, offset: int, where: Where) -> Extent | None:
        """The location of the record. The checksum of its length is verified."""
        return span_at(data, offset, where)[:2]

    def read(self, data: Buffer, name: str) -> Iterator[RawRecord]:
        """Yield the records of a shard. Both checksums of each record are verified."""
        return read_tfrecords(data, name=name)

    def decode(self, payload: Buffer, options: RecordOptions) -> Sample:
        """The sample that an Example describes."""
        return sample_of(decode_example(payload), options.layout, options.label_offset)

    def image(self, payload: Buffer, options: RecordOptions) -> Buffer:
        """The image in an Example, as a view. Other features are decoded only if necessary."""
        feature = options.layout.feature("encoded")
        if feature is not None:
            image = first_byte_string(payload, feature)
            if image is not None:
                return image
        return self.decode(payload, options).image

    def fields(self, payload: Buffer) -> Mapping[str, Feature]:
        """The features of an Example."""
        return decode_example(payload)

    def indexes(self, entries: Sequence[IndexEntry]) -> Mapping[str, bytes]:
        """The index for DALI, which has a line ``offset length`` for each record.

        DALI's ``tools/tfrecord2idx`` writes the same index.
        """
        lines = [b"%d %d\n" % (entry.offset, entry.length) for entry in entries]
        return {".idx": b"".join(lines)}


class ExampleWriter:
    """Writes samples as Examples, one in each record.

    Args:
        sink: the object to which the records are written.
        encode: returns the Example of a sample as a sequence of parts.
    """

    def __init__(self, sink: Sink, encode: Callable[[Sample], Sequence[Buffer]]) -> None:
        self._records = TFRecordWriter(sink)
        self._encode = encode

    def write(self, sample: Sample) -> Extent:
        """Append one Example. The image is not copied."""
        return self._records.write_parts(self._encode(sample))
