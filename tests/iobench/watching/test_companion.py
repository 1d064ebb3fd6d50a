"""The companion samples, and listens to the script, until that has ended."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from iobench.clock import SystemClock
from iobench.machine.sampling import Recorder, Samples
from iobench.watching.companion import follow
from iobench.watching.session import END
from tests.iobench.machine.odd_samplers import Counting

LINE = b'{"loader": "a"}\n'


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """Both ends."""
    ends = os.pipe()
    yield ends
    for end in ends:
        try:
            os.close(end)
        except OSError:
            continue


def followed(read_end: int, parent: int) -> tuple[bytes, Samples]:
    """What came, and what was read meanwhile."""
    recorder = Recorder({"a": Counting()}, SystemClock())
    return follow(read_end, parent, recorder, per_s=10)


def test_a_script_that_says_so_has_ended(pipe: tuple[int, int]) -> None:
    """There is a reading at the beginning and one at the end."""
    os.write(pipe[1], LINE + END)
    received, samples = followed(pipe[0], os.getppid())
    assert received == LINE + END
    assert len(samples.columns["a.count"]) >= 2


def test_a_pipe_that_is_closed_is_the_end(pipe: tuple[int, int]) -> None:
    """The script was killed: what it sent before is kept."""
    os.write(pipe[1], LINE)
    os.close(pipe[1])
    assert followed(pipe[0], os.getppid())[0] == LINE


def test_a_script_that_is_gone_is_the_end_though_its_workers_hold_the_pipe(
    pipe: tuple[int, int],
) -> None:
    """Forked workers outlive it at times."""
    os.write(pipe[1], LINE)
    assert followed(pipe[0], parent=0)[0] == LINE
