"""Repeated copies of objects by a program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from iobench.clock import VirtualClock
from iobench.errors import TrialFailed
from iobench.probes.object_store.objects import Objects
from iobench.probes.object_store.probe import copy_objects
from iobench.probes.settings import ObjectTrial

pytestmark = pytest.mark.slow

OBJECTS = Objects(1000, 3)


class Copier:
    """A copy of all objects, or of the given sizes, in two seconds."""

    notes: Sequence[str] = ("a remark",)

    def __init__(self, clock: VirtualClock, sizes: Sequence[int] = (1000, 1000, 1000)) -> None:
        self._clock = clock
        self._sizes = sizes
        self.folders: list[Path] = []

    def copy(self, prefix: str, folder: Path) -> None:
        """Make files of the given sizes."""
        assert prefix == "read/1000/"
        assert list(folder.iterdir()) == []
        self.folders.append(folder)
        for number, size in enumerate(self._sizes):
            (folder / str(number)).write_bytes(bytes(size))
        self._clock.sleep(2.0)


def limited(seconds: float, max_requests: int) -> ObjectTrial:
    """Return a trial with these limits."""
    return ObjectTrial("s3", "s5cmd", "get", 1000, 1, seconds, max_requests, 3000)


@pytest.mark.parametrize(
    ("seconds", "at_most", "rounds"), [(5.0, 100, 3), (0.1, 100, 1), (100.0, 5, 2), (1.0, 1, 1)]
)
def test_rounds(seconds: float, at_most: int, rounds: int) -> None:
    """Copies are repeated until time or number is used up, and removed."""
    clock, reported = VirtualClock(), list[float]()
    copier = Copier(clock)
    progress: Callable[[float, str], None] = lambda done, unit: reported.append(done)  # noqa: E731
    done = copy_objects(copier, OBJECTS, limited(seconds, at_most), clock, progress)
    totals = tuple(done[name] for name in ("requests", "bytes", "seconds"))
    assert totals == (3 * rounds, 3000 * rounds, 2.0 * rounds)
    assert reported == [3000 * number for number in range(1, rounds + 1)]
    assert done["cpu_cores"] >= 0
    assert done["notes"] == ["a remark"]
    assert not any(folder.exists() for folder in copier.folders)


@pytest.mark.parametrize("sizes", [(), (1000, 1000), (1000, 1000, 999), (1000,) * 4])
def test_other_than_all_is_a_failure(sizes: Sequence[int]) -> None:
    """A copy with missing, additional or short files fails the trial."""
    clock = VirtualClock()
    message = f"{len(sizes)} files with {sum(sizes):,} bytes were copied of 3"
    with pytest.raises(TrialFailed, match=message):
        copy_objects(Copier(clock, sizes), OBJECTS, limited(1.0, 9), clock, lambda done, unit: None)
