"""PURE. Where the records of a shard lie, by the headers of its framing alone.

Formats as in ``dataprep.formats.tfrecord`` and ``dataprep.formats.recordio``; payloads are not
read, so that of TFRecord's two checksums only the length's is held against it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

from dataprep.errors import RecordError
from dataprep.formats.crc import masked_crc32c
from dataprep.formats.recordio import LENGTH_LIMIT_BYTES, MAGIC
from dataprep.formats.records import corrupt, truncated
from dataprep.formats.tfrecord import OVERHEAD_BYTES

_TFRECORD = struct.Struct("<QI")
_RECORDIO = struct.Struct("<II")
_WORD = int.from_bytes(MAGIC, "little")
_WHOLE, _FIRST, _MIDDLE, _LAST = range(4)
_GZIP = b"\x1f\x8b"
_OTHERS = (_GZIP, b"\xff\xd8\xff", b"PK", b"\x89PNG", b"PAR1", b"{")
_NAMED = (("tfrecord", "tfrecord"), (".rec", "recordio"), ("-of-", "tfrecord"))


class Readable(Protocol):
    """Bytes by offset, and how many there are."""

    size: int

    def read(self, offset: int, length: int) -> bytes:
        """``length`` bytes from ``offset``; fewer only at the end."""
        ...


class Span(NamedTuple):
    """One record: where it begins, its length with framing, and where its payload lies.

    ``parts`` is above 1 for a RecordIO record that was split; ``payload`` and
    ``payload_bytes`` are then those of its first part.
    """

    offset: int
    length: int
    payload: int
    payload_bytes: int
    parts: int = 1


def tfrecord_spans(data: Readable, name: str) -> Iterator[Span]:
    """Records of a TFRecord file.

    Raises:
        CorruptRecord: the checksum of a length does not match.
        TruncatedRecord: the file ends inside a record.
    """
    record = offset = 0
    while offset < data.size:
        header = data.read(offset, _TFRECORD.size)
        if len(header) < _TFRECORD.size:
            raise truncated(name, record, offset, "the file ends inside the record's header")
        length, crc = _TFRECORD.unpack(header)
        if masked_crc32c(header[:8]) != crc:
            raise corrupt(name, record, offset, "the checksum of the length does not match")
        end = offset + length + OVERHEAD_BYTES
        if end > data.size:
            problem = f"its {length} payload bytes run past the end of the file at byte {data.size}"
            raise truncated(name, record, offset, problem)
        yield Span(offset, end - offset, offset + _TFRECORD.size, length)
        record += 1
        offset = end


def recordio_spans(data: Readable, name: str) -> Iterator[Span]:
    """Records of a RecordIO file, the parts of split ones together.

    Raises:
        CorruptRecord: a magic is missing, or parts are out of order.
        TruncatedRecord: the file ends inside a record.
    """
    record = offset = 0
    while offset < data.size:
        start, first_bytes, at, parts = offset + _RECORDIO.size, 0, offset, 0
        while True:
            cflag, length = _part(data, at, name, record, offset)
            first_bytes = first_bytes if parts else length
            parts += 1
            at += _RECORDIO.size + length + -length % 4
            if cflag in (_WHOLE, _LAST):
                break
        yield Span(offset, at - offset, start, first_bytes, parts)
        record += 1
        offset = at


def _part(data: Readable, at: int, name: str, record: int, offset: int) -> tuple[int, int]:
    """The cflag and length of the part at ``at`` of the record that begins at ``offset``."""
    header = data.read(at, _RECORDIO.size)
    if not MAGIC.startswith(header[:4]):
        raise corrupt(name, record, offset, f"no magic at byte {at}")
    if len(header) < _RECORDIO.size:
        raise truncated(name, record, offset, f"the file ends at byte {data.size}, inside it")
    _, word = _RECORDIO.unpack(header)
    cflag, length = word >> 29, word & LENGTH_LIMIT_BYTES - 1
    if cflag not in ((_WHOLE, _FIRST) if at == offset else (_MIDDLE, _LAST)):
        raise corrupt(name, record, offset, f"a part of cflag {cflag} out of order at byte {at}")
    if cflag in (_FIRST, _MIDDLE) and length % 4:
        raise corrupt(name, record, offset, f"a part of {length} bytes, before its last, at {at}")
    if at + _RECORDIO.size + length + -length % 4 > data.size:
        problem = f"the {length} bytes from {at + _RECORDIO.size} run past the end of the file"
        raise truncated(name, record, offset, f"{problem} at {data.size}")
    return cflag, length


SPANS: dict[str, Callable[[Readable, str], Iterator[Span]]] = {
    "tfrecord": tfrecord_spans,
    "recordio": recordio_spans,
}


def format_of(head: bytes, name: str) -> str:
    """``tfrecord`` or ``recordio``, by the first 16 bytes; where they are damaged, by the name.

    Raises:
        RecordError: neither.
    """
    if head.startswith(MAGIC):
        return "recordio"
    if len(head) >= _TFRECORD.size and masked_crc32c(head[:8]) == _TFRECORD.unpack(head[:12])[1]:
        return "tfrecord"
    if not head.startswith(_OTHERS):
        for sign, form in _NAMED:
            if sign in name.rpartition("/")[2].lower():
                return form
    if not head:
        return "tfrecord"  # a file without records
    if head.startswith(_GZIP):
        raise _neither(f"{name}: compressed with gzip: unpack it first")
    raise _neither(f"{name}: neither TFRecord nor RecordIO: it begins with {head[:12]!r}")


def _neither(message: str) -> RecordError:
    error = RecordError(message)
    error.exit_code = 2  # the request was wrong: this is nothing to inspect
    return error
