"""Time as a seam: a real clock, and one that tests move."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
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


class PausedClock:
    """Another clock, which stands still while it is told to."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._off_s = 0.0

    def now_s(self) -> float:
        """That clock's, without what was paused so far."""
        return self._clock.now_s() - self._off_s

    def sleep(self, seconds: float) -> None:
        """As that clock does."""
        self._clock.sleep(seconds)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """What happens in the ``with`` block takes no time."""
        begun_s = self._clock.now_s()
        try:
            yield
        finally:
            self._off_s += self._clock.now_s() - begun_s


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


class Pauses:
    """Pauses of exactly their length on average, whatever a clock's sleep does.

    What a sleep overslept, the next one is shorter by, up to its whole length.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._overslept_s = 0.0

    def take(self, seconds: float) -> None:
        """Let ``seconds`` pass, less what earlier pauses took too long."""
        behind_s = min(self._overslept_s, seconds)
        ends_s = self._clock.now_s() - behind_s + seconds
        self._clock.sleep(seconds - behind_s)
        self._overslept_s = max(self._clock.now_s() - ends_s, 0.0)

    def clear(self) -> None:
        """Begin anew: nothing is made good."""
        self._overslept_s = 0.0
