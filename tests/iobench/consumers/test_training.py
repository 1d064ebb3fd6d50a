"""What training in every framework shares."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.adapters.augment import IMAGENET_MEAN, IMAGENET_STD
from iobench.clock import VirtualClock
from iobench.consumers.training import MEAN, STD, check_labels, per_step_s, until_steady
from iobench.errors import TrialFailed


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


def test_pixels_are_normalised_as_the_loaders_do_it() -> None:
    """The device's mean and deviation are those of dataprep's own augmentation."""
    assert (MEAN, STD) == (IMAGENET_MEAN, IMAGENET_STD)


def test_labels_fill_the_classes() -> None:
    """The least and the greatest class are inside; one further is not, and is named."""
    check_labels(0, 9, 10)
    for label in (10, -1):
        with pytest.raises(TrialFailed, match=f"label {label} is outside 0 to 9"):
            check_labels(min(label, 0), max(label, 0), 10)
