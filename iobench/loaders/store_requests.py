"""Count the requests to S3 of a trial, also the requests of worker processes."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, cast

from dataprep.machine.shared_rows import SharedRows
from dataprep.stores import s3

# A row for an answered GET has its bytes, the seconds to the first byte, and to the last byte.
_REFUSED = -1.0
"""The row for an answer 503 or 429 has this number instead of bytes."""


class RequestTotals(NamedTuple):
    """Sums over requests to a store.

    Attributes:
        requests: number of answered GETs, also of single ranges.
        bytes: bytes of their answers.
        first_byte_s: the sum of the seconds until each answer began.
        complete_s: the sum of the seconds until each answer was complete.
        refused: answers 503 and 429, to any request.
    """

    requests: int = 0
    bytes: int = 0
    first_byte_s: float = 0.0
    complete_s: float = 0.0
    refused: int = 0

    @property
    def metrics(self) -> dict[str, float]:
        """The metrics of a trial: sums, and means per GET if there was one."""
        metrics: dict[str, float] = {
            "store_requests": self.requests,
            "store_read_bytes": self.bytes,
            "store_refused": self.refused,
        }
        if self.requests:
            metrics["store_first_byte_s"] = self.first_byte_s / self.requests
            metrics["store_get_s"] = self.complete_s / self.requests
        return metrics


def sum_of_totals(processes: Iterable[RequestTotals]) -> RequestTotals:
    """Return the sum over processes that read at the same time."""
    columns = zip(*processes, strict=True)
    return RequestTotals(*(sum(column) for column in columns))


class RequestCounter(logging.Handler):
    """Counts requests while ``counting_requests`` runs; ``totals`` may be called at any time."""

    def __init__(self, rows: SharedRows) -> None:
        super().__init__(logging.DEBUG)
        self._rows = rows

    def emit(self, record: logging.LogRecord) -> None:
        """Append a row for a GET or a refusal; ignore other log lines."""
        if record.msg == s3.GET_MESSAGE and isinstance(record.args, tuple):
            _, *values = cast("tuple[Any, ...]", record.args)
            size_bytes, first_byte_s, complete_s = values
            self._rows.append(size_bytes, first_byte_s, complete_s)
        elif record.msg == s3.THROTTLED_MESSAGE:
            self._rows.append(_REFUSED, 0.0, 0.0)

    def totals(self) -> RequestTotals:
        """Return the sums over all requests so far."""
        rows = self._rows.rows()
        gets = rows[rows[:, 0] != _REFUSED]
        size_bytes, first_byte_s, complete_s = gets.sum(axis=0).tolist()
        refused = len(rows) - len(gets)
        return RequestTotals(len(gets), int(size_bytes), first_byte_s, complete_s, refused)


@contextlib.contextmanager
def counting_requests() -> Iterator[RequestCounter]:
    """Count requests to S3 while the block runs, also of processes that are forked in it.

    The store logs each answered GET, and each answer that asks for fewer requests. For each of
    them, the counter appends a row to a file in memory that forked processes share
    (``SharedRows``). No lock is needed, which a killed worker might hold.
    """
    rows = SharedRows("iobench-requests", "d")
    log = logging.getLogger(s3.__name__)
    level, propagates = log.level, log.propagate
    counter = RequestCounter(rows)
    log.addHandler(counter)
    log.setLevel(logging.DEBUG)
    log.propagate = False  # Only the counter needs these messages.
    try:
        yield counter
    finally:
        log.removeHandler(counter)
        log.setLevel(level)
        log.propagate = propagates
        rows.close()
