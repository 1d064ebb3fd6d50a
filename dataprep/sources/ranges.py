"""Bytes of an object by rising offset: chunks of it, those that follow fetched ahead."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Protocol, TypeAlias

Fetch: TypeAlias = Callable[[int, int], bytes]
"""``length`` bytes from ``offset``; fewer only where the object ends."""


class Readable(Protocol):
    """What records are found in."""

    def at(self, offset: int, length: int) -> memoryview:
        """``length`` bytes from ``offset``; fewer only where the object ends."""
        ...


class Ranges:
    """An object in chunks of ``chunk_bytes``; nothing is fetched from ``size`` on.

    With ``pool`` the next ``ahead`` chunks are fetched while the present one is looked at. What
    was given out stays valid. Offsets that fall back start anew.
    """

    def __init__(
        self,
        fetch: Fetch,
        chunk_bytes: int,
        size: int = 2**63,
        pool: Executor | None = None,
        ahead: int = 0,
    ) -> None:
        self._fetch = fetch
        self._chunk_bytes = chunk_bytes
        self._size = size
        self._pool = pool
        self._ahead = ahead if pool else 0
        self._start = 0
        self._data = b""
        self._coming: deque[Future[bytes]] = deque()

    def at(self, offset: int, length: int) -> memoryview:
        """``length`` bytes from ``offset``; fewer only where the object ends."""
        if not self._start <= offset <= self._start + len(self._data):
            self._drop()
            self._start, self._data = offset, b""
        missing = offset + length - self._start - len(self._data)
        if missing > 0:
            self._data = self._data[offset - self._start :]
            self._start = offset
            chunks = [self._data]
            while missing > 0:
                chunk = self._next(self._start + sum(map(len, chunks)), missing)
                if not chunk:
                    break
                chunks.append(chunk)
                missing -= len(chunk)
            self._data = b"".join(chunks)
        begin = offset - self._start
        return memoryview(self._data)[begin : begin + length]

    def close(self) -> None:
        """Wait for nothing that was fetched ahead."""
        self._drop()

    def _next(self, offset: int, missing: int) -> bytes:
        chunk_bytes = self._chunk_bytes
        if offset >= self._size:
            return b""
        if not self._ahead or self._pool is None:
            wanted = min(max(chunk_bytes, missing), self._size - offset)
            return self._fetch(offset, wanted)
        while len(self._coming) <= self._ahead:
            following = offset + chunk_bytes * len(self._coming)
            if following >= self._size:
                break
            self._coming.append(self._pool.submit(self._fetch, following, chunk_bytes))
        return self._coming.popleft().result()

    def _drop(self) -> None:
        while self._coming:
            self._coming.popleft().cancel()
