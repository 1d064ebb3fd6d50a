"""Known figures on a virtual clock: the arithmetic of the measurements."""

from __future__ import annotations

import pytest

from iobench.clock import VirtualClock
from iobench.selftest.known import Check, checks, mock_scales, watched_waits


@pytest.mark.parametrize("steps", [7, 100])
def test_every_check_holds_on_a_virtual_clock(steps: int) -> None:
    """Every figure is exact if only sleeping takes time."""
    found = list(checks(VirtualClock(), steps))
    assert [check.ok for check in found] == [True] * 6
    known = [check for check in found if check.expected is not None]
    assert [check.expected for check in known] == [1.0, 500.0, 1500.0, 3500.0, 0.25]
    assert [check.found for check in known] == pytest.approx([check.expected for check in known])


class Slow(VirtualClock):
    """A clock whose sleeps are a tenth of a second too long."""

    def sleep(self, seconds: float) -> None:
        super().sleep(max(seconds, 0) + 0.1)


def test_checks_can_fail() -> None:
    """With a slow clock the checks fail."""
    assert not mock_scales(Slow(), 100, 1).ok
    assert not watched_waits(Slow(), 100).ok


def test_a_check_as_text() -> None:
    """The line has the measured and the expected figure, and the limit."""
    assert str(Check("rate", 500.0, 400.0, 10.0, "samples/s")) == (
        "WRONG rate: 400 samples/s, expected 500 within 10"
    )
    assert str(Check("ceiling", 1.0, 0.99, 0.02, "")) == (
        "ok    ceiling: 0.99, expected 1 within 0.02"
    )
    free = Check("overhead", None, 0.7, None, "us a batch")
    assert (free.ok, str(free)) == (True, "      overhead: 0.7 us a batch")
