"""What is done to a command under way: whom a signal reaches, and what may follow."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

from tests.commandline import Running

Kill = Callable[[Running, random.Random], None]


def worker(running: Running, rng: random.Random) -> None:
    """SIGKILL to one worker process; where there is none yet, to the one they are forked from."""
    _one_of(running.workers() or running.servers(), rng)


def server(running: Running, rng: random.Random) -> None:
    """SIGKILL to the process that workers are forked from."""
    _one_of(running.servers(), rng)


def driver(running: Running, rng: random.Random) -> None:
    """SIGKILL to the driver alone."""
    running.send(signal.SIGKILL)


def group(running: Running, rng: random.Random) -> None:
    """SIGKILL to all of them at once."""
    running.send_group(signal.SIGKILL)


def ctrl_c(running: Running, rng: random.Random) -> None:
    """SIGINT to the group, as a terminal sends it."""
    running.send_group(signal.SIGINT)


def ctrl_c_twice(running: Running, rng: random.Random) -> None:
    """The same again within half a second."""
    running.send_group(signal.SIGINT)
    time.sleep(rng.uniform(0.0, 0.5))
    with suppress(ProcessLookupError):
        running.send_group(signal.SIGINT)


def term(running: Running, rng: random.Random) -> None:
    """SIGTERM to the driver, as Slurm and Batch send it."""
    running.send(signal.SIGTERM)


KILLS: Mapping[str, Kill] = {
    "SIGKILL to a worker": worker,
    "SIGKILL to the fork server": server,
    "SIGKILL to the driver": driver,
    "SIGKILL to the group": group,
    "Ctrl-C": ctrl_c,
    "Ctrl-C twice": ctrl_c_twice,
    "SIGTERM to the driver": term,
}


def may_end_with(name: str) -> set[int]:
    """Exit codes: 0 where the signal came too late or the job goes on by itself."""
    if name in ("SIGKILL to a worker", "SIGKILL to the fork server"):
        return {0, 1}
    if name.startswith("SIGKILL"):
        return {-signal.SIGKILL}
    # Before Python runs the program's first line, what the system does by default.
    return {130, 0, -signal.SIGINT if name.startswith("Ctrl") else -signal.SIGTERM}


def _one_of(processes: list[int], rng: random.Random) -> None:
    if processes:
        with suppress(ProcessLookupError):
            os.kill(rng.choice(processes), signal.SIGKILL)
