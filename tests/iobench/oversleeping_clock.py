"""A virtual clock that oversleeps, as real clocks do."""

from __future__ import annotations

import random

from iobench.clock import VirtualClock


class OversleepingClock(VirtualClock):
    """A clock whose sleeps take up to ``most_s`` longer than requested."""

    def __init__(self, most_s: float, seed: int = 0) -> None:
        super().__init__()
        self.most_s = most_s
        self._random = random.Random(seed)

    def sleep(self, seconds: float) -> None:
        if seconds > 0:
            seconds += self._random.uniform(0, self.most_s)
        super().sleep(max(0.0, seconds))
