"""A job as it is seen from outside: what it did when, and the memory of its workers."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from dataprep.job.report import Display
from dataprep.job.worker import Progress

_EVERY_S = 0.1
_KIB = 1024


@dataclass
class Recorder(Display):
    """A job's display that keeps when how many samples were done, by the wall clock."""

    marks: list[tuple[float, int]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def advance(self, progress: Progress) -> None:
        """Keep the time of this report."""
        with self._lock:
            self.marks.append((time.time(), progress.samples))


def steady(
    marks: Sequence[tuple[float, int]], stored_s: Sequence[float], workers: int
) -> tuple[int, float]:
    """PURE. Samples and seconds of the time in which no worker lacked a shard.

    It begins with the first of ``marks`` (time, samples done since the mark before) and ends when
    fewer shards than ``workers`` remain: ``stored_s`` are the times at which shards were stored.

    Raises:
        ValueError: too few shards or reports for that.
    """
    whole = len(stored_s) - workers
    if whole < 0 or len(marks) < 2:
        raise ValueError(f"{len(stored_s)} shards are too few for a steady state")
    begin_s, end_s = marks[0][0], sorted(stored_s)[whole]
    return sum(samples for at_s, samples in marks[1:] if at_s <= end_s), end_s - begin_s


class Memory(threading.Thread):
    """Resident sizes of this process's children, read ten times a second.

    ``sizes`` has, for each reading, its time and the largest resident size of a child in bytes.
    """

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._over = threading.Event()
        self.peak_bytes = 0
        self.sizes: list[tuple[float, int]] = []

    def run(self) -> None:
        """Read the kernel's own accounts, high-water marks for the peak."""
        while not self._over.wait(_EVERY_S):
            read = [_memory(child.pid) for child in psutil.Process().children(recursive=True)]
            self.peak_bytes = max([self.peak_bytes, *(peak for peak, _ in read)])
            self.sizes.append((time.time(), max((now for _, now in read), default=0)))

    def __enter__(self) -> Memory:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()


def _memory(pid: int) -> tuple[int, int]:
    """Peak and present resident size in bytes; 0 of a process that is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0, 0
    lines = dict(line.split(":", 1) for line in status.splitlines() if line.startswith("Vm"))
    return _bytes(lines.get("VmHWM")), _bytes(lines.get("VmRSS"))


def _bytes(value: str | None) -> int:
    return int(value.split()[0]) * _KIB if value else 0
