"""Counters that only grow, as rates between two readings."""

from __future__ import annotations

from collections.abc import Mapping


class Rates:
    """PURE. Keeps the reading before."""

    def __init__(self) -> None:
        self._before: tuple[float, dict[str, float]] | None = None

    def of(self, counters: Mapping[str, float], now_s: float) -> dict[str, float]:
        """Each counter's growth a second since the call before; none on the first.

        A counter that fell (a device that went, a process that ended unseen) grew by nothing.
        """
        before, self._before = self._before, (now_s, dict(counters))
        if before is None or now_s <= before[0]:
            return {}
        seconds = now_s - before[0]
        return {
            name: max(0.0, value - before[1][name]) / seconds
            for name, value in counters.items()
            if name in before[1]
        }
