"""Timed operations in several processes, on a virtual clock."""

from __future__ import annotations

import contextlib
import errno
import itertools
import multiprocessing
import os
import re
import signal
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from iobench.clock import VirtualClock
from iobench.errors import TrialFailed, Unavailable
from iobench.probes.parallel import Moved, Progress, run_in_processes

pytestmark = pytest.mark.slow

CLOCK = VirtualClock()


def driven(*shares: tuple[float, Iterable[int]], seconds: float = 1e9) -> Moved:
    """Run processes whose operations take the given seconds, one share for each process."""

    @contextlib.contextmanager
    def opened() -> Iterator[Callable[[tuple[float, int]], int]]:
        def do(item: tuple[float, int]) -> int:
            CLOCK.sleep(item[0])
            return 10

        yield do

    works = [zip(itertools.repeat(process), work, strict=False) for process, work in shares]
    return run_in_processes(opened, works, CLOCK, seconds)


def doing(*works: Callable[[], Any], progress: Progress = lambda done, unit: None) -> Moved:
    """Run one operation in each process, which moves one byte."""

    @contextlib.contextmanager
    def opened() -> Iterator[Callable[[Callable[[], Any]], int]]:
        def do(work: Callable[[], Any]) -> int:
            work()
            return 1

        yield do

    return run_in_processes(opened, [[work] for work in works], CLOCK, 1e9, progress)


def nothing() -> None:
    """Return an operation without work."""


def test_every_item_is_done_once() -> None:
    """The time is from the first start to the last end; nothing is read from storage."""
    moved = driven((1, range(3)), (2, range(4)), (1, []))
    assert (moved.bytes, moved.operations) == (70, [3, 4, 0])
    assert moved.seconds == pytest.approx(8)
    assert moved.physical_ratio in (0, None)
    metrics = moved.metrics()
    assert metrics["operations"] == 7
    assert metrics["mb_per_s"] == pytest.approx(70 / 8e6)


def test_each_operation_has_its_latency() -> None:
    """Quantiles are over the operations of all processes."""
    assert driven((2, range(5)), (1, range(20))).latency_s == {"p50": pytest.approx(1)}


def test_processes_stop_when_the_time_is_over() -> None:
    """The operation during which the time ends is finished."""
    moved = driven((2, range(1000)), (0.5, range(1000)), seconds=5)
    assert moved.operations == [3, 10]
    assert moved.seconds == pytest.approx(6)


def test_nothing_moved_has_no_ratio() -> None:
    """If nothing is moved, there is no ratio and no duration."""
    moved = driven((1, []))
    assert (moved.bytes, moved.seconds, moved.physical_ratio) == (0, 0, None)


@pytest.mark.parametrize("when", ["opened", "closed"])
def test_errors_of_opening_and_closing_are_raised(when: str) -> None:
    """The first failure ends the measurement."""

    @contextlib.contextmanager
    def opened() -> Iterator[Callable[[int], int]]:
        if when == "opened":
            raise PermissionError(when)
        yield lambda item: item
        raise PermissionError(when)

    with pytest.raises(PermissionError, match=when):
        run_in_processes(opened, [range(3), range(3)], CLOCK, 10)


def test_each_share_has_a_process_and_none_is_left(tmp_path: Path) -> None:
    """All processes end, and open files of the parent are not flushed twice."""
    reported: list[float] = []
    with (tmp_path / "log").open("w") as log:
        log.write("once")
        touches = [(tmp_path / str(number)).touch for number in range(5)]
        doing(*touches, progress=lambda done, unit: reported.append(done))
    assert len(list(tmp_path.iterdir())) == 6
    assert (tmp_path / "log").read_text() == "once"
    assert reported[-1] == 5
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize("error", [Unavailable("no O_DIRECT"), OSError(28, "No space left")])
def test_errors_come_through_as_they_are(error: Exception) -> None:
    """Errors keep their class and message."""

    def fail() -> None:
        raise error

    with pytest.raises(type(error), match=re.escape(str(error))):
        doing(nothing, fail)


@pytest.mark.parametrize(
    ("end", "message"),
    [
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "SIGKILL"),
        (lambda: os._exit(7), "exit code 7"),
    ],
)
def test_a_process_that_ends_early_is_noticed(end: Callable[[], Any], message: str) -> None:
    """The message has the signal or exit code; the other processes are ended."""
    with pytest.raises(TrialFailed, match=message):
        doing(signal.pause, end)


def test_a_process_that_cannot_be_started_fails_the_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says what is missing and what to do; the processes before it are ended."""
    fork = os.fork

    def second_fails() -> int:
        refused = Mock(side_effect=OSError(errno.EAGAIN, os.strerror(errno.EAGAIN)))
        monkeypatch.setattr(os, "fork", refused)
        return fork()

    monkeypatch.setattr(os, "fork", second_fails)
    with pytest.raises(TrialFailed, match=r"a process of the probe could not be started: .*pids"):
        doing(signal.pause, nothing)
    assert multiprocessing.active_children() == []
