"""TFRecord: records framed by their length and two checksums, and DALI's index of them.

``u64 length | u32 masked CRC of the length | payload | u32 masked CRC of the payload``, all
little-endian. Source: TensorFlow, ``tensorflow/core/lib/io/record_writer.h``. The index is
that of DALI's ``tools/tfrecord2idx``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence

from crc32c import crc32c

from dataprep.formats.crc import MASK_DELTA, masked_crc32c
from dataprep.formats.records import (
    Buffer,
    RawRecord,
    Sink,
    corrupt,
    index_text,
    parse_index_text,
    truncated,
)

_LENGTH = struct.Struct("<Q")
_HEADER = struct.Struct("<QI")
_FOOTER = struct.Struct("<I")

HEADER_BYTES = 12
"""A record's length and that length's checksum."""

OVERHEAD_BYTES = HEADER_BYTES + _FOOTER.size
"""What the framing adds to each payload."""


class TFRecordWriter:
    """Writes records to a sink, copying no payload.

    ``offset`` is where the next record begins, in bytes; give one to append to a file.
    """

    def __init__(self, sink: Sink, offset: int = 0) -> None:
        self._sink = sink
        self.offset = offset

    def write(self, payload: Buffer) -> tuple[int, int]:
        """Write one record; return the offset and length in bytes of the encoded record."""
        return self.write_parts((payload,))

    def write_parts(self, parts: Sequence[Buffer]) -> tuple[int, int]:
        """Write one record whose payload is ``parts``, one after the other; return as ``write``."""
        size = crc = 0
        for part in parts:
            size += memoryview(part).nbytes
            crc = crc32c(part, crc)
        length_crc = crc32c(_LENGTH.pack(size))
        # Masked as ``crc.mask`` does it, inline.
        write = self._sink.write
        write(_HEADER.pack(size, ((length_crc >> 15 | length_crc << 17) + MASK_DELTA) & 0xFFFFFFFF))
        for part in parts:
            write(part)
        write(_FOOTER.pack(((crc >> 15 | crc << 17) + MASK_DELTA) & 0xFFFFFFFF))
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
    view = memoryview(data).cast("B")
    size = len(view)
    record = offset = 0
    while offset < size:
        header = view[offset : offset + HEADER_BYTES]
        end = record_end(header, size, (name, record, offset), check=check)
        footer = end - _FOOTER.size
        payload = view[offset + HEADER_BYTES : footer]
        if check and masked_crc32c(payload) != _FOOTER.unpack_from(view, footer)[0]:
            raise corrupt(name, record, offset, "the checksum of the payload does not match")
        yield RawRecord(offset, end - offset, payload)
        record += 1
        offset = end


def record_end(
    header: Buffer, size: int, where: tuple[str, int, int], *, check: bool = True
) -> int:
    """Where a record ends, framing included, in bytes from the file's beginning.

    ``header`` is what ``HEADER_BYTES`` from its offset in a file of ``size`` bytes hold,
    ``where`` the file's name and the record's number and offset. Raises as ``read_tfrecords``.
    """
    if len(memoryview(header)) < HEADER_BYTES:
        raise truncated(*where, "the file ends inside the record's header")
    length, crc = _HEADER.unpack(header)
    if check and masked_crc32c(_LENGTH.pack(length)) != crc:
        raise corrupt(*where, "the checksum of the length does not match")
    end: int = where[2] + length + OVERHEAD_BYTES
    if end > size:
        problem = f"its {length} payload bytes run past the end of the file at byte {size}"
        raise truncated(*where, problem)
    return end


def dali_index(spans: Iterable[tuple[int, int]]) -> bytes:
    """DALI's index file: a line ``offset size`` a record, in bytes, framing included."""
    return index_text(spans, b" ")


def parse_dali_index(data: Buffer, *, name: str = "DALI index") -> list[tuple[int, int]]:
    """The ``(offset, size)`` of each record; ``CorruptRecord`` or ``TruncatedRecord`` by line."""
    return parse_index_text(data, b" ", name)
