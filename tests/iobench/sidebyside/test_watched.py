"""Tests of iobench.sidebyside.watched."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from dataprep.job.worker import Progress
from iobench.sidebyside.watched import Memory, Recorder, steady

pytestmark = pytest.mark.slow


def test_recorder() -> None:
    """Every report is kept with its time, in order."""
    recorder = Recorder()
    for samples in (3, 4):
        recorder.advance(Progress(samples=samples))
    assert [samples for _, samples in recorder.marks] == [3, 4]
    assert recorder.marks[0][0] <= recorder.marks[1][0]


@pytest.mark.parametrize(("workers", "expected"), [(1, (60, 9.0)), (2, (40, 5.0)), (3, (20, 3.0))])
def test_steady(workers: int, expected: tuple[int, float]) -> None:
    """From the first report, which counts for nothing, until a worker lacks a shard."""
    marks = [(1.0, 100), (3.0, 20), (5.0, 20), (9.0, 20)]
    assert steady(marks, [10.0, 4.0, 6.0], workers) == expected


@pytest.mark.parametrize(("marks", "shards"), [([(1.0, 1)] * 3, 1), ([(1.0, 1)], 2)])
def test_too_little_for_a_steady_state(marks: list[tuple[float, int]], shards: int) -> None:
    """Fewer shards than workers, or a single report, have no steady state."""
    with pytest.raises(ValueError, match="too few"):
        steady(marks, [2.0] * shards, 2)


def test_memory() -> None:
    """A child that takes 200 MB is seen to."""
    code = "import time; taken = bytes([1]) * 200_000_000; print(flush=True); time.sleep(60)"
    with (
        Memory() as memory,
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as child,
    ):
        assert child.stdout is not None
        child.stdout.readline()
        deadline_s = time.monotonic() + 30
        while largest(memory) < 200_000_000 and time.monotonic() < deadline_s:
            time.sleep(0.05)
        child.kill()
    assert memory.peak_bytes >= 200_000_000
    assert largest(memory) >= 200_000_000


def largest(memory: Memory) -> int:
    """Of the readings so far; the peak may be of a child that another test left."""
    return max((size for _, size in memory.sizes), default=0)
