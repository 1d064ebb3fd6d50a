"""Bytes of an archive by rising offset: fetched in windows where headers lie close together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol


class Stream(Protocol):
    """What decompresses as it is read."""

    def read(self, size: int, /) -> bytes:
        """At most ``size`` bytes; none at the end."""
        ...


@dataclass(slots=True)
class Windowed:
    """Ranges of something that can be read anywhere.

    ``fetch`` gives ``length`` bytes from ``offset``. After a step of less than ``window_bytes``
    that much is fetched at once, after a longer one only ``probe_bytes``: a header, and what
    follows it. Nothing is fetched from ``size`` on.
    """

    fetch: Callable[[int, int], bytes]
    size: int
    window_bytes: int
    probe_bytes: int = 4096
    _start: int = field(default=0, init=False)
    _data: bytes = field(default=b"", init=False)

    def read(self, offset: int, length: int) -> bytes:
        """``length`` bytes from ``offset``; fewer only at the end."""
        begin = offset - self._start
        if begin < 0 or begin + length > len(self._data):
            step = begin - len(self._data)
            near = self._data and begin >= 0 and step < self.window_bytes
            wanted = max(length, self.window_bytes if near else self.probe_bytes)
            self._data = self.fetch(offset, max(0, min(wanted, self.size - offset)))
            self._start, begin = offset, 0
        return self._data[begin : begin + length]


@dataclass(slots=True)
class Streamed:
    """A stream, read once from its beginning to its end; only what was last read is kept."""

    stream: Stream
    chunk_bytes: int = 1 << 20
    size: int | None = field(default=None, init=False)
    _start: int = field(default=0, init=False)
    _data: bytes = field(default=b"", init=False)

    def read(self, offset: int, length: int) -> bytes:
        """``length`` bytes from ``offset``; fewer only at the end."""
        if offset < self._start:
            raise ValueError(f"byte {offset} of a stream that is at {self._start}")
        while self.size is None and offset + length > self._start + len(self._data):
            kept = self._data[max(0, offset - self._start) :]
            self._start += len(self._data) - len(kept)
            if not (more := self.stream.read(self.chunk_bytes)):
                self.size = self._start + len(kept)
            self._data = kept + more
        begin = offset - self._start
        return self._data[begin : begin + length]
