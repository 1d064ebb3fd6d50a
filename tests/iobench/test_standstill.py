"""For how long a process was stopped, by looks at a clock and at /proc."""

from __future__ import annotations

from pathlib import Path

import pytest

from iobench.clock import VirtualClock
from iobench.standstill import Standstill


def put(proc: Path, state: str) -> None:
    """Process 7's line of proc(5)."""
    (proc / "7").mkdir(exist_ok=True)
    (proc / "7" / "stat").write_text(f"7 (a) b) {state} 1 " + "0 " * 30)


@pytest.fixture
def clock() -> VirtualClock:
    """At 100 s."""
    return VirtualClock(100.0)


def test_looks_at_a_running_process_find_nothing(tmp_path: Path, clock: VirtualClock) -> None:
    """All its time is awake."""
    put(tmp_path, "S")
    still = Standstill(7, clock.now_s, tmp_path)
    for _ in range(10):
        clock.sleep(0.5)
        still.look()
    assert (still.awake_s, still.seconds) == (5.0, 0.0)


@pytest.mark.parametrize("state", ["T", "t"])
def test_time_in_which_it_is_stopped_adds_up(
    tmp_path: Path, clock: VirtualClock, state: str
) -> None:
    """By a signal or by a debugger; who looks is awake, and its limit runs on."""
    still = Standstill(7, clock.now_s, tmp_path)
    for now in (state, "R", state, state):
        put(tmp_path, now)
        clock.sleep(0.5)
        still.look()
    assert (still.awake_s, still.seconds) == (2.0, 1.5)


def test_who_looks_may_have_been_stopped(tmp_path: Path, clock: VirtualClock) -> None:
    """A leap is of no limit; a machine that is busy makes looks late, and no leap."""
    put(tmp_path, "R")
    still = Standstill(7, clock.now_s, tmp_path)
    clock.sleep(4.0)
    still.look()
    assert (still.awake_s, still.seconds) == (4.0, 0.0)
    clock.sleep(3600.0)
    still.look()
    assert (still.awake_s, still.seconds) == (4.0, 3600.0)


def test_one_that_is_gone_is_not_stopped(tmp_path: Path, clock: VirtualClock) -> None:
    """There is no such process."""
    still = Standstill(7, clock.now_s, tmp_path)
    clock.sleep(0.5)
    still.look()
    assert still.seconds == 0.0
