"""Ctrl-C between any two instructions of the code in a user's loop loses no step."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any

import pytest

from iobench.watching import proxy, replay, session
from iobench.watching.proxy import TimedEpoch
from iobench.watching.replay import Replay, ReplaySettings
from iobench.watching.session import REPLAY_MARK
from tests.iobench.watching.logged import MemoryLog

pytestmark = pytest.mark.slow

_WATCHED = {module.__file__ for module in (proxy, replay, session)}


class Interrupt:
    """Raises KeyboardInterrupt before instruction ``at`` of the watching modules."""

    def __init__(self, at: int) -> None:
        self._left = at
        self.came = False

    def __call__(self, frame: FrameType, event: str, argument: Any) -> Any:
        if frame.f_code.co_filename not in _WATCHED:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and not self.came:
            self._left -= 1
            if self._left < 0:
                self.came = True
                raise KeyboardInterrupt
        return self


def interrupted(at: int, work: Callable[[], None]) -> bool:
    """Run ``work`` with such an interrupt, and return whether the interrupt came."""
    interrupt = Interrupt(at)
    before = sys.gettrace()
    sys.settrace(interrupt)
    try:
        work()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    return interrupt.came


def test_no_step_is_lost_but_the_one_that_is_interrupted() -> None:
    """A loop may go on after an interrupt, as in a notebook; steps may be written twice."""
    at, went_on = 0, True
    while went_on:
        log, now_s = MemoryLog(), iter(range(1000)).__next__
        # Each step takes more than a second, so that it is written as soon as it ends.
        watched = TimedEpoch(lambda: iter(range(9)), 0, 0, log, clock=now_s)
        next(watched)
        next(watched)
        went_on = interrupted(at, partial(next, watched))
        for _ in watched:
            pass
        log.closed = False
        kept = sorted(set(log.records()))
        called = [record[2] for record in kept]
        assert len(set(called)) == len(called), f"at instruction {at}"
        assert len(kept) >= 9, f"at instruction {at}"
        assert called[0] == 0, f"at instruction {at}"
        at += 1
    assert len(kept) == 10
    assert at > 50


def test_a_replay_goes_on_after_an_interrupt() -> None:
    """At most the interrupted batch is lost, and the replay has all of its marks."""
    settings = ReplaySettings(batches=2, steps=4, warm_up=1)
    at, went_on = 0, True
    while went_on:
        log, now_s = MemoryLog(), iter(range(10_000)).__next__
        lines: list[str] = []
        repeated = Replay(settings, 0, log, announce=lines.append, clock=now_s)
        watched = TimedEpoch(lambda: iter(range(6)), 0, 0, log, replay=repeated, clock=now_s)
        consumed = []

        def go_on() -> None:
            for batch in watched:  # noqa: B023
                if not repeated.is_running:  # noqa: B023
                    consumed.append(batch)  # noqa: B023

        went_on = interrupted(at, go_on)
        go_on()
        log.closed = False
        marks = {record[3] for record in log.records() if record[-1] == REPLAY_MARK}
        assert consumed == sorted(set(consumed)), f"at instruction {at}"
        assert len(consumed) >= 5, f"at instruction {at}"
        assert marks == {0, 2, 3, 4}, f"at instruction {at}"
        assert lines, f"at instruction {at}"
        at += 5
    assert consumed == list(range(6))
    assert at > 1000
