"""PURE. Where the records of a shard lie, by the headers of its framing alone.

Formats as in ``dataprep.formats.tfrecord`` and ``dataprep.formats.recordio``; payloads are not
read, so that of TFRecord's two checksums only the length's is held against it.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

from dataprep.errors import RecordError
from dataprep.formats import recordio, tfrecord

_GZIP = b"\x1f\x8b"
_OTHERS = (_GZIP, b"\xff\xd8\xff", b"PK", b"\x89PNG", b"PAR1", b"{")
_TEXT = re.compile(rb"[\t\n\r -~]+")
_INDEX = re.compile(rb"\d+[\t ]\d[\d.]*\s?")
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
        header = data.read(offset, tfrecord.HEADER_BYTES)
        end = tfrecord.record_end(header, data.size, (name, record, offset))
        payload = offset + tfrecord.HEADER_BYTES
        yield Span(offset, end - offset, payload, end - offset - tfrecord.OVERHEAD_BYTES)
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
        first_bytes, at, parts, cflag = 0, offset, 0, recordio.FIRST
        while cflag in (recordio.FIRST, recordio.MIDDLE):
            header = data.read(at, recordio.HEADER_BYTES)
            cflag, length = recordio.part_header(header, at, data.size, (name, record, offset))
            first_bytes = first_bytes if parts else length
            parts += 1
            at += recordio.HEADER_BYTES + length + -length % 4
        yield Span(offset, at - offset, offset + recordio.HEADER_BYTES, first_bytes, parts)
        record += 1
        offset = at


SPANS: dict[str, Callable[[Readable, str], Iterator[Span]]] = {
    "tfrecord": tfrecord_spans,
    "recordio": recordio_spans,
}


def format_of(head: bytes, name: str) -> str:
    """``tfrecord`` or ``recordio``, by the first 16 bytes; where they are damaged, by the name.

    Raises:
        RecordError: neither. Text is no damaged shard, whatever it is called: the length that a
            shard begins with is not made of letters.
    """
    if head.startswith(recordio.MAGIC):
        return "recordio"
    with contextlib.suppress(RecordError):
        tfrecord.record_end(head[: tfrecord.HEADER_BYTES], 2**64, (name, 0, 0))
        return "tfrecord"
    if not head.startswith(_OTHERS) and not _TEXT.fullmatch(head):
        for sign, form in _NAMED:
            if sign in name.rpartition("/")[2].lower():
                return form
    if not head:
        return "tfrecord"  # a file without records
    raise _neither(f"{name}: {_what_else(head)}")


def _what_else(head: bytes) -> str:
    if head.startswith(_GZIP):
        return "compressed with gzip: unpack it first"
    if _TEXT.fullmatch(head) and _INDEX.match(head):
        return "lines of numbers, as an index has: name the shard that it belongs to"
    return f"neither TFRecord nor RecordIO: it begins with {head[:12]!r}"


def _neither(message: str) -> RecordError:
    error = RecordError(message)
    error.exit_code = 2  # the request was wrong: this is nothing to inspect
    return error
