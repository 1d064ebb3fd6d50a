"""Requests to S3 and what they brought, of this process and of those that it forks.

The store logs each GET that was answered, and each answer that asks for fewer requests; here they
are written, as 24 bytes each, to a file in memory that forked processes share. Each write is whole,
since the file is one that is appended to (open(2), O_APPEND).
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from dataprep.stores import s3

_ENTRY = struct.Struct("=qdd")  # bytes, seconds to the first, seconds to the last
_REFUSED = -1  # in place of bytes
_PIECE_BYTES = _ENTRY.size << 15


class Fetched(NamedTuple):
    """GETs that were answered, those of single ranges included, and their bytes.

    ``first_byte_s`` and ``whole_s`` are sums over all GETs of the seconds from asking until the
    answer began and until all of it was there. ``refused``: answers 503 and 429, to whatever was
    asked.
    """

    requests: int = 0
    bytes: int = 0
    first_byte_s: float = 0.0
    whole_s: float = 0.0
    refused: int = 0

    @property
    def metrics(self) -> dict[str, float]:
        """As a trial tells them: sums, and means of a GET where there was one."""
        told: dict[str, float] = {
            "store_requests": self.requests,
            "store_read_bytes": self.bytes,
            "store_refused": self.refused,
        }
        if self.requests:
            told["store_first_byte_s"] = self.first_byte_s / self.requests
            told["store_get_s"] = self.whole_s / self.requests
        return told


def added(several: Iterable[Fetched]) -> Fetched:
    """All of them together, as of processes that read side by side."""
    whole = Fetched()
    for one in several:
        whole = Fetched(
            whole.requests + one.requests,
            whole.bytes + one.bytes,
            whole.first_byte_s + one.first_byte_s,
            whole.whole_s + one.whole_s,
            whole.refused + one.refused,
        )
    return whole


class Count(logging.Handler):
    """Counts while ``counting`` lasts; ``fetched`` can be asked for at any time then."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(logging.DEBUG)
        self._descriptor = descriptor

    def emit(self, record: logging.LogRecord) -> None:
        """Take down a GET or a refusal; whatever else is logged is neither."""
        if record.msg == s3.GOT and isinstance(record.args, tuple):
            os.write(self._descriptor, _ENTRY.pack(*record.args[1:]))
        elif record.msg == s3.REFUSED:
            os.write(self._descriptor, _ENTRY.pack(_REFUSED, 0.0, 0.0))

    def fetched(self) -> Fetched:
        """All so far."""
        whole, offset = Fetched(), 0
        while data := os.pread(self._descriptor, _PIECE_BYTES, offset):
            entries = list(_ENTRY.iter_unpack(data))
            gets = [entry for entry in entries if entry[0] != _REFUSED]
            here = Fetched(
                len(gets),
                sum(size for size, _, _ in gets),
                sum(first_s for _, first_s, _ in gets),
                sum(last_s for _, _, last_s in gets),
                len(entries) - len(gets),
            )
            whole = added([whole, here])
            offset += len(data)
        return whole


@contextlib.contextmanager
def counting() -> Iterator[Count]:
    """Count what is fetched meanwhile, also by processes that are forked meanwhile."""
    descriptor = os.memfd_create("fetched")
    flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
    fcntl.fcntl(descriptor, fcntl.F_SETFL, flags | os.O_APPEND)
    log = logging.getLogger(s3.__name__)
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
