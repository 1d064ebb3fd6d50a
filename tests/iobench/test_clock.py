"""Pauses that are exact on average, on clocks that oversleep."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.clock import Pauses, VirtualClock


class Oversleeping(VirtualClock):
    """Each sleep takes up to ``most_s`` longer than asked, as a real one does."""

    def __init__(self, most_s: float, seed: int) -> None:
        super().__init__()
        self._most_s, self._random = most_s, random.Random(seed)

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds + self._random.uniform(0, self._most_s) if seconds > 0 else 0)


@given(st.lists(st.floats(0.1, 1), min_size=1, max_size=30), st.floats(0, 0.1), st.integers(0, 9))
def test_what_is_overslept_does_not_add_up(pauses: list[float], most_s: float, seed: int) -> None:
    """Together they are as long as asked, and at most one oversleeping longer."""
    clock = Oversleeping(most_s, seed)
    own = Pauses(clock)
    for seconds in pauses:
        own.pause(seconds)
    assert sum(pauses) - 1e-9 <= clock.now_s() <= sum(pauses) + most_s + 1e-9


def test_what_passes_between_pauses_is_not_made_good() -> None:
    """A pause is for itself: work between two of them takes its own time."""
    clock = VirtualClock()
    own = Pauses(clock)
    for _ in range(3):
        own.pause(0.25)
        clock.sleep(1.0)
    assert clock.now_s() == pytest.approx(3.75)


def test_cleared_pauses_begin_anew() -> None:
    """What was overslept before is forgotten."""
    clock = Oversleeping(0.1, 1)
    own = Pauses(clock)
    own.pause(0.5)
    assert clock.now_s() > 0.5
    own.clear()
    before_s = clock.now_s()
    own.pause(0.5)
    assert clock.now_s() - before_s > 0.5
