"""Warm-up ends when steps have become steady."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hypothesis import given
from hypothesis import strategies as st

from iobench.clock import VirtualClock
from iobench.consumers.warming import per_step_s, until_steady


def stepping(clock: VirtualClock, seconds: Iterator[float]) -> Callable[[], None]:
    """A step that takes the next of ``seconds``."""
    return lambda: clock.sleep(next(seconds))


def at_once() -> None:
    """Work that is done when the step comes back."""


def test_it_ends_with_the_first_step_that_takes_as_long_as_the_one_before() -> None:
    """A slow first step and a settling second one are followed by what a step costs."""
    clock = VirtualClock()
    step = stepping(clock, iter([9.0, 2.0, 1.0, 1.05, 1.0]))
    taken = until_steady(step, at_once, clock, at_most=10)
    assert [round(value, 9) for value in taken] == [9.0, 2.0, 1.0, 1.05]


@given(st.lists(st.floats(0.001, 10), min_size=20, max_size=20), st.integers(0, 12))
def test_it_makes_two_steps_and_never_more_than_asked(seconds: list[float], at_most: int) -> None:
    """The first step builds, so that one alone tells nothing."""
    clock = VirtualClock()
    taken = until_steady(stepping(clock, iter(seconds)), at_once, clock, at_most=at_most)
    assert 2 <= len(taken) <= max(at_most, 2)


def test_a_step_lasts_until_its_work_is_done() -> None:
    """What a device still does after the call belongs to the step."""
    clock = VirtualClock()
    taken = until_steady(lambda: clock.sleep(0.5), lambda: clock.sleep(1.5), clock, at_most=3)
    assert taken == [2.0, 2.0]


def test_steps_in_a_row_share_the_wait_for_the_last() -> None:
    """Work that is handed over counts when it is done."""
    clock = VirtualClock()
    assert per_step_s(lambda: clock.sleep(0.5), lambda: clock.sleep(5.0), clock, steps=10) == 1.0
