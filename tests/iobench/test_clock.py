"""Clocks: one that stands still while it is told to."""

from __future__ import annotations

from iobench.clock import PausedClock, VirtualClock


def test_what_is_paused_takes_no_time() -> None:
    """Before and after it time passes as on the clock below."""
    below = VirtualClock(5.0)
    clock = PausedClock(below)
    clock.sleep(1.0)
    with clock.paused():
        below.sleep(100.0)
    clock.sleep(2.0)
    assert (clock.now_s(), below.now_s()) == (8.0, 108.0)
