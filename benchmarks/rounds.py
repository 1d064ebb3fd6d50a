"""Contests run: each contender in a process of its own, in rounds.

``python -m benchmarks.rounds FD`` is that process. It reads ``{"run": "module:function",
"arguments": {...}}`` from stdin and writes what the function measured to the descriptor, as JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from importlib import import_module
from importlib.util import find_spec

from benchmarks.contest import Contender, Contest, Measured, Rounds
from iobench.machine.processes import find_program

_LIMIT_S = 1800
_MOST_STDERR = 600


class ContenderFailed(RuntimeError):
    """A contender ended without a measurement; the message has the end of its stderr."""


def missing(contender: Contender) -> list[str]:
    """What a contender needs and this machine does not have."""
    return [need for need in contender.needs if not (find_spec(need) or find_program(need))]


def run_contest(contest: Contest, repeats: int, note: Callable[[str], None]) -> Rounds:
    """Run every contender ``repeats`` times; a peer that is missing or fails is left out.

    Raises:
        ContenderFailed: ours failed.
    """
    rounds: dict[str, list[Measured]] = {}
    for contender in contest.contenders:
        if lacking := missing(contender):
            note(f"{contender.name} left out: {', '.join(lacking)} not installed")
        else:
            rounds[contender.name] = []
    ready = [contender for contender in contest.contenders if contender.name in rounds]
    for number in range(contest.repeats or repeats):
        start = number % len(ready)
        for contender in (*ready[start:], *ready[:start]):
            if contender.name not in rounds:
                continue
            try:
                measured = once(contender, contest.cores)
            except ContenderFailed as error:
                if contender is contest.contenders[0]:
                    raise
                note(f"{contest.name}: {contender.name} left out: {error}")
                del rounds[contender.name]
                continue
            rounds[contender.name].append(measured)
            note(f"{contest.name}: {contender.name}: {measured.rate:,.1f} {contest.unit}/s")
    return rounds


def once(contender: Contender, cores: int) -> Measured:
    """One run in a fresh process that may use so many processors.

    Raises:
        ContenderFailed: it ended without a measurement.
    """
    reading, writing = os.pipe()
    request = {"run": contender.run, "arguments": dict(contender.arguments)}
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[-cores:])  # the child and all that it starts inherit it
    try:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.rounds", str(writing)],
            input=json.dumps(request),
            capture_output=True,
            text=True,
            pass_fds=[writing],
            timeout=_LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        os.close(reading)
        raise ContenderFailed(f"no end after {_LIMIT_S:,} s") from None
    finally:
        os.sched_setaffinity(0, before)
        os.close(writing)
    with os.fdopen(reading) as answer:
        text = answer.read()
    if done.returncode or not text:
        raise ContenderFailed(f"exit {done.returncode}: {done.stderr[-_MOST_STDERR:].strip()}")
    return Measured(**json.loads(text))


def main() -> None:
    """Run what stdin names."""
    request = json.load(sys.stdin)
    module, _, name = request["run"].partition(":")
    measured = getattr(import_module(module), name)(**request["arguments"])
    with os.fdopen(int(sys.argv[1]), "w") as answer:
        json.dump(asdict(measured), answer)


if __name__ == "__main__":
    main()
