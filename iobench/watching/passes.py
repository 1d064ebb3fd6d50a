"""PURE. Whole passes over watched loaders: what of a step was another loop, as validation is."""

from __future__ import annotations

from collections import deque

_MOST = 256


class Passes:
    """When each began and ended, in the order of their ends; of one within another the outer."""

    def __init__(self) -> None:
        self._spans: deque[tuple[float, float]] = deque(maxlen=_MOST)

    def add(self, begun_s: float, ended_s: float) -> None:
        """One that has come to its end."""
        while self._spans and self._spans[-1][0] >= begun_s:
            self._spans.pop()
        self._spans.append((begun_s, ended_s))

    def within(self, begun_s: float, ended_s: float) -> float:
        """Seconds of those that began and ended between these times."""
        found = 0.0
        for begin_s, end_s in reversed(self._spans):
            if end_s <= begun_s:
                break
            if begin_s >= begun_s and end_s <= ended_s:
                found += end_s - begin_s
        return found
