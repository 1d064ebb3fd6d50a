"""Time as a seam: a real clock, and one that tests move."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Tells the time and lets it pass."""

    def now_s(self) -> float:
        """Seconds since some moment; never goes back."""
        ...

    def sleep(self, seconds: float) -> None:
        """Come back when ``seconds`` have passed; at once where they are not positive."""
        ...


class SystemClock:
    """The machine's monotonic clock."""

    def now_s(self) -> float:
        """Seconds of ``time.perf_counter``."""
        return time.perf_counter()

    def sleep(self, seconds: float) -> None:
        """Sleep."""
        if seconds > 0:
            time.sleep(seconds)


class VirtualClock:
    """Stands still except where something sleeps: an hour takes no time."""

    def __init__(self, now_s: float = 0.0) -> None:
        self._now_s = now_s

    def now_s(self) -> float:
        """Seconds that were slept away so far."""
        return self._now_s

    def sleep(self, seconds: float) -> None:
        """Move on by ``seconds``."""
        self._now_s += max(seconds, 0.0)
