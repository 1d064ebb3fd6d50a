"""Processes side by side."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from iobench.errors import TrialFailed, Unavailable
from iobench.probes.disk.forked import Say, side_by_side

pytestmark = pytest.mark.slow


class Job:
    """Waits for the others, says ``value``, then does ``after``."""

    def __init__(self, value: int, after: Callable[[], Any] = lambda: None) -> None:
        self.value, self.after = value, after

    def __call__(self, ready: Callable[[], None], say: Say) -> tuple[int, int]:
        ready()
        say(self.value)
        self.after()
        return self.value, os.getpid()


def raising(error: BaseException) -> Callable[[], Any]:
    """A callable that raises."""

    def fail() -> None:
        raise error

    return fail


def test_answers_come_in_order_from_other_processes() -> None:
    """Each work has a process of its own, and none is left."""
    answers = side_by_side([Job(number) for number in range(5)])
    assert [value for value, _ in answers] == [0, 1, 2, 3, 4]
    assert len({os.getpid(), *(process for _, process in answers)}) == 6
    for _, process in answers:
        with pytest.raises(ChildProcessError):
            os.waitpid(process, os.WNOHANG)


def test_what_is_said_is_added_up() -> None:
    """The watcher sees the sum over all processes."""
    seen: list[int] = []
    side_by_side([Job(3), Job(4)], seen.append)
    assert seen[-1] == 7


def test_nothing_to_do() -> None:
    """No works, no answers."""
    assert side_by_side([]) == []


@pytest.mark.parametrize("error", [Unavailable("no O_DIRECT"), OSError(28, "No space left")])
def test_errors_come_through_as_they_are(error: Exception) -> None:
    """With their class and message."""
    with pytest.raises(type(error), match=str(error).replace("[", r"\[")):
        side_by_side([Job(1), Job(2, raising(error))])


def test_a_work_that_cannot_begin_keeps_none_waiting() -> None:
    """Others that are ready are ended."""

    def cannot_open(ready: Callable[[], None], say: Say) -> None:
        raise PermissionError("locked")

    with pytest.raises(PermissionError, match="locked"):
        side_by_side([Job(1), cannot_open, Job(2)])


def test_a_process_that_is_killed_is_noticed() -> None:
    """The signal is named."""

    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(TrialFailed, match="SIGKILL"):
        side_by_side([Job(1), Job(2, die)])


def test_a_process_that_leaves_is_noticed() -> None:
    """With its exit code."""
    with pytest.raises(TrialFailed, match="exit code 7"):
        side_by_side([Job(1, lambda: os._exit(7))])


def test_the_others_end_when_one_fails() -> None:
    """A process that would wait for ever does not keep the failure back."""
    with pytest.raises(ZeroDivisionError):
        side_by_side([Job(1, signal.pause), Job(2, raising(ZeroDivisionError()))])


def test_nothing_of_the_parent_is_run_at_a_child_end(tmp_path: Path) -> None:
    """Files that the parent has open are not flushed twice."""
    with (tmp_path / "log").open("w") as log:
        log.write("once")
        side_by_side([Job(1), Job(2)])
    assert (tmp_path / "log").read_text() == "once"
