"""Steps handed to a GPU, which the loop does not wait for at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

STEPS = 2
"""That may be unfinished while the loop fetches the next batch."""

NOTE = f"at most {STEPS} steps are queued while the next batch is fetched"


class Queue:
    """Ends of steps, oldest first; ``wait`` comes back when the one that it is given is past."""

    def __init__(self, wait: Callable[[Any], object]) -> None:
        self._wait = wait
        self._ends: deque[Any] = deque()

    def add(self, end: Any) -> None:
        """One more; where that makes more than ``STEPS``, wait for the oldest."""
        self._ends.append(end)
        if len(self._ends) > STEPS:
            self._wait(self._ends.popleft())

    def clear(self) -> None:
        """All are past."""
        self._ends.clear()
