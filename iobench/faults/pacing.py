"""A rate that several connections may share, kept by asking for sleeps."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator

from iobench.faults.kinds import Direction, RateLimit
from iobench.faults.wire import BLOCK_BYTES

_SLICE_S = 0.02
_CATCH_UP_S = 0.01


class Pacer:
    """Lets bytes pass at ``bytes_per_s``, whoever asks; every byte waits for its own time.

    A sleep that ends late is made up for, up to 10 ms.
    """

    def __init__(
        self, bytes_per_s: float, clock: Callable[[], float], sleep: Callable[[float], None]
    ) -> None:
        self._bytes_per_s = bytes_per_s
        self._clock = clock
        self._sleep = sleep
        self._lock = threading.Lock()
        self._free_at = clock()
        self._slice_bytes = max(1, min(BLOCK_BYTES, int(bytes_per_s * _SLICE_S)))

    def __call__(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        """Pass blocks in slices of about 20 ms, so that the rate is smooth."""
        for block in blocks:
            for start in range(0, len(block), self._slice_bytes):
                part = block[start : start + self._slice_bytes]
                self._wait_for(len(part))
                yield part

    def _wait_for(self, size_bytes: int) -> None:
        with self._lock:
            now = self._clock()
            begin = max(self._free_at, now - _CATCH_UP_S)
            self._free_at = begin + size_bytes / self._bytes_per_s
            wait_s = self._free_at - now
        if wait_s > 0:
            self._sleep(wait_s)


class Pacers:
    """The pacers of one connection, or of all of them: one per limit and direction."""

    def __init__(self, clock: Callable[[], float], sleep: Callable[[float], None]) -> None:
        self._clock = clock
        self._sleep = sleep
        self._lock = threading.Lock()
        self._pacers: dict[tuple[RateLimit, Direction], Pacer] = {}

    def get(self, limit: RateLimit, direction: Direction) -> Pacer:
        """The pacer of this limit, the same one every time."""
        with self._lock:
            key = (limit, direction)
            if key not in self._pacers:
                self._pacers[key] = Pacer(limit.bytes_per_s, self._clock, self._sleep)
            return self._pacers[key]

    def fresh(self) -> Pacers:
        """The same clock and sleep, but nothing shared."""
        return Pacers(self._clock, self._sleep)
