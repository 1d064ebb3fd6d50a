"""Known figures, on a clock that stands still: the arithmetic of the harness."""

from __future__ import annotations

import pytest

from iobench.clock import VirtualClock
from iobench.selftest.known import Check, checks, mock_scales, null_under_paced, watched_waits


def test_every_check_holds_on_a_virtual_clock() -> None:
    """Exactly: nothing is lost where nothing costs time."""
    found = list(checks(VirtualClock()))
    assert [check.ok for check in found] == [True] * 6
    assert [check.found for check in found if check.expected] == pytest.approx(
        [check.expected for check in found if check.expected]
    )


@pytest.mark.parametrize("steps", [1, 10, 100])
def test_a_null_store_under_a_paced_device_has_a_ceiling_of_1(steps: int) -> None:
    """Over any number of steps."""
    check = null_under_paced(VirtualClock(), steps)
    assert check.found == pytest.approx(1.0)
    assert (check.expected, check.limit) == (1.0, 0.02)


@pytest.mark.parametrize("workers", [1, 2, 3, 7])
def test_mock_scales_with_its_workers(workers: int) -> None:
    """Workers of 2 ms an item give 500 samples/s each."""
    assert mock_scales(VirtualClock(), 70, workers).found == pytest.approx(500 * workers)


class Slow(VirtualClock):
    """Every sleep takes a tenth of a second longer: a machine that cannot keep time."""

    def sleep(self, seconds: float) -> None:
        super().sleep(max(seconds, 0) + 0.1)


def test_a_clock_that_drags_is_found_out() -> None:
    """The checks can fail."""
    assert not mock_scales(Slow(), 100, 1).ok
    assert not watched_waits(Slow(), 100).ok


def test_a_check_in_words() -> None:
    """What was found, and what was expected within what."""
    assert str(Check("rate", 500.0, 400.0, 10.0, "samples/s")) == (
        "WRONG rate: 400 samples/s, expected 500 within 10"
    )
    assert str(Check("ceiling", 1.0, 0.99, 0.02, "")) == (
        "ok    ceiling: 0.99, expected 1 within 0.02"
    )
    free = Check("overhead", None, 0.7, None, "us a batch")
    assert (free.ok, str(free)) == (True, "      overhead: 0.7 us a batch")
    assert free.as_dict()["ok"] is True
