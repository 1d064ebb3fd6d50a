"""The processes that measure one trial together."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest

from iobench.trials.rank_processes import RankBarrier, first_failed_rank

DONE: dict[str, Any] = {"outcome": {}}


def failed(at_s: float) -> dict[str, Any]:
    """Return the message of a rank that fails at this time, in seconds."""
    return {"failed": "connection closed by peer", "at_s": at_s}


@pytest.mark.parametrize(
    ("message", "blamed"),
    [
        ({}, None),
        ({0: DONE, 1: DONE}, None),
        ({0: DONE, 1: failed(5.0)}, 1),
        ({0: failed(5.1), 1: failed(5.0)}, 1),
        ({0: failed(5.0), 1: failed(5.1)}, 0),
        ({0: failed(5.0), 1: {}, 2: failed(4.0)}, 1),
        ({0: failed(5.0), 1: {"skipped": "no GPU"}}, 1),
    ],
)
def test_the_first_that_failed_is_the_cause(
    message: dict[int, dict[str, Any]], blamed: int | None
) -> None:
    """A rank that fell silent comes before those that report a failure."""
    assert first_failed_rank(message) == blamed


@pytest.mark.parametrize("look_every_s", [0.001, 0.0001])
def test_nobody_passes_before_the_last_has_come(tmp_path: Path, look_every_s: float) -> None:
    """This holds for any last rank and at every barrier."""
    path = tmp_path / "meeting"
    path.touch()
    meetings = [RankBarrier(str(path), 4, look_every_s) for _ in range(4)]
    last = meetings.pop()
    with ThreadPoolExecutor(3) as threads:
        for _ in range(3):
            waits = [threads.submit(meeting.wait) for meeting in meetings]
            assert wait(waits, 0.05).done == set()
            last.wait()
            assert wait(waits, 60).not_done == set()
        ends = [threads.submit(meeting.leave) for meeting in meetings]
        last.leave()
        assert wait(ends, 60).not_done == set()
