"""What TFRecord and RecordIO share: records in a buffer, a sink for bytes, a text index."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple, Protocol, TypeAlias

from dataprep.errors import CorruptRecord, TruncatedRecord

_PLACE = re.compile(r"^.*?record \d+ at byte \d+: ", re.DOTALL)

Buffer: TypeAlias = bytes | bytearray | memoryview
"""Contiguous bytes; a reader given a ``memoryview`` of a mapped file copies nothing."""


class RawRecord(NamedTuple):
    """One record as it lies in its file.

    ``offset`` and ``length``, in bytes, span the whole encoded record, framing and padding
    included. ``payload`` is a view of the buffer that was read, or ``bytes`` where the record
    had to be joined from parts.
    """

    offset: int
    length: int
    payload: bytes | memoryview


class Sink(Protocol):
    """Anything bytes can be written to, such as a binary file; each write takes all of them."""

    def write(self, data: Buffer, /) -> object:
        """Take all of ``data``, and keep no reference to it."""


def corrupt(name: str, record: int, offset: int, problem: str) -> CorruptRecord:
    """The error for record ``record`` of ``name``, beginning at byte ``offset``, being wrong."""
    return CorruptRecord(_message(name, record, offset, problem), record=record, offset=offset)


def truncated(name: str, record: int, offset: int, problem: str) -> TruncatedRecord:
    """The error for ``name`` ending inside record ``record``, which begins at ``offset``."""
    return TruncatedRecord(_message(name, record, offset, problem), record=record, offset=offset)


def _message(name: str, record: int, offset: int, problem: str) -> str:
    return f"{name}: record {record} at byte {offset}: {problem}; fetch or write the file again"


def without_place(message: str) -> str:
    """What an error of a codec says, without name, record and offset.

    For a record that was read by itself, where these count from the record.
    """
    return _PLACE.sub("", message, count=1)


def index_text(pairs: Iterable[tuple[int, int]], separator: bytes) -> bytes:
    """Two decimal numbers a line, as the index files of both formats have them."""
    return b"".join([b"%d%b%d\n" % (first, separator, second) for first, second in pairs])


def parse_index_text(data: Buffer, separator: bytes, name: str) -> list[tuple[int, int]]:
    """The pairs that ``index_text`` wrote, in file order.

    Raises ``CorruptRecord`` at a line of another form and ``TruncatedRecord`` where the last
    line has no end; ``record`` and ``offset`` of the error are those of the line.
    """
    line = re.compile(rb"(\d{1,20})%b(\d{1,20})\n" % re.escape(separator))
    pairs: list[tuple[int, int]] = []
    position = 0
    while match := line.match(data, position):
        pairs.append((int(match[1]), int(match[2])))
        position = match.end()
    rest = bytes(memoryview(data)[position : position + 64])
    if not rest:
        return pairs
    if len(rest) < 64 and b"\n" not in rest:
        raise truncated(name, len(pairs), position, "the last line has no end")
    raise corrupt(name, len(pairs), position, "the line is not two whole numbers")
