"""How long a GPU had nothing to do because its batch was not there: by CUDA's events.

One event is recorded when a batch is asked for, behind all work that was handed over before, one
when the batch is there. Between the two the stream is idle for as long as the first was reached
before the second was recorded. Nothing is synchronised: events are read once they have passed.
"""

from __future__ import annotations

import sys
from array import array
from collections import deque
from typing import Any

_PAIR_BYTES = 16
_LATE = 1 << 16  # events that nobody reached: a device that hangs must not take all memory


def cuda() -> Any | None:
    """``torch.cuda``, where torch is imported already and sees a device; else None."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return None
    return torch.cuda


class DeviceIdle:
    """Pairs of events on the current stream of the thread that iterates."""

    def __init__(self, cuda: Any) -> None:
        self._cuda = cuda
        self._spare: list[Any] = []
        self._pairs: deque[tuple[float, Any, Any]] = deque(maxlen=_LATE)
        self._asked: tuple[float, Any] | None = None

    def asking(self, called_s: float) -> None:
        """A batch is asked for."""
        self._asked = (called_s, self._marked())

    def given(self) -> None:
        """It is there."""
        if self._asked is not None:
            self._pairs.append((*self._asked, self._marked()))
            self._asked = None

    def settled(self) -> bytes:
        """Doubles, two a batch: when it was asked for, seconds that the stream was idle.

        They are found again until they are to be forgotten.
        """
        found = array("d")
        for called_s, before, after in self._pairs:
            if not after.query():
                break
            found.extend((called_s, before.elapsed_time(after) / 1e3))  # milliseconds
        return found.tobytes()

    def forget(self, found: bytes) -> None:
        """What ``settled`` returned; its events serve again."""
        for _ in range(len(found) // _PAIR_BYTES):
            self._spare += self._pairs.popleft()[1:]

    def _marked(self) -> Any:
        event = self._spare.pop() if self._spare else self._cuda.Event(enable_timing=True)
        event.record()
        return event
