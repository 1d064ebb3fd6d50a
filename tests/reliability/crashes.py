"""Crashes, hangs and kills in native code: each loses one sample at most, and is told truthfully.

``PYTHONPATH=. python -m tests.reliability.crashes [--times N] [--seed S] [--only WORDS] [--save]``

Each row has its own randomness, of the seed and its words: it is repeated alone by ``--only`` with
some of them, and with ``--save`` takes its place among the rows that the same command saved before.
"""

from __future__ import annotations

import argparse
import datetime
import random
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

from tests.reliability import crash_elsewhere, crash_sources
from tests.reliability.crash_attempts import (
    crash,
    crash_s3,
    hang,
    killed_at_random,
    killed_once,
    memory,
    placed,
    retried,
    s3_stores,
)
from tests.reliability.crash_jobs import FAULTS, THREADS, Place, processes
from tests.reliability.limited import can_limit
from tests.reliability.rows import RESULTS, Row, Tried, load, save

Given = TypeVar("Given")

_CRASH = f"crash in native code ({', '.join(FAULTS)})"
_ALONE = "samples that crash fail alone, the signal told; all other bytes as without a crash"
_SOUND = "nothing failed, all bytes as without it"
_STOPPED = "stopped (1), sample and memory named, none failed; run elsewhere: all written"
_HANG = "hang in native code that holds the interpreter"
_FEWEST = 3
_SOURCES = tuple(what for what, kind in crash_sources.KINDS.items() if kind != "imagefolder")


class Fault(NamedTuple):
    """One row to be: ``attempt`` says what went wrong at one try, by chance and its number."""

    fault: str
    where: str
    seen: str
    attempt: Callable[[random.Random, int], list[str]]
    times: int

    def tried(self, seed: int) -> Row:
        """Try it, and say so on the way."""
        chance = random.Random(f"{seed} {self.fault} {self.where}")
        lost = 0
        for number in range(1, self.times + 1):
            wrong = self.attempt(chance, number)
            lost += bool(wrong)
            _say(f"{self.fault}, {self.where}: {number} of {self.times}", *wrong)
        return Row(self.fault, self.where, self.times, self.seen, lost)


def _say(*lines: str) -> None:
    sys.stdout.write("\n  ".join(lines) + "\n")
    sys.stdout.flush()


