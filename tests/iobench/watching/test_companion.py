"""The companion keeps what it is told, and samples meanwhile."""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator

import pytest

from iobench.clock import SystemClock
from iobench.machine.sampling import Recorder
from iobench.watching.companion import Kept, Listening, follow
from iobench.watching.messages import message
from tests.iobench.machine.odd_samplers import Counting
from tests.iobench.watching.test_tally import epoch

STEPS = array("d", [value for record in epoch(0, 0.0, 3) for value in record]).tobytes()


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


def followed(read_end: int, *, alive: bool = True) -> tuple[Kept, Recorder]:
    """Until the script has ended."""
    kept = Kept()
    listening = Listening(read_end, kept)
    while not kept.settings:
        listening.wait(30)
    recorder = Recorder({"a": Counting()}, SystemClock())
    follow(listening, kept, recorder, lambda: alive)
    return kept, recorder


def test_steps_go_to_their_loader(pipe: tuple[int, int]) -> None:
    """And the end is the end."""
    os.write(pipe[1], message({"per_s": 10}))
    os.write(pipe[1], message({"open": 0, "name": "a"}) + message({"open": 1, "name": "b"}))
    os.write(pipe[1], message({"steps": 1, "first": 0}, STEPS))
    os.write(pipe[1], message({"idle": 1}, array("d", (4.0, 0.5)).tobytes()))
    os.write(pipe[1], message({"end": True}))
    kept, recorder = followed(pipe[0])
    assert kept.ended
    assert (kept.tallies[0].steps, kept.tallies[1].steps) == (0, 2)
    assert kept.tallies[1].idle_s == 0.5
    assert len(recorder.end(0, 1).columns["a.count"]) >= 2


def test_a_pipe_that_is_closed_is_the_end(pipe: tuple[int, int]) -> None:
    """The script was killed: what it sent before is kept."""
    os.write(pipe[1], message({"per_s": 10}) + message({"open": 0}))
    os.write(pipe[1], message({"steps": 0, "first": 0}, STEPS))
    os.close(pipe[1])
    kept, _ = followed(pipe[0])
    assert not kept.ended
    assert kept.tallies[0].steps == 2


def test_a_script_that_is_gone_is_the_end_though_its_workers_hold_the_pipe(
    pipe: tuple[int, int],
) -> None:
    """Forked workers outlive it at times, with its pipe."""
    os.write(pipe[1], message({"per_s": 10}) + message({"open": 0}))
    os.write(pipe[1], message({"steps": 0, "first": 0}, STEPS))
    kept, _ = followed(pipe[0], alive=False)
    assert kept.tallies[0].steps == 2
