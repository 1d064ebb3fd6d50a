"""Hostile inputs to every reader: python -m tests.reliability.hostile_records [--save].

Each family of readers (tests/reliability/hostile) has a process of its own, whose memory is
bounded, so that one that dies is seen. Sound files are changed at random and by what their formats
forbid; inputs that reach new lines of the product are changed further.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.reliability.hostile import FAMILIES
from tests.reliability.hostile.bounds import MEMORY_BYTES, SECONDS
from tests.reliability.rows import RESULTS, Row, Tried, load, save

MINUTES = 25.0
_FORM = "hostile_records"
_GRACE_S = 300.0
_WEIGHTS = {"benchmarks": 6, "outputs": 6, "unfinished": 6}
"""Families whose inputs each take longer; the others have 2."""

_SETTINGS = {
    "MALLOC_ARENA_MAX": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "OMP_NUM_THREADS": "1",
    "PYTHONWARNINGS": "ignore",
}


@dataclass(frozen=True)
class Outcome:
    """What one reader did; a process that ended over an input is a fault of its family."""

    name: str
    seed: int
    inputs: int
    read: int
    refused: int
    lines: int
    seconds: float
    faults: Sequence[str]


def family(
    name: str, seed: int, *, inputs: int = 10**12, seconds: float | None = None, keep: Path
) -> Iterator[Outcome]:
    """Fuzz each target of a family in a process of its own."""
    command = [sys.executable, "-m", "tests.reliability.hostile", name, "--seed", str(seed)]
    command += ["--inputs", str(inputs), "--keep", os.fspath(keep)]
    command += [] if seconds is None else ["--seconds", str(seconds)]
    with tempfile.TemporaryDirectory(dir=_memory()) as scratch:
        done = subprocess.run(
            command,
            capture_output=True,
            env={**os.environ, **_SETTINGS, "TMPDIR": scratch, "XDG_CACHE_HOME": scratch},
            timeout=None if seconds is None else 40 * seconds + _GRACE_S,
            check=False,
        )
    for line in done.stdout.decode().splitlines():
        if line.startswith("{"):
            yield _outcome(json.loads(line))
    if done.returncode:
        under_way = [path.name for path in keep.glob("*.now")]
        words = done.stderr.decode()[-2000:]
        yield Outcome(
            name, seed, 0, 0, 0, 0, 0.0, [f"exit {done.returncode} over {under_way}: {words}"]
        )


def _outcome(found: dict[str, Any]) -> Outcome:
    faults = [f"{what} (input {digest})" for what, digest in found["faults"].items()]
    return Outcome(**{**found, "faults": faults})


def row(found: Outcome) -> Row:
    """As the page has it."""
    share = found.refused / max(1, found.inputs)
    seen = (
        f"{found.read:,} read, {found.refused:,} refused by name and place ({share:.0%}); "
        f"{found.lines:,} lines of the product reached, {found.seconds / 60:.1f} min"
    )
    return Row("hostile input", found.name, found.inputs, seen, len(found.faults))


def _memory() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def main() -> None:
    """Every family, for a share of the time each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=MINUTES, help="of fuzzing in all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--family", choices=FAMILIES, action="append")
    parser.add_argument("--save", action="store_true")
    asked = parser.parse_args()
    chosen = asked.family or FAMILIES
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(dir=_memory()) as folder:
        keep = Path(folder)
        for name in chosen:
            targets = _targets(name)
            share = _WEIGHTS.get(name, 2) / sum(_WEIGHTS.get(one, 2) for one in chosen)
            seconds = asked.minutes * 60 * share / targets
            for found in family(name, asked.seed, seconds=seconds, keep=keep):
                rows.append(row(found))
                _say(f"{name}: {rows[-1].where}: {rows[-1].times:,} inputs, {rows[-1].seen}")
                for fault in found.faults:
                    _say(f"  FAULT {fault}")
    total = sum(one.times for one in rows)
    _say(f"{total:,} inputs in {asked.minutes:g} min; at most {SECONDS:g} s and {_mib()} each")
    if asked.save:
        command = (
            f"PYTHONPATH=. python -m tests.reliability.hostile_records --minutes {asked.minutes:g}"
        )
        if asked.family:
            command, rows = _among_saved(rows, command)
            total = sum(one.times for one in rows)
        title = (
            f"Hostile files: {total:,} inputs, {len(rows)} readers, at most {SECONDS:g} s of a "
            f"processor and {_mib()} of memory an input"
        )
        day = datetime.datetime.now(datetime.UTC).date().isoformat()
        save(_FORM, Tried(title, command, day, asked.seed, rows))
    sys.exit(1 if any(one.lost for one in rows) else 0)


def _among_saved(rows: Sequence[Row], command: str) -> tuple[str, list[Row]]:
    """What was saved before, with these readers' rows in the place of their old ones."""
    path = RESULTS / f"{_FORM}.json"
    anew = {one.where: one for one in rows}
    if not path.exists():
        return command, list(rows)
    before = load(path)
    return before.command, [anew.pop(one.where, one) for one in before.rows] + list(anew.values())


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _targets(name: str) -> int:
    """How many readers a family has, asked in a process of its own."""
    script = f"import tests.reliability.hostile.{name} as f; print(len(f.targets()))"
    return int(
        subprocess.run([sys.executable, "-c", script], capture_output=True, check=True).stdout
    )


def _mib() -> str:
    return f"{MEMORY_BYTES // 2**20} MiB"


if __name__ == "__main__":
    main()
