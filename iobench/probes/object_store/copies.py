"""Whole objects copied by a client of its own, again and again until time is up."""

from __future__ import annotations

import resource
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from iobench.clock import Clock
from iobench.errors import TrialFailed
from iobench.probes.object_store.clients import CopyClient
from iobench.probes.object_store.pool import Objects

_MEMORY = Path("/dev/shm")  # noqa: S108  a folder of its own is made in it


@dataclass(frozen=True, slots=True)
class Copies:
    """What was copied; ``seconds`` with a program's start, ``cpu_s`` of this and its processes."""

    objects: int
    bytes: int
    seconds: float
    cpu_s: float


def copies(
    client: CopyClient,
    objects: Objects,
    seconds: float,
    at_most: int,
    clock: Clock,
    progress: Callable[[float, str], None] = lambda done, unit: None,
) -> Copies:
    """Copy all ``objects`` into memory, at least once, and again.

    That ends after ``seconds``, or when ``at_most`` objects were copied. Removing them is not in
    the time.

    Raises:
        TrialFailed: the program's failure, or not all was there afterwards.
    """
    taken_s = cpu_s = 0.0
    rounds = 0
    while not rounds or (taken_s < seconds and rounds * objects.count < at_most):
        with tempfile.TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None) as folder:
            start_s, before_s = clock.now_s(), _cpu_s()
            client.copy(objects.prefix, Path(folder))
            taken_s += clock.now_s() - start_s
            cpu_s += _cpu_s() - before_s
            _require_all(Path(folder), objects)
        rounds += 1
        progress(rounds * objects.count * objects.bytes, "bytes")
    count = rounds * objects.count
    return Copies(count, count * objects.bytes, taken_s, cpu_s)


def _require_all(folder: Path, objects: Objects) -> None:
    sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    if sizes != [objects.bytes] * objects.count:
        raise TrialFailed(
            f"{len(sizes)} files with {sum(sizes):,} bytes came of {objects.count} objects of "
            f"{objects.bytes:,}"
        )


def _cpu_s() -> float:
    """Of this process, and of those that it has started and waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)
