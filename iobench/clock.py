"""Clocks: the machine's, and one for tests."""

from __future__ import annotations

import time
from typing import TypeAlias


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
    """A clock that only ``sleep`` moves, at once: an hour takes no time."""

    def __init__(self, now_s: float = 0.0) -> None:
        self._now_s = now_s

    def now_s(self) -> float:
        """The sum of all sleeps so far."""
        return self._now_s

    def sleep(self, seconds: float) -> None:
        """Move on by ``seconds``."""
        self._now_s += max(seconds, 0.0)


def since_1970_s(moment_s: float) -> float:
    """A moment of ``SystemClock`` as seconds since 1970, to the microsecond.

    The two clocks are compared now. They drift apart while the system's time is corrected, so this
    is called soon after the moment.
    """
    return round(time.time() - time.perf_counter() + moment_s, 6)


Clock: TypeAlias = SystemClock | VirtualClock
"""Tells the seconds since some moment, which never go back, and lets seconds pass."""


class Pauses:
    """Pauses that have the right length on average, although sleeps take too long.

    A pause is shorter by the time that the one before took too long.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._overslept_s = 0.0

    def take(self, seconds: float) -> None:
        """Pause for ``seconds``, less the time that earlier pauses took too long."""
        behind_s = min(self._overslept_s, seconds)
        ends_s = self._clock.now_s() - behind_s + seconds
        self._clock.sleep(seconds - behind_s)
        self._overslept_s = max(self._clock.now_s() - ends_s, 0.0)

    def clear(self) -> None:
        """Forget earlier pauses."""
        self._overslept_s = 0.0
