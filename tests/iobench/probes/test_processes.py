"""Timed operations in several processes, on a clock that tests move."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from iobench.clock import VirtualClock
from iobench.errors import TrialFailed, Unavailable
from iobench.probes.processes import Lane, Tally, drive

pytestmark = pytest.mark.slow

CLOCK = VirtualClock()


def taking(
    seconds: float, moved: int = 10
) -> Callable[..., contextlib.AbstractContextManager[Callable[[int], int]]]:
    """What opens to an operation that takes a time and moves some bytes."""

    @contextlib.contextmanager
    def opened() -> Iterator[Callable[[int], int]]:
        def do(item: int) -> int:
            CLOCK.sleep(seconds)
            return moved

        yield do

    return opened


def driven(*lanes: tuple[float, Iterable[int]], seconds: float = 1e9) -> Tally:
    """What lanes come to: seconds of an operation, and its items."""
    return drive([Lane(taking(each), work) for each, work in lanes], CLOCK, seconds)


def test_bytes_and_operations_add_up() -> None:
    """Every item of every lane is done once."""
    tally = driven((1, range(3)), (1, range(5)), (1, []))
    assert tally.bytes == 80
    assert tally.operations == [3, 5, 0]


def test_time_goes_from_the_first_start_to_the_last_end() -> None:
    """The slowest lane says how long it took."""
    assert driven((1, range(3)), (2, range(4))).seconds == pytest.approx(8)


def test_each_operation_has_its_latency() -> None:
    """In ascending order, over all lanes."""
    assert driven((2, range(2)), (1, range(1))).latencies_s == pytest.approx([1, 2, 2])


def test_lanes_stop_when_the_time_is_over() -> None:
    """The operation in which it ends is finished."""
    tally = driven((2, range(1000)), (0.5, range(1000)), seconds=5)
    assert tally.operations == [3, 10]
    assert tally.seconds == pytest.approx(6)


def test_nothing_moved_has_no_ratio() -> None:
    """Nor a duration."""
    tally = driven((1, []))
    assert (tally.bytes, tally.seconds, tally.physical_ratio) == (0, 0, None)


def test_memory_moves_no_physical_bytes() -> None:
    """Lanes that touch no disk read nothing from one."""
    assert driven((1, range(3))).physical_ratio in (0, None)


def test_what_a_lane_raises_comes_through() -> None:
    """The first failure ends the measurement."""

    @contextlib.contextmanager
    def refused() -> Iterator[Callable[[int], int]]:
        raise PermissionError("refused")
        yield

    with pytest.raises(PermissionError, match="refused"):
        drive([Lane(taking(1), range(3)), Lane(refused, range(3))], CLOCK, 10)


def test_lanes_are_closed() -> None:
    """What was opened is closed before the lane's end."""
    closed: list[int] = []

    @contextlib.contextmanager
    def opened() -> Iterator[Callable[[int], int]]:
        yield lambda item: len(closed)
        closed.append(1)
        raise RuntimeError("closed")

    with pytest.raises(RuntimeError, match="closed"):
        drive([Lane(opened, range(2))], CLOCK, 10)


def doing(what: Callable[[], Any], work: Iterable[int] = range(1)) -> Lane:
    """A lane whose operations each call ``what`` and move one byte."""

    @contextlib.contextmanager
    def opened() -> Iterator[Callable[[int], int]]:
        def do(item: int) -> int:
            what()
            return 1

        yield do

    return Lane(opened, work)


def nothing() -> None:
    """An operation without work."""


def raising(error: BaseException) -> Callable[[], Any]:
    """A callable that raises."""

    def fail() -> None:
        raise error

    return fail


def test_the_watcher_sees_all_bytes() -> None:
    """The sum over all processes."""
    seen: list[int] = []
    drive(
        [doing(nothing, range(3)), doing(nothing, range(4))],
        CLOCK,
        1e9,
        lambda done, unit: seen.append(int(done)),
    )
    assert seen[-1] == 7


def test_each_lane_has_a_process_and_none_is_left(tmp_path: Path) -> None:
    """All are reaped."""
    drive([doing((tmp_path / str(number)).touch) for number in range(5)], CLOCK, 1e9)
    assert len(list(tmp_path.iterdir())) == 5
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize("error", [Unavailable("no O_DIRECT"), OSError(28, "No space left")])
def test_errors_come_through_as_they_are(error: Exception) -> None:
    """With their class and message."""
    with pytest.raises(type(error), match=str(error).replace("[", r"\[")):
        drive([doing(nothing), doing(raising(error))], CLOCK, 1e9)


@pytest.mark.parametrize(
    ("end", "said"),
    [
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "SIGKILL"),
        (lambda: os._exit(7), "exit code 7"),
    ],
)
def test_a_process_that_ends_early_is_noticed(end: Callable[[], Any], said: str) -> None:
    """With the signal or the exit code; others that would wait for ever are ended."""
    with pytest.raises(TrialFailed, match=said):
        drive([doing(signal.pause), doing(end)], CLOCK, 1e9)


def test_nothing_of_the_parent_is_run_at_a_child_end(tmp_path: Path) -> None:
    """Files that the parent has open are not flushed twice."""
    with (tmp_path / "log").open("w") as log:
        log.write("once")
        drive([doing(nothing), doing(nothing)], CLOCK, 1e9)
    assert (tmp_path / "log").read_text() == "once"
