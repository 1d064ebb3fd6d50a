"""The process that samples are converted in: started when asked, gone when not needed."""

from __future__ import annotations

import os
import pickle
import signal
from pathlib import Path

import pytest

from dataprep.errors import JobError
from dataprep.execution import USUAL_LIMIT
from dataprep.image import ImagePolicy
from dataprep.isolation import isolated_outcomes
from dataprep.isolation.child import sendable
from dataprep.isolation.endings import Ending
from dataprep.isolation.process import IsolatedProcess
from dataprep.outcomes import Outcome
from dataprep.sources import Located
from tests.commandline import wait_until
from tests.dataprep.test_worker import Files, jpeg

PHOTO = jpeg(7)
ITEM = Located("a/7.JPEG", len(PHOTO))


def test_it_goes_first_and_leaves_no_core() -> None:
    """Where memory ends the kernel takes it before its parent; a crash writes no core file."""
    process = IsolatedProcess(Files({ITEM.name: PHOTO}), ImagePolicy())
    try:
        assert isinstance(process.convert(ITEM, None, 60.0), Outcome)
        own = Path(f"/proc/{process.pid}")
        assert (own / "oom_score_adj").read_text().strip() == "1000"
        (line,) = [one for one in (own / "limits").read_text().splitlines() if "core" in one]
        assert line.split()[4:6] == ["0", "0"]
    finally:
        process.end()


def test_it_ends_with_the_generator() -> None:
    """However that ends; nobody has to wait for it."""
    others = children()
    found = isolated_outcomes(Files({ITEM.name: PHOTO}), [ITEM, ITEM], ImagePolicy(), USUAL_LIMIT)
    assert isinstance(next(found), Outcome)
    (child,) = children() - others
    found.close()
    wait_until(lambda: child not in children(), "the process to end")


def children() -> set[int]:
    """Process ids of those that this one started."""
    tasks = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    return {int(pid) for task in tasks for pid in task.read_text().split()}


def test_a_server_that_is_killed() -> None:
    """It is as if its child had been: killed from outside, over a sample that is tried again."""
    others = children()
    process = IsolatedProcess(Files({ITEM.name: PHOTO}), ImagePolicy())
    try:
        process.convert(ITEM, None, 60.0)
        (server,) = children() - others
        assert process.alive
        os.kill(server, signal.SIGKILL)
        wait_until(lambda: not process.alive, "the server to end")
        assert process.convert(ITEM, None, 60.0) == Ending("killed", "SIGKILL")
    finally:
        process.end()


class Unknown:
    """A source that no other process can make."""

    uri = "unknown"
    concurrency = 1

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return _only_here, (str(os.getpid()),)


def _only_here(pid: str) -> object:
    if pid != str(os.getpid()):
        raise RuntimeError("not here")
    return Unknown()


def test_a_source_that_cannot_be_sent() -> None:
    """That is said, not taken for a crash of a sample."""
    with pytest.raises(JobError, match=r"did not start \(exit code 1\).*importable"):
        IsolatedProcess(Unknown(), ImagePolicy())  # type: ignore[arg-type]


class Stubborn(Exception):
    """Cannot be pickled, whatever another library has taught exceptions."""

    def __reduce__(self) -> str:
        raise TypeError("no")


def test_errors_that_cannot_be_sent_are_told() -> None:
    """Others are sent as they are."""
    told = sendable(Stubborn("odd"))
    assert (type(told), str(told)) == (JobError, "a worker failed: Stubborn: odd")
    error = pickle.loads(pickle.dumps(sendable(ValueError("plain"))))
    assert (type(error), str(error)) == (ValueError, "plain")
