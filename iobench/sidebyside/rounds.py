"""Contests run: each contender in a process of its own, in rounds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from typing import Any

from iobench.programs import found
from iobench.sidebyside.contest import Contender, Contest, Measured, Rounds

_LIMIT_S = 1800
_LAST_WORDS = 600

Note = Callable[[str], None]


class ContenderFailed(RuntimeError):
    """A contender ended without a measurement; the message has its last words."""


def missing(contender: Contender) -> list[str]:
    """What a contender needs and this machine does not have."""
    return [need for need in contender.needs if not (_is_module(need) or found(need))]


def run_contest(contest: Contest, repeats: int, note: Note) -> Rounds:
    """Run every contender that can run ``repeats`` times; a peer that fails is left out, and said.

    Raises:
        ContenderFailed: ours did.
    """
    ready = [contender for contender in contest.contenders if not _left_out(contender, note)]
    rounds: dict[str, list[Measured]] = {contender.name: [] for contender in ready}
    if contest.together:
        for _ in range(contest.repeats or repeats):
            for name, measured in in_turns(contest).items():
                rounds[name].append(measured)
                note(f"{contest.name}: {name}: {measured.rate:,.1f} {contest.unit}/s")
        return rounds
    for number in range(contest.repeats or repeats):
        for contender in _rotated(ready, number):
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


def in_turns(contest: Contest) -> dict[str, Measured]:
    """One run of all contenders in one fresh process. Raises ContenderFailed as ``once`` does."""
    told = _answer(contest.contenders[0], contest.cores)
    return {name: Measured(**one) for name, one in told.items()}


def once(contender: Contender, cores: int) -> Measured:
    """One run in a fresh process, held to so many processors.

    Raises:
        ContenderFailed: it ended without a measurement.
    """
    return Measured(**_answer(contender, cores))


def _answer(contender: Contender, cores: int) -> dict[str, Any]:
    reading, writing = os.pipe()
    request = {"run": contender.run, "arguments": dict(contender.arguments)}
    command = [sys.executable, "-m", "iobench.sidebyside.child", str(writing)]
    # Ours may run from its source, which then is compiled once, as what is installed was.
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    allowed = sorted(os.sched_getaffinity(0))[-cores:]
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, allowed)  # inherited by the child and all that it starts
    try:
        done = subprocess.run(
            command,
            input=json.dumps(request),
            capture_output=True,
            text=True,
            pass_fds=[writing],
            timeout=_LIMIT_S,
            env=environment,
        )
    except subprocess.TimeoutExpired:
        os.close(writing)
        os.close(reading)
        raise ContenderFailed(f"no end after {_LIMIT_S:,} s") from None
    finally:
        os.sched_setaffinity(0, before)
    os.close(writing)
    with os.fdopen(reading) as answer:
        text = answer.read()
    if done.returncode or not text:
        raise ContenderFailed(f"exit {done.returncode}: {done.stderr[-_LAST_WORDS:].strip()}")
    told: dict[str, Any] = json.loads(text)
    return told


def _rotated(contenders: Sequence[Contender], number: int) -> Iterator[Contender]:
    start = number % len(contenders)
    yield from (*contenders[start:], *contenders[:start])


def _left_out(contender: Contender, note: Note) -> bool:
    lacking = missing(contender)
    if lacking:
        note(f"{contender.name} left out: {', '.join(lacking)} not installed")
    return bool(lacking)


def _is_module(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False
