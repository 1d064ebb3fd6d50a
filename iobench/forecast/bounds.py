"""PURE. Numbers that are known between bounds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Bounds(NamedTuple):
    """From ``low`` to ``high``; ``high`` is None where nothing bounds it."""

    low: float = 0.0
    high: float | None = 0.0

    def __contains__(self, value: object) -> bool:
        """Whether a number lies between them, both included."""
        if not isinstance(value, (int, float)):
            return False
        return self.low <= value and (self.high is None or value <= self.high)

    def plus(self, other: Bounds) -> Bounds:
        """The sum of two; bounded where both are."""
        open_ended = self.high is None or other.high is None
        return Bounds(self.low + other.low, None if open_ended else self.high + other.high)  # type: ignore[operator]

    def times(self, factor: float) -> Bounds:
        """Both ends multiplied by a number from 0 on."""
        return Bounds(self.low * factor, None if self.high is None else self.high * factor)


NOTHING = Bounds()
UNKNOWN = Bounds(0.0, None)


def exactly(value: float) -> Bounds:
    """Known."""
    return Bounds(value, value)


def up_to(value: float | None) -> Bounds:
    """From 0 on."""
    return Bounds(0.0, value)


def total(parts: Iterable[Bounds]) -> Bounds:
    """The sum of all."""
    found = NOTHING
    for part in parts:
        found = found.plus(part)
    return found
