"""A worker process that ends when a sample is overdue: native code cannot be interrupted.

The kernel's timer (setitimer(2)) does it, by a signal whose default is the end of the process: no
thread has to get the interpreter for it, which the code that hangs may hold. The worker's nanny
starts another one, and the shard is made again, its samples in a process of their own.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

_SHORTEST_S = 1e-6


def _ring_in(seconds: float) -> None:
    signal.setitimer(signal.ITIMER_REAL, seconds)


@dataclass
class Timer:
    """The one timer of a process, set to the first of all threads' deadlines; 0 stops it."""

    clock: Callable[[], float] = time.monotonic
    ring_in: Callable[[float], None] = _ring_in
    _deadlines_s: dict[int, float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, seconds: float) -> None:
        """The calling thread has so long."""
        with self._lock:
            now_s = self.clock()
            self._deadlines_s[threading.get_ident()] = now_s + seconds
            self.ring_in(max(min(self._deadlines_s.values()) - now_s, _SHORTEST_S))

    def end(self) -> None:
        """The calling thread is done."""
        with self._lock:
            self._deadlines_s.pop(threading.get_ident(), None)
            first_s = min(self._deadlines_s.values(), default=None)
            self.ring_in(0.0 if first_s is None else max(first_s - self.clock(), _SHORTEST_S))


_OWN = Timer()


class Overdue:
    """Ends this process when a sample is in hand for longer than ``seconds``."""

    def __init__(self, seconds: float, timer: Timer = _OWN) -> None:
        self._seconds, self._timer = seconds, timer

    def reach(self, name: str) -> None:
        """A store may take long: its own timeouts count."""

    def reached(self) -> None:
        """Nothing was begun."""

    def take(self, name: str) -> None:
        """The calling thread begins to convert this sample."""
        self._timer.begin(self._seconds)

    def lay_down(self) -> None:
        """It is done with it."""
        self._timer.end()
