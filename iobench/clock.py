"""Clocks: the clock of the machine, and a virtual clock for tests and simulations."""

from __future__ import annotations

import time
from typing import TypeAlias


class SystemClock:
    """The machine's monotonic clock."""

    def now_s(self) -> float:
        """Return the seconds of ``time.perf_counter``."""
        return time.perf_counter()

    def sleep(self, seconds: float) -> None:
        """Sleep for ``seconds``; return at once if they are negative."""
        if seconds > 0:
            time.sleep(seconds)


class VirtualClock:
    """A clock that moves only by ``sleep``, which returns at once: an hour takes no time."""

    def __init__(self, now_s: float = 0.0) -> None:
        self._now_s = now_s

    def now_s(self) -> float:
        """Return the time at the beginning plus all sleeps so far."""
        return self._now_s

    def sleep(self, seconds: float) -> None:
        """Move the clock by ``seconds``."""
        self._now_s += max(seconds, 0.0)


def since_1970_s(moment_s: float) -> float:
    """Convert a moment of ``SystemClock`` to seconds since 1970, to the microsecond.

    The two clocks are compared when this is called. They drift apart while the system's time is
    corrected, so call this soon after the moment.
    """
    return round(time.time() - time.perf_counter() + moment_s, 6)


Clock: TypeAlias = SystemClock | VirtualClock
"""A clock returns the seconds since some moment, which never decrease, and can sleep."""


class Pauses:
    """Pauses whose mean length is exact, although each sleep takes a little too long.

    If a pause took too long, the next pause is shorter by the excess. If the excess is longer than
    the next pause, that pause takes no time, and the rest of the excess is dropped.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._excess_s = 0.0

    def pause(self, seconds: float) -> None:
        """Pause for ``seconds``, minus the excess of earlier pauses."""
        shorter_by_s = min(self._excess_s, seconds)
        end_s = self._clock.now_s() + seconds - shorter_by_s
        self._clock.sleep(seconds - shorter_by_s)
        self._excess_s = max(self._clock.now_s() - end_s, 0.0)

    def clear(self) -> None:
        """Forget earlier pauses."""
        self._excess_s = 0.0
