"""Pauses are exact on average, also on clocks that oversleep."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.clock import Pauses, VirtualClock
from tests.iobench.oversleeping_clock import OversleepingClock


@given(st.lists(st.floats(0.1, 1), min_size=1, max_size=30), st.floats(0, 0.1), st.integers(0, 9))
def test_oversleeping_does_not_add_up(pauses: list[float], most_s: float, seed: int) -> None:
    """All pauses together take at most one oversleeping longer than requested."""
    clock = OversleepingClock(most_s, seed)
    own = Pauses(clock)
    for seconds in pauses:
        own.pause(seconds)
    assert sum(pauses) - 1e-9 <= clock.now_s() <= sum(pauses) + most_s + 1e-9


def test_work_between_pauses_is_not_made_good() -> None:
    """Work between two pauses does not shorten the next one."""
    clock = VirtualClock()
    own = Pauses(clock)
    for _ in range(3):
        own.pause(0.25)
        clock.sleep(1.0)
    assert clock.now_s() == pytest.approx(3.75)


def test_cleared_pauses_begin_anew() -> None:
    """Clearing forgets how much was overslept before."""
    clock = OversleepingClock(0.1, 1)
    own = Pauses(clock)
    own.pause(0.5)
    assert clock.now_s() > 0.5
    own.clear()
    before_s = clock.now_s()
    own.pause(0.5)
    assert clock.now_s() - before_s > 0.5
