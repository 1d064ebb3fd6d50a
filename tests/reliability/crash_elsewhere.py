"""Crashes under a scheduler and workers that somebody started by hand, and where memory ends."""

from __future__ import annotations

import contextlib
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence

from tests.commandline import (
    PATIENCE_S,
    Finished,
    command,
    dataprep,
    objects,
    wait_until,
)
from tests.reliability.crash_jobs import (
    Place,
    Reference,
    arguments,
    faults,
    run,
    run_until_alive,
    stopped_for_memory,
)
from tests.reliability.crash_sources import badly
from tests.reliability.limited import Group, limited

GROUP_BYTES = 3 * 2**29
"""A job in two workers fits, and ``@@memory@@`` does not."""

_JOIN = 'echo $$ > "$0" && exec "$@"'


@contextlib.contextmanager
def scheduler(place: Place, *workers: str) -> Iterator[str]:
    """The address of a scheduler beside which two workers run, with these options."""
    file = place.new().with_suffix(".json")
    with contextlib.ExitStack() as running:

        def start(program: str, *given: str) -> None:
            process = subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.dask_{program}", *given],
                env={**os.environ, **place.environment(place.notes)},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            running.callback(_end, process)

        start(
            "scheduler",
            "--host",
            "127.0.0.1",
            "--port",
            "0",
            "--no-dashboard",
            "--scheduler-file",
            str(file),
        )
        wait_until(lambda: file.exists() and file.stat().st_size, "the scheduler")
        address = str(json.loads(file.read_text())["address"])
        for _ in range(2):
            given = ("--nthreads", "1", "--no-dashboard", "--host", "127.0.0.1")
            start("worker", address, *given, "--local-directory", str(place.root), *workers)
        yield address


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def crash(place: Place, how: dict[str, str], *workers: str) -> list[str]:
    """A job given to such a scheduler by its address, some of whose samples crash."""
    source, output = place.marked(how), place.new()
    expected = Reference(place).of(source)
    with scheduler(place, *workers) as address:
        ended = run(place, place.notes, *arguments(source, output, "--scheduler", address))
        # What is not ours runs on, and does another job: without a sample that crashes.
        after = dataprep(
            *arguments(place.root / "photos", place.new(), "--scheduler", address),
            env=place.environment(place.notes),
        )
    if wrong := badly(ended):
        return wrong
    wrong = [] if after.code == 0 else [f"afterwards {after.code}: {after.err[-400:]}"]
    return wrong + faults(objects(output), expected, how)


def memory(place: Place, chance: random.Random, options: Sequence[str]) -> list[str]:
    """A sample over which memory really ends: the kernel kills, the job stops, and goes on later.

    Everything that the job starts is in a group with little memory. Which process goes is the
    kernel's choice.
    """
    name = chance.choice(place.names)
    source, output = place.marked({name: "memory"}), place.new()
    given = arguments(source, output, *options, "--set", "dask.memory_limit=8GB")
    with limited(GROUP_BYTES) as group:
        ended = run_until_alive(lambda: _within(group, place, given))
        kills = group.kills
    wrong = [] if kills >= 2 else [f"the kernel killed {kills} times"]
    return wrong + stopped_for_memory(place, ended, name, given, source, output)


def _within(group: Group, place: Place, given: Sequence[str]) -> Finished:
    done = subprocess.run(
        ["sh", "-c", _JOIN, str(group.folder / "cgroup.procs"), *command(*given)],
        capture_output=True,
        env={**os.environ, **place.environment(place.notes)},
        timeout=PATIENCE_S,
        check=False,
    )
    return Finished(done.returncode, done.stdout.decode(), done.stderr.decode())
