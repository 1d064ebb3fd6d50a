"""The records of one shard: from its receipt, or from the headers of its framing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import zip_longest
from typing import Any, NamedTuple

from dataprep.errors import RecordError
from dataprep.formats.protocol import Span
from dataprep.inspection.framing import SPANS, Readable, format_of
from dataprep.inspection.ranges import Ranges
from dataprep.inspection.record_head import Head, read_head
from dataprep.inspection.target import ShardTarget
from dataprep.manifest import Row
from dataprep.names import escape
from dataprep.stores import Store
from dataprep.stores.local import LocalStore
from dataprep.stores.memory import MemoryStore


class Line(NamedTuple):
    """One record: where it lies and what it is; sizes in pixels, 0 where they are not known.

    ``labels`` count from 0 where the shard is one of ours, and are as stored where it is not.
    ``filename`` and ``synset`` are escaped.
    """

    number: int
    offset: int
    length: int
    labels: tuple[float, ...]
    synset: str
    filename: str
    width: int
    height: int
    format: str
    problem: str = ""


@dataclass(frozen=True, slots=True)
class ShardTable:
    """A shard's records, as far as they can be told.

    ``fault`` says what is wrong with the shard, from ``fault_offset`` on if that is known;
    ``bytes_read`` and ``requests`` are what the shard itself was asked for. ``ours`` says that
    a receipt was found.
    """

    uri: str
    format: str
    bytes: int
    ours: bool
    lines: tuple[Line, ...]
    fault: str | None
    fault_offset: int | None
    bytes_read: int
    requests: int

    def as_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        content = asdict(self)
        del content["lines"]
        return {**content, "records": [line._asdict() for line in self.lines]}


def shard_table(target: ShardTarget) -> ShardTable:
    """The table of one shard.

    A shard of ours in a remote store is told from its receipt, and of itself one beginning of a
    record is read. Of any other shard the framing is read, and of each record what stands before
    and after its image. Payloads are not held against their checksums: that reads everything,
    and is what ``verify`` does.

    Raises:
        RecordError: the file is neither TFRecord nor RecordIO.
        StoreError: it cannot be read.
    """
    ranges = Ranges(target.store, target.info.key, target.info.bytes)
    form = target.format or format_at(ranges, target.uri)
    lines: list[Line] = []
    fault, offset = None, None
    try:
        for line in _lines(target, ranges, form):
            lines.append(line)  # noqa: PERF402  those before the fault are kept
        _hold_against_receipt(target)
    except RecordError as error:
        fault, offset = str(error), error.offset if error.offset >= 0 else None
    return ShardTable(
        uri=target.uri,
        format=form,
        bytes=target.info.bytes,
        ours=target.receipt is not None,
        lines=tuple(lines),
        fault=fault,
        fault_offset=offset,
        bytes_read=ranges.bytes_read,
        requests=ranges.requests,
    )


def format_at(data: Readable, name: str) -> str:
    """The format of a file by its content, or by its name where that is damaged.

    Raises:
        RecordError: neither TFRecord nor RecordIO.
    """
    return format_of(data.read(0, 16), name)


def is_near(store: Store) -> bool:
    """Whether a request costs next to nothing."""
    return isinstance(store, LocalStore | MemoryStore)


def _lines(target: ShardTarget, ranges: Ranges, form: str) -> Iterator[Line]:
    rows = target.rows
    if target.receipt is None:
        for number, span in enumerate(SPANS[form](ranges, target.uri)):
            yield _foreign(number, span, read_head(ranges, span, form))
    elif is_near(target.store) and form in SPANS:
        spans = SPANS[form](ranges, target.uri)
        for number, (row, span) in enumerate(zip_longest(rows, spans)):
            if row is None:
                raise _fault(target, number, span.offset, "its receipt knows no such record")
            offset, length, _ = _place(row, form)
            if span is None or span[:2] != (offset, length):
                raise _fault(target, number, offset, "it is not where its receipt says")
            yield _own(number, row, form, read_head(ranges, span, form).container)
    else:
        yield from _by_receipt(target, ranges, form)


def _by_receipt(target: ShardTarget, ranges: Ranges, form: str) -> Iterator[Line]:
    """Images of a shard are all of one format: that of the first."""
    container = ""
    for number, row in enumerate(target.rows):
        offset, length, _ = _place(row, form)
        if offset + length > target.info.bytes:
            what = f"the file ends at byte {target.info.bytes:,}, inside it or before"
            raise _fault(target, number, offset, what)
        if number == 0 and form in SPANS:
            first = next(SPANS[form](ranges, target.uri))
            container = read_head(ranges, first, form).container
        yield _own(number, row, form, container)


def _own(number: int, row: Row, form: str, container: str) -> Line:
    offset, length, _ = _place(row, form)
    size = (row.width, row.height)
    return Line(number, offset, length, (row.label,), row.synset, row.source, *size, container)


def _foreign(number: int, span: Span, head: Head) -> Line:
    return Line(
        number,
        span.offset,
        span.length,
        head.labels,
        escape(head.synset),
        escape(head.filename),
        head.width,
        head.height,
        head.container,
        head.problem,
    )


def _place(row: Row, form: str) -> tuple[int, int, int]:
    return (row.records or {})[form]


def _hold_against_receipt(target: ShardTarget) -> None:
    """Size and ETag of the whole shard, after all of its records."""
    if target.receipt is None or target.format is None:
        return
    stored = target.receipt.formats[target.format].file
    if stored.bytes != target.info.bytes:
        what = f"the shard has {target.info.bytes:,} bytes, its receipt says {stored.bytes:,}"
        raise _fault(target, len(target.rows), stored.bytes, what)
    if stored.etag and target.info.etag and stored.etag != target.info.etag:
        raise RecordError(
            f"{target.uri}: its ETag is {target.info.etag}, its receipt says {stored.etag}: "
            "bytes changed since it was written; run dataprep verify"
        )


def _fault(target: ShardTarget, record: int, offset: int, what: str) -> RecordError:
    return RecordError(
        f"{target.uri}: record {record} at byte {offset}: {what}; run dataprep verify",
        record=record,
        offset=offset,
    )
