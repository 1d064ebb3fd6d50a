"""Known figures on a virtual clock: the arithmetic of the measurements."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.clock import VirtualClock
from iobench.selftest.known_rates import Check, checks, mock_alone, mock_with_device, watched_waits


@pytest.mark.parametrize("steps", [7, 100])
def test_every_check_holds_on_a_virtual_clock(steps: int) -> None:
    """Every figure is exact if only sleeping takes time."""
    results = list(checks(VirtualClock(), steps))
    assert all(check.ok for check in results)
    with_expectation = [check for check in results if check.expected is not None]
    mock = [
        rate
        for loader_per_s in (500.0, 1500.0, 4000.0)
        for rate in (loader_per_s, loader_per_s / 2, loader_per_s)
    ]
    assert [check.expected for check in with_expectation] == [1.0, *mock, 0.25, 0.5]
    assert [check.found for check in with_expectation] == pytest.approx(
        [check.expected for check in with_expectation]
    )


@given(st.integers(1, 16), st.integers(1, 400), st.floats(0.1, 10))
def test_partial_rounds_do_not_shift_a_rate(workers: int, steps: int, device_share: float) -> None:
    """Any number of steps with any number of workers gives the rate of the slower side."""
    alone = mock_alone(VirtualClock(), steps, workers)
    loop = mock_with_device(VirtualClock(), steps, workers, device_share)
    assert alone.found == pytest.approx(alone.expected, rel=0.02)
    assert loop.found == pytest.approx(loop.expected, rel=0.02)


class Slow(VirtualClock):
    """A clock whose sleeps are a tenth of a second too long."""

    def sleep(self, seconds: float) -> None:
        super().sleep(max(seconds, 0) + 0.1)


def test_checks_can_fail() -> None:
    """A slow clock makes the checks fail."""
    assert not mock_alone(Slow(), 100, 1).ok
    assert not mock_with_device(Slow(), 100, 1, 0.5).ok
    assert not watched_waits(Slow(), 100).ok


def test_a_check_as_text() -> None:
    """The line has the measured and the expected figure, and the limit."""
    assert str(Check("rate", 500.0, 400.0, 10.0, "samples/s")) == (
        "WRONG rate: 400 samples/s, expected 500 within 10"
    )
    assert str(Check("ceiling", 1.0, 0.99, 0.02, "")) == (
        "ok    ceiling: 0.99, expected 1 within 0.02"
    )
    free = Check("overhead", None, 0.7, None, "us per batch")
    assert (free.ok, str(free)) == (True, "      overhead: 0.7 us per batch")
