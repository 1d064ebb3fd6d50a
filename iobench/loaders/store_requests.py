"""Count the requests to S3 of a trial, also the requests of worker processes."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from dataprep.stores import s3

_ENTRY = struct.Struct("3d")
"""An entry for an answered GET: its bytes, the seconds to the first byte, and to the last byte."""

_REFUSED = -1.0
"""The entry for an answer 503 or 429 has this number instead of bytes."""


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

    def __init__(self, descriptor: int) -> None:
        super().__init__(logging.DEBUG)
        self._descriptor = descriptor

    def emit(self, record: logging.LogRecord) -> None:
        """Write an entry for a GET or a refusal; ignore other log lines."""
        if record.msg == s3.GET_MESSAGE and isinstance(record.args, tuple):
            os.write(self._descriptor, _ENTRY.pack(*record.args[1:]))
        elif record.msg == s3.THROTTLED_MESSAGE:
            os.write(self._descriptor, _ENTRY.pack(_REFUSED, 0.0, 0.0))

    def totals(self) -> RequestTotals:
        """Return the sums over all requests so far."""
        data = os.pread(self._descriptor, os.fstat(self._descriptor).st_size, 0)
        entries = np.frombuffer(data).reshape(-1, 3)
        gets = entries[entries[:, 0] != _REFUSED]
        size_bytes, first_byte_s, complete_s = gets.sum(axis=0).tolist()
        refused = len(entries) - len(gets)
        return RequestTotals(len(gets), int(size_bytes), first_byte_s, complete_s, refused)


@contextlib.contextmanager
def counting_requests() -> Iterator[RequestCounter]:
    """Count requests to S3 while the block runs, also of processes that are forked in it.

    The store logs each answered GET, and each answer that asks for fewer requests. For each of
    them, the counter writes an entry of 24 bytes to a file in memory that forked processes share.
    The file is open for appending (open(2), O_APPEND), so that entries do not mix. No lock is
    needed, which a killed worker might hold.
    """
    descriptor = os.memfd_create("fetched")
    flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
    fcntl.fcntl(descriptor, fcntl.F_SETFL, flags | os.O_APPEND)
    log = logging.getLogger(s3.__name__)
    level, propagates = log.level, log.propagate
    counter = RequestCounter(descriptor)
    log.addHandler(counter)
    log.setLevel(logging.DEBUG)
    log.propagate = False  # Only the counter needs these messages.
    try:
        yield counter
    finally:
        log.removeHandler(counter)
        log.setLevel(level)
        log.propagate = propagates
        os.close(descriptor)
