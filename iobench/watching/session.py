"""Watched loaders of one process and one folder, and what they tell the companion."""

from __future__ import annotations

import datetime
import math
import time
from array import array
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from iobench.watching.batch_size import samples_in
from iobench.watching.device import DeviceIdle
from iobench.watching.epoch import STEP_FIELDS, UNKNOWN, Epoch
from iobench.watching.proxy import proxied

_SEND_EVERY_S = 1.0
_CALIBRATION = 2_000


class Line(Protocol):
    """Where messages go."""

    alive: bool

    def send(self, head: Mapping[str, Any], doubles: bytes = b"") -> None:
        """Hand one over."""
        ...

    def end(self, wait_s: float) -> bool:
        """Say that no more will come, and wait; whether all went well."""
        ...


class Steps:
    """Records of one loader, sent about once a second.

    Ctrl-C may come between any two steps of this code, and the script goes on to its report: what
    is sent is forgotten last, so that it may be sent twice, and ``first`` tells how much of it was.
    """

    def __init__(self, line: Line, number: int, idle: DeviceIdle | None) -> None:
        self._line, self._number, self._idle = line, number, idle
        self._unsent = (0, array("d"))  # how many records went before, and those since
        self._sent_s = -math.inf

    def step(self, record: tuple[float, float, float, float, float]) -> None:
        """Keep it; send what there is if the last time is long ago."""
        self._unsent[1].extend(record)
        if record[3] - self._sent_s >= _SEND_EVERY_S:
            self._sent_s = record[3]
            self.settle()

    def asking(self, epoch: int, called_s: float) -> None:
        """Mark it on the device, if that is watched."""
        if self._idle is not None:
            self._idle.asking(called_s)

    def given(self) -> None:
        """Mark it on the device, if that is watched."""
        if self._idle is not None:
            self._idle.given()

    def settle(self) -> None:
        """Send all that is known."""
        first, records = self._unsent
        if records and self._line.alive:
            self._line.send({"steps": self._number, "first": first}, records.tobytes())
        self._unsent = (first + len(records) // len(STEP_FIELDS), array("d"))
        if self._idle is not None and (found := self._idle.settled()):
            if self._line.alive:
                self._line.send({"idle": self._number}, found)
            self._idle.forget(found)


class Session:
    """One run: a folder, a line to the companion, any number of loaders."""

    def __init__(
        self, folder: Path, line: Line, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self.folder, self._line, self._clock = folder, line, clock
        self._steps: list[Steps] = []
        self._names: list[str] = []

    def watch(
        self, loader: Any, name: str | None, batch_size: int | None, idle: DeviceIdle | None
    ) -> Any:
        """The loader, watched."""
        number = len(self._steps)
        steps = Steps(self._line, number, idle)
        self._steps.append(steps)
        self._names.append(self._unlike(name or type(loader).__name__))
        said = {"name": self._names[-1], "batch_size": batch_size, "device": idle is not None}
        self._line.send({"open": number, **said})
        count = counting(batch_size)
        epochs = -1

        def epoch(make: Callable[[], Iterator[Any]]) -> Epoch:
            nonlocal epochs
            epochs += 1
            return Epoch(make, epochs, steps, count, self._clock)

        return proxied(loader, epoch)

    def finish(self, wait_s: float) -> bool:
        """Send the rest and wait for the report; whether it was written."""
        for steps in self._steps:
            steps.settle()
        return self._line.end(wait_s)

    def _unlike(self, name: str) -> str:
        taken = self._names.count(name) + sum(
            known.startswith(f"{name} ") and known[len(name) + 1 :].isdigit()
            for known in self._names
        )
        return f"{name} {taken + 1}" if taken else name


def counting(batch_size: int | None) -> Callable[[Any], float]:
    """Samples of a batch: as told, else as found; NaN where that cannot be."""

    def found(batch: Any) -> float:
        size = samples_in(batch)
        return UNKNOWN if size is None else size

    return found if batch_size is None else lambda batch: batch_size


class _Nothing:
    """A line that leads nowhere, for calibration."""

    alive = True

    def send(self, head: Mapping[str, Any], doubles: bytes = b"") -> None:
        """Throw it away."""

    def end(self, wait_s: float) -> bool:
        """Nothing was to come."""
        return True


class _Array:
    """What looks like an array to those who count samples."""

    shape = (32, 3)


def step_cost_s(batch_size: int | None = None) -> float:
    """Seconds that watching takes of a step: passes over nothing, watched and not; some ms in all.

    The least of a few: others on the machine only ever add.
    """
    batches = [(_Array(), _Array())] * _CALIBRATION
    spent = []
    for _ in range(3):
        steps = Steps(_Nothing(), 0, None)
        watched = Epoch(lambda: iter(batches), 0, steps, counting(batch_size))
        spent.append(_taken_s(watched) - _taken_s(iter(batches)))
    return max(0.0, min(spent)) / _CALIBRATION


def _taken_s(batches: Iterator[Any]) -> float:
    begun_s = time.perf_counter()
    for _ in batches:
        pass
    return time.perf_counter() - begun_s


def now() -> str:
    """ISO 8601 in UTC."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
