"""``tree``: processor time of the measured process and of all that it started."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from iobench.errors import Unavailable
from iobench.samplers.rates import Rates

# New workers are looked for so often: it takes a look at every process of the machine.
_LOOK_EVERY_S = 2.0
_LONGEST_BYTES = 4096  # a line of 52 numbers and a name


class _Process(NamedTuple):
    parent: int
    user_s: float
    system_s: float


class TreeSampler:
    """Processors kept busy by the process tree, of children that ended and were reaped too."""

    notes: Sequence[str] = ()

    def __init__(self, process: int, proc: Path = Path("/proc")) -> None:
        self._root, self._proc = process, proc
        self._tick_s = 1 / os.sysconf("SC_CLK_TCK")
        self._members: set[int] = {process}
        self._looked_s: float | None = None
        self._rates = Rates()
        if self._stat(process) is None:
            raise Unavailable(f"no processor time of the process tree: no {proc}/PID/stat")

    def read(self, now_s: float) -> Mapping[str, float]:
        """Processor seconds a second, user and system, and how many processes there are."""
        if self._looked_s is None or now_s - self._looked_s >= _LOOK_EVERY_S:
            self._looked_s = now_s
            self._members = self._descendants()
        found = [stat for pid in self._members if (stat := self._stat(pid)) is not None]
        counters = {
            "user_cores": sum(stat.user_s for stat in found),
            "system_cores": sum(stat.system_s for stat in found),
        }
        return {**self._rates.of(counters, now_s), "processes": len(found)}

    def close(self) -> None:
        """Nothing is open."""

    def _descendants(self) -> set[int]:
        """The root and everything below it, by each process's parent."""
        children: dict[int, list[int]] = {}
        for pid in self._all():
            if (stat := self._stat(pid)) is not None:
                children.setdefault(stat.parent, []).append(pid)
        found, fresh = {self._root}, [self._root]
        while fresh:
            below = [pid for pid in children.get(fresh.pop(), ()) if pid not in found]
            found.update(below)
            fresh.extend(below)
        return found

    def _all(self) -> Iterator[int]:
        with os.scandir(self._proc) as entries:
            yield from (int(entry.name) for entry in entries if entry.name.isdigit())

    def _stat(self, pid: int) -> _Process | None:
        """Of one process, its reaped children included (cutime, cstime); None if it is gone."""
        try:
            descriptor = os.open(f"{self._proc}/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            data = os.read(descriptor, _LONGEST_BYTES)
        except OSError:  # it went just now
            return None
        finally:
            os.close(descriptor)
        # A name may hold anything, brackets too: what follows the last one is numbers.
        words = data[data.rfind(b")") + 2 :].split()
        if len(words) < 15:
            return None
        user, system, user_reaped, system_reaped = map(int, words[11:15])
        scale = self._tick_s
        return _Process(
            int(words[1]), (user + user_reaped) * scale, (system + system_reaped) * scale
        )
