"""What the loop's own clock costs."""

from __future__ import annotations

from iobench.clock import VirtualClock
from iobench.loops.overhead import step_cost_s


class TickingClock(VirtualClock):
    """Every look at it takes a microsecond."""

    def now_s(self) -> float:
        """And the time passes."""
        self.sleep(1e-6)
        return super().now_s()


def test_it_is_the_looks_at_the_clock_of_a_step() -> None:
    """Three in the loop and one for progress, on a clock that charges for each."""
    assert 3.9e-6 < step_cost_s(TickingClock()) < 4.1e-6


def test_where_time_stands_still_it_costs_nothing() -> None:
    """Trials on a virtual clock stay exact."""
    assert step_cost_s(VirtualClock()) == 0
