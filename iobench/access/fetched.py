"""Requests to S3 and what they brought, of this process and of those that it forks.

The store logs each GET that was answered; here they are written, as eight bytes each, to a file
in memory that forked processes share. Each write is whole, since the file is one that is appended
to (open(2), O_APPEND).
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import struct
from collections.abc import Iterator
from typing import NamedTuple

from dataprep.stores import s3_reading

_ENTRY = struct.Struct("=q")
_PIECE_BYTES = 1 << 20


class Fetched(NamedTuple):
    """GETs that were answered, those of single ranges included, and their bytes."""

    requests: int
    bytes: int


class Count(logging.Handler):
    """Counts while ``counting`` lasts; ``fetched`` can be asked for at any time then."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(logging.DEBUG)
        self._descriptor = descriptor

    def emit(self, record: logging.LogRecord) -> None:
        """Take down a GET; whatever else is logged is none."""
        if record.msg == s3_reading.GOT and isinstance(record.args, tuple):
            os.write(self._descriptor, _ENTRY.pack(record.args[1]))

    def fetched(self) -> Fetched:
        """All so far."""
        requests = total = offset = 0
        while data := os.pread(self._descriptor, _PIECE_BYTES, offset):
            sizes = [size for (size,) in _ENTRY.iter_unpack(data)]
            requests, total, offset = requests + len(sizes), total + sum(sizes), offset + len(data)
        return Fetched(requests, total)


@contextlib.contextmanager
def counting() -> Iterator[Count]:
    """Count what is fetched meanwhile, also by processes that are forked meanwhile."""
    descriptor = os.memfd_create("fetched")
    flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
    fcntl.fcntl(descriptor, fcntl.F_SETFL, flags | os.O_APPEND)
    log = logging.getLogger(s3_reading.__name__)
    level, propagates = log.level, log.propagate
    count = Count(descriptor)
    log.addHandler(count)
    log.setLevel(logging.DEBUG)
    log.propagate = False  # nobody else asked for these lines
    try:
        yield count
    finally:
        log.removeHandler(count)
        log.setLevel(level)
        log.propagate = propagates
        os.close(descriptor)
