"""Run contests in rounds. Each contender runs in a process of its own.

``python -m benchmarks.rounds FD`` is the program of this process. It reads
``{"run": "module:function", "arguments": {...}}`` from stdin, calls the function, and writes the
``Measured`` that it returns to the file descriptor FD, as JSON.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from importlib import import_module
from importlib.util import find_spec

from benchmarks.contest import Contender, Contest, Measured, Rounds
from iobench.machine.processes import find_program

_LIMIT_S = 1800
"""How long a contender may run."""

_MAX_STDERR_CHARACTERS = 600
_PYTHON_ERROR = re.compile(r"[\w.]+(Error|Exception|Failed)\w*: ")


class ContenderFailed(RuntimeError):
    """A contender ended without a measurement. The message has the end of its stderr."""

    @property
    def reason(self) -> str:
        """The last line that names an error of Python, or else the last line of the message."""
        lines = str(self).splitlines()
        errors = [line for line in lines if _PYTHON_ERROR.match(line)]
        return (errors or lines)[-1].strip()


def missing(contender: Contender) -> list[str]:
    """Return the modules and programs that a contender needs and this machine does not have."""
    return [need for need in contender.needs if not (_has_module(need) or find_program(need))]


def _has_module(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # its package is missing
        return False


def run_contest(contest: Contest, repeats: int, note: Callable[[str], None]) -> Rounds:
    """Run every contender in each round.

    A contender that is not installed, that cannot do this work, or that fails has a reason instead
    of figures.

    Args:
        contest: the contest.
        repeats: the number of rounds.
        note: receives a line about each result.

    Raises:
        ContenderFailed: the first contender, which is that of this package, failed. If it is only
            left out, the others are measured.
    """
    measured: dict[str, list[Measured]] = {}
    reasons: dict[str, str] = {}
    for contender in contest.contenders:
        if reason := _why_not(contender):
            reasons[contender.name] = reason
            note(f"{contest.name}: {contender.name} left out: {reason}")
        else:
            measured[contender.name] = []
    ready = [contender for contender in contest.contenders if contender.name in measured]
    for number in range(repeats if ready else 0):
        start = number % len(ready)
        for contender in (*ready[start:], *ready[:start]):
            if contender.name in reasons:
                continue
            try:
                result = once(contender, contest.cores)
            except ContenderFailed as error:
                if contender is contest.contenders[0]:
                    raise
                note(f"{contest.name}: {contender.name} left out: {error}")
                del measured[contender.name]
                reasons[contender.name] = error.reason
                continue
            measured[contender.name].append(result)
            note(f"{contest.name}: {contender.name}: {result.rate:,.1f} {contest.unit}/s")
    return Rounds(measured, reasons)


def _why_not(contender: Contender) -> str:
    """Return why a contender is not run; empty if it is run."""
    if contender.unable:
        return contender.unable
    lacking = missing(contender)
    return f"not installed: {', '.join(lacking)}" if lacking else ""


def once(contender: Contender, cores: int) -> Measured:
    """Run a contender once in a new process.

    Args:
        contender: the contender.
        cores: the number of processors that the process may use.

    Raises:
        ContenderFailed: it ended without a measurement.
    """
    reading, writing = os.pipe()
    request = {"run": contender.run, "arguments": dict(contender.arguments)}
    before = os.sched_getaffinity(0)
    # The new process and its children inherit the affinity.
    os.sched_setaffinity(0, sorted(before)[-cores:])
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
        raise ContenderFailed(
            f"exit {done.returncode}: {done.stderr[-_MAX_STDERR_CHARACTERS:].strip()}"
        )
    return Measured(**json.loads(text))


def main() -> None:
    """Call the function that stdin names, and write what it measured."""
    request = json.load(sys.stdin)
    module, _, name = request["run"].partition(":")
    measured = getattr(import_module(module), name)(**request["arguments"])
    with os.fdopen(int(sys.argv[1]), "w") as answer:
        json.dump(asdict(measured), answer)


if __name__ == "__main__":
    main()
