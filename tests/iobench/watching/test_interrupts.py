"""Ctrl-C between any two instructions of what runs in somebody's loop: every step arrives once."""

from __future__ import annotations

import fcntl
import io
import os
import subprocess
import sys
from array import array
from collections.abc import Callable, Iterator
from functools import partial
from types import FrameType
from typing import Any

import pytest

from iobench.watching import epoch, link, session
from iobench.watching.link import Link
from iobench.watching.messages import Inbox
from iobench.watching.session import Steps

pytestmark = pytest.mark.slow

_WATCHED = {module.__file__ for module in (epoch, link, session)}
_RECORDS = 150  # of 40 bytes: more than the pipe takes at once
_PIPE_BYTES = 4096


class Interrupt:
    """Raises KeyboardInterrupt before instruction ``at`` of the modules that are watched."""

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
    """Whether ``work`` has so many instructions."""
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


@pytest.fixture
def line(
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Callable[[], tuple[Link, Callable[[], bytes]]]]:
    """New links, each to a small pipe, and what came out of it so far."""
    opened: list[int] = []

    def made() -> tuple[Link, Callable[[], bytes]]:
        read_end, write_end = os.pipe()
        opened.extend((read_end, write_end))
        fcntl.fcntl(write_end, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        os.set_blocking(read_end, False)

        class Companion:
            stdin = io.FileIO(write_end, "w", closefd=False)
            returncode = None

        monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: Companion())
        monkeypatch.setattr(link, "_PIPE_BYTES", _PIPE_BYTES)
        monkeypatch.setattr(os, "register_at_fork", lambda **_: None)

        def came() -> bytes:
            try:
                return os.read(read_end, 1 << 20)
            except BlockingIOError:
                return b""

        return Link({"settings": True}), came

    yield made
    for descriptor in opened:
        os.close(descriptor)


def test_no_step_is_lost_or_told_twice(
    line: Callable[[], tuple[Link, Callable[[], bytes]]],
) -> None:
    """One step that fills the pipe and more, interrupted everywhere; then the script's end."""
    at = 0
    while True:
        sent, came = line()
        steps = Steps(sent, 0, None)
        steps._sent_s = 0.0
        for number in range(_RECORDS):
            steps.step((0, number, number, 0.5, 1))
        went_on = interrupted(at, partial(steps.step, (0, _RECORDS, _RECORDS, 2.0, 1)))
        steps.step((0, _RECORDS + 1, _RECORDS + 1, 4.0, 1))
        steps.settle()
        data = came()
        while sent._waiting[0]:
            sent._push()
            data += came()
        known = list(numbers(data))
        whole = list(range(_RECORDS + 2))
        assert known in (whole, [*whole[:_RECORDS], _RECORDS + 1]), f"at instruction {at}"
        if not went_on:
            break
        at += 1
    assert at > 100
    assert known == whole


def numbers(data: bytes) -> Iterator[float]:
    """When each step that counts was asked for, as the companion takes them."""
    known = 0
    for head, doubles in Inbox().taken(data):
        if "steps" in head:
            rows = array("d", doubles)[1::5]
            yield from rows[known - head["first"] :]
            known = head["first"] + len(rows)


def test_a_step_is_recorded_once() -> None:
    """A loop that goes on after an interrupt, as a notebook's does, has no step twice."""

    class Noted:
        def __init__(self) -> None:
            self.called: list[float] = []

        def step(self, record: tuple[float, ...]) -> None:
            self.called.append(record[1])

        def asking(self, number: int, called_s: float) -> None:
            """Nothing."""

        def given(self) -> None:
            """Nothing."""

        def settle(self) -> None:
            """Nothing."""

    at, went_on = 0, True
    while went_on:
        noted = Noted()
        watched = epoch.Epoch(lambda: iter(range(9)), 0, noted, lambda _: 1.0)
        next(watched)
        next(watched)

        went_on = interrupted(at, partial(next, watched))
        for _ in watched:
            pass
        assert len(set(noted.called)) == len(noted.called), f"at instruction {at}"
        at += 1
    assert at > 20
