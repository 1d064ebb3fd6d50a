"""Time in which a process, or the one that waits for it, was stopped."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from iobench.samplers.processes import read_process

_LONGEST_LOOK_S = 5.0
"""No look takes so long, also where other programs are busy: who looks was stopped himself."""


class Standstill:
    """Adds up, look by look, for how long ``process`` was stopped (Ctrl-Z, SIGSTOP).

    Whoever looks may have been stopped as well, alone or with it, as in a paused container.
    """

    def __init__(
        self, process: int, clock: Callable[[], float] = time.monotonic, proc: Path = Path("/proc")
    ) -> None:
        self._process, self._clock, self._proc = process, clock, proc
        self._looked_s = clock()
        self.awake_s = 0.0
        """Seconds since the first look in which whoever looks was not stopped."""
        self.seconds = 0.0
        """In which either was."""

    def look(self) -> None:
        """To be called about twice a second."""
        now_s = self._clock()
        since_s, self._looked_s = now_s - self._looked_s, now_s
        slept = since_s > _LONGEST_LOOK_S
        if not slept:
            self.awake_s += since_s
        if slept or self._is_stopped():
            self.seconds += since_s

    def _is_stopped(self) -> bool:
        found = read_process(self._process, self._proc)
        return found is not None and found.stopped
