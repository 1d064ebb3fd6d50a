"""TFRecord: records framed by their length and two checksums, each a tf.train.Example.

``u64 length | u32 masked CRC of the length | payload | u32 masked CRC of the payload``, all
little-endian. Sources: TensorFlow, ``tensorflow/core/lib/io/record_writer.h`` and
``tensorflow/core/lib/hash/crc32c.h``.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache

from crc32c import crc32c

from dataprep.errors import CorruptRecord, TruncatedRecord
from dataprep.formats.example import Feature, decode_example
from dataprep.formats.features import example_encoder, sample_of
from dataprep.formats.layout import IMAGENET, Layout
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
"""A record's length and that length's checksum."""

OVERHEAD_BYTES = 16
"""What the framing adds to each payload."""

_LENGTH = struct.Struct("<Q")
_HEADER = struct.Struct("<QI")
_FOOTER = struct.Struct("<I")

_NEAR_BYTES = 4096
# A protobuf size, then the tag of the only field of a list.
_SIZE = rb"[\x80-\xff]*[\x00-\x7f]"


def mask(crc: int) -> int:
    """A CRC-32C as it is stored: rotated right by 15 bits, plus a constant, modulo 2^32."""
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def masked_crc32c(data: Buffer) -> int:
    """Masked CRC-32C (Castagnoli) of the bytes of ``data``."""
    return mask(crc32c(data))


class TFRecordWriter:
    """Writes records to a sink without copying payloads.

    ``offset`` is where the next record begins, in bytes; give one to append to a file.
    """

    def __init__(self, sink: Sink, offset: int = 0) -> None:
        self._sink = sink
        self.offset = offset

    def write(self, payload: Buffer) -> Extent:
        """Write one record; return the offset and length in bytes of the encoded record."""
        return self.write_parts((payload,))

    def write_parts(self, parts: Sequence[Buffer]) -> Extent:
        """Write one record whose payload is ``parts``, one after the other; return as ``write``."""
        size = crc = 0
        for part in parts:
            size += memoryview(part).nbytes
            crc = crc32c(part, crc)
        write = self._sink.write
        write(_HEADER.pack(size, masked_crc32c(_LENGTH.pack(size))))
        for part in parts:
            write(part)
        write(_FOOTER.pack(mask(crc)))
        offset, length = self.offset, size + OVERHEAD_BYTES
        self.offset += length
        return offset, length


def read_tfrecords(
    data: Buffer, *, name: str = "TFRecord", check: bool = True
) -> Iterator[RawRecord]:
    """Yield the records of a whole file, payloads as views of ``data``.

    Both checksums are verified unless ``check`` is false. Raises ``CorruptRecord`` where one
    does not match and ``TruncatedRecord`` where the file ends inside a record, which includes
    a length that runs past its end; both name ``name``, the record and its byte offset.
    """

    def record_at(view: memoryview, offset: int, where: Where) -> RawRecord:
        span = span_at(view, offset, where, check=check)
        return RawRecord(offset, span.length, payload_at(view, span, where, check=check))

    return records_in(data, name, record_at)


def span_at(
    data: Window, offset: int, where: Where = ("TFRecord", 0), *, check: bool = True
) -> Span:
    """The place of the record at ``offset``, from its header alone.

    ``where`` is the file's name and the record's number. Raises as ``read_tfrecords``.
    """
    header = data[offset : offset + HEADER_BYTES]
    if len(header) < HEADER_BYTES:
        raise damaged(TruncatedRecord, *where, offset, "the file ends inside the record's header")
    size, crc = _HEADER.unpack(header)
    if check and masked_crc32c(header[: _LENGTH.size]) != crc:
        raise damaged(CorruptRecord, *where, offset, "the checksum of the length does not match")
    if offset + size + OVERHEAD_BYTES > len(data):
        problem = f"its {size} payload bytes run past the end of the file at byte {len(data)}"
        raise damaged(TruncatedRecord, *where, offset, problem)
    return Span(offset, size + OVERHEAD_BYTES, offset + HEADER_BYTES, size)


def payload_at(
    data: Window, span: Span, where: Where = ("TFRecord", 0), *, check: bool = True
) -> Buffer:
    """The payload of the record at ``span``; parameters and errors as of ``span_at``."""
    content = data[span.payload : span.end]
    payload = content[: span.payload_bytes]
    if check and content[span.payload_bytes :] != _FOOTER.pack(masked_crc32c(payload)):
        problem = "the checksum of the payload does not match"
        raise damaged(CorruptRecord, *where, span.offset, problem)
    return payload


class TFRecordFormat:
    """``tfrecord``: in the customary layout labels count from 1 when the classes are synsets."""

    name = "tfrecord"
    extension = ""
    trailer = b""
    has_checksums = True

    def default_label_offset(self, are_synsets: bool, layout: Layout = IMAGENET) -> int:
        """1 for synsets where the layout has 0 for background, otherwise 0."""
        return 1 if are_synsets and layout.counts_from_background else 0

    def keeps_boxes(self, options: RecordOptions) -> bool:
        """Whether the layout has features for them."""
        return options.layout.keeps_boxes

    def writer(self, sink: Sink, options: RecordOptions) -> ExampleWriter:
        """A writer of one shard."""
        return ExampleWriter(sink, example_encoder(options.layout, options.label_offset))

    def matches(self, head: Buffer) -> bool:
        """Whether they begin with a length and its checksum."""
        header = bytes(memoryview(head).cast("B")[:HEADER_BYTES])
        if len(header) < HEADER_BYTES:
            return False
        _, crc = _HEADER.unpack(header)
        return bool(masked_crc32c(header[: _LENGTH.size]) == crc)

    def span_at(self, data: Window, offset: int, where: Where) -> Extent | None:
        """Where the record ends, by its length, whose checksum is compared."""
        return span_at(data, offset, where)[:2]

    def read(self, data: Buffer, name: str) -> Iterator[RawRecord]:
        """Records with both CRCs checked."""
        return read_tfrecords(data, name=name)

    def decode(self, payload: Buffer, options: RecordOptions) -> Sample:
        """The sample of one Example."""
        return sample_of(decode_example(payload), options.layout, options.label_offset)

    def image(self, payload: Buffer, options: RecordOptions) -> Buffer:
        """The image of one Example, as a view; other features are mostly not decoded."""
        start = _image_start(options.layout)
        image = _first_value(payload, start) if start else None
        return image or self.decode(payload, options).image

    def fields(self, payload: Buffer) -> Mapping[str, Feature]:
        """The features of one Example."""
        return decode_example(payload)

    def indexes(self, entries: Sequence[IndexEntry]) -> Mapping[str, bytes]:
        """DALI's index, as its ``tools/tfrecord2idx`` writes it: ``offset length`` a record."""
        return {".idx": b"".join([b"%d %d\n" % (entry.offset, entry.length) for entry in entries])}