def every_fault(place: Place, times: int) -> Iterator[Fault]:
    """Every kind of fault at every kind of place; rare ones a tenth as often, thrice at least."""
    few = max(_FEWEST, times // 10)
    two = processes(2)
    yield from _sources(place, few)
    yield from _elsewhere(place, few)
    several = "1 to 6 samples at random"
    again = f"the program dies once and is run again: {_ALONE}"
    for where, seen, options in (
        ("threads", again, THREADS),
        ("worker processes: 1", _ALONE, processes(1)),
        ("worker processes: 2", _ALONE, two),
    ):
        attempt = _by_chance(lambda c, options: crash(place, placed(place, c), options), options)
        yield Fault(_CRASH, f"{where}, {several}", seen, attempt, times)

    def into_s3(chance: random.Random, number: int) -> list[str]:
        with s3_stores() as store:
            return crash_s3(place, chance, two, store)

    yield Fault(_CRASH, "into S3, worker processes: 2", _ALONE, into_s3, few)
    for where, options in (("threads", THREADS), ("worker processes: 2", two)):
        yield Fault(
            f"{_CRASH}, then --retry-failed",
            where,
            "nothing dies, all fail again; with a mended codec all are written",
            _by_chance(partial(retried, place), options),
            few,
        )
        sound = _by_chance(partial(killed_once, place), options)
        yield Fault("SIGKILL over two sound samples", where, _SOUND, sound, few)
        outside = _by_chance(partial(killed_at_random, place), options)
        yield Fault("SIGKILL from outside at a random moment", where, _SOUND, outside, times)
        ends = _by_chance(partial(memory, place), options)
        fault = "SIGKILL over one sample each time, as where memory ends"
        yield Fault(fault, where, _STOPPED, ends, few)
    seen = "stopped (1), the sample and the limit named"
    yield Fault(_HANG, "hung_samples=stop", seen, _by_chance(partial(hang, place), "stop"), few)
    seen = "this sample failed, all others written"
    yield Fault(_HANG, "hung_samples=fail", seen, _by_chance(partial(hang, place), "fail"), few)


def _by_chance(
    attempt: Callable[[random.Random, Given], list[str]], given: Given
) -> Callable[[random.Random, int], list[str]]:
    return lambda chance, number: attempt(chance, given)


def _sources(place: Place, few: int) -> Iterator[Fault]:
    """Kinds of sources in turn, boxes beside the images, and a source of somebody's own."""
    two = processes(2)

    def crashing(chance: random.Random, number: int) -> list[str]:
        what = _SOURCES[number % len(_SOURCES)]
        return crash_sources.crash(place, placed(place, chance), two, what)

    def hanging(chance: random.Random, number: int) -> list[str]:
        what = _SOURCES[2 * number % len(_SOURCES)]
        return crash_sources.hang(place, chance.choice(place.names), what, two)

    def boxed(chance: random.Random, number: int) -> list[str]:
        return crash_sources.boxes(place, placed(place, chance), two)

    kinds = f"sources in turn: {', '.join(_SOURCES)}; worker processes: 2"
    yield Fault(_CRASH, kinds, _ALONE, crashing, max(few, len(_SOURCES)))
    seen = "hung_samples=fail: this sample failed; all other bytes as without it"
    yield Fault(_HANG, kinds, seen, hanging, few)
    where = "images with boxes beside them, worker processes: 2"
    yield Fault(_CRASH, where, f"{_ALONE}, boxes among them", boxed, few)
    for where, workers in (("threads", 0), ("worker processes: 2", 2)):

        def own(chance: random.Random, number: int, workers: int = workers) -> list[str]:
            fault = chance.choice(("SIGSEGV", "SIGBUS", "SIGABRT"))
            return crash_sources.pipeline(place, chance, fault, {"WORKERS": str(workers)})

        fault = "crash in the decoder over one sample, and in the source that reads another"
        yield Fault(
            fault, f"dataprep.shard() with a source of one's own, {where}", _ALONE, own, few
        )


def _elsewhere(place: Place, few: int) -> Iterator[Fault]:
    """A scheduler by its address, and a group of processes in which memory really ends."""

    def nannies(chance: random.Random, number: int) -> list[str]:
        return crash_elsewhere.crash(place, placed(place, chance))

    def alone(chance: random.Random, number: int) -> list[str]:
        how = {chance.choice(place.names): chance.choice(FAULTS)}
        return crash_elsewhere.crash(place, how, "--no-nanny")

    where = "--scheduler ADDRESS, two workers started by hand"
    seen = f"{_ALONE}; the scheduler does another job"
    yield Fault(_CRASH, where, seen, nannies, few)
    yield Fault(f"{_CRASH}, one sample", f"{where} with --no-nanny", seen, alone, few)
    if not can_limit():
        _say("not tried: memory that really ends, since no group with a limit can be made here")
        return
    size = f"{crash_elsewhere.GROUP_BYTES / 2**30:g} GiB"
    for engine, options in (("threads", THREADS), ("worker processes: 2", processes(2))):
        attempt = _by_chance(partial(crash_elsewhere.memory, place), options)
        fault = "one sample takes all memory, the kernel's OOM killer ends what it chooses"
        where = f"a control group of {size}, {engine}"
        yield Fault(fault, where, _STOPPED, attempt, few)


def _saved_before(command: str, seed: int) -> Sequence[Row]:
    path = RESULTS / "crashes.json"
    before = load(path) if path.exists() else None
    same = before is not None and (before.command, before.seed) == (command, seed)
    return before.rows if before is not None and same else ()


def main() -> None:
    """The long form."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="rows with these words alone")
    parser.add_argument("--save", action="store_true")
    given = parser.parse_args()
    command = "PYTHONPATH=. python -m tests.reliability.crashes"
    command += f" --times {given.times} --seed {given.seed}"
    day = datetime.datetime.now(datetime.UTC).date().isoformat()
    title = "Crashes, hangs and kills in native code"
    rows = {(row.fault, row.where): row for row in _saved_before(command, given.seed)}
    with tempfile.TemporaryDirectory(prefix="crashes-") as folder:
        faults = [*every_fault(Place(Path(folder)), given.times)]
        order = [(fault.fault, fault.where) for fault in faults]
        for fault in faults:
            if given.only not in f"{fault.fault}, {fault.where}":
                continue
            row = rows[fault.fault, fault.where] = fault.tried(given.seed)
            _say(str(row))
            if given.save:
                found = [rows[key] for key in order if key in rows]
                save("crashes", Tried(title, command, day, given.seed, found))


if __name__ == "__main__":
    main()
