"""PURE. Where the records of a shard lie, by the headers of its framing alone.

Formats as in ``dataprep.formats.tfrecord`` and ``dataprep.formats.recordio``; payloads are not
read, so that of TFRecord's two checksums only the length's is held against it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Protocol

from dataprep.errors import RecordError
from dataprep.formats import recordio, tfrecord
from dataprep.formats.protocol import Span, Window

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


class _Sliced:
    """``Readable`` as the ``Window`` that the formats read."""

    def __init__(self, data: Readable) -> None:
        self._data = data

    def __len__(self) -> int:
        return self._data.size

    def __getitem__(self, where: slice) -> bytes:
        return self._data.read(where.start, where.stop - where.start)


def _spans(
    span_at: Callable[[Window, int, tuple[str, int]], Span], data: Readable, name: str
) -> Iterator[Span]:
    record = offset = 0
    while offset < data.size:
        span = span_at(_Sliced(data), offset, (name, record))
        yield span
        record += 1
        offset = span.end


def tfrecord_spans(data: Readable, name: str) -> Iterator[Span]:
    """Records of a TFRecord file.

    Raises:
        CorruptRecord: the checksum of a length does not match.
        TruncatedRecord: the file ends inside a record.
    """
    return _spans(tfrecord.span_at, data, name)


def recordio_spans(data: Readable, name: str) -> Iterator[Span]:
    """Records of a RecordIO file, the parts of split ones together.

    Raises:
        CorruptRecord: a magic is missing, or parts are out of order.
        TruncatedRecord: the file ends inside a record.
    """
    return _spans(recordio.span_at, data, name)


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
    checksum = int.from_bytes(head[8:12], "little")
    if len(head) >= tfrecord.HEADER_BYTES and tfrecord.masked_crc32c(head[:8]) == checksum:
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