@lru_cache(maxsize=64)
def _image_start(layout: Layout) -> re.Pattern[bytes] | None:
    """What precedes the image in an Example: its key, then three nested sizes."""
    feature = layout.feature("encoded")
    if feature is None:
        return None
    name = feature.encode()
    # A longer name has two bytes of length: it is never found, and the record decoded in full.
    key = b"\x0a" + bytes([min(len(name), 127)]) + name + b"\x12"
    return re.compile(
        re.escape(key) + _SIZE + rb"\x0a" + _SIZE + rb"\x0a(" + _SIZE + rb")", re.DOTALL
    )


def _first_value(example: Buffer, start: re.Pattern[bytes]) -> memoryview | None:
    """The first byte string of a feature that begins near the start of ``example``.

    This skips the other features, which takes a quarter of the time of decoding them.
    """
    match = start.search(example, 0, _NEAR_BYTES)
    if match is None:
        return None
    size = 0
    for place, byte in enumerate(match[1]):
        size |= (byte & 127) << 7 * place
    return memoryview(example)[match.end() : match.end() + size]


class ExampleWriter:
    """Writes one Example a record; ``encode`` gives its parts."""

    def __init__(self, sink: Sink, encode: Callable[[Sample], Sequence[Buffer]]) -> None:
        self._records, self._encode = TFRecordWriter(sink), encode

    def write(self, sample: Sample) -> Extent:
        """Append one Example; the image is not copied on its way to the sink."""
        return self._records.write_parts(self._encode(sample))
