"""``tree``: processor time of the measured process and of all that it started."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from iobench.errors import Unavailable
from iobench.samplers.processes import descendants, read_process
from iobench.samplers.rates import Rates

# New workers are looked for so often: it takes a look at every process of the machine.
_LOOK_EVERY_S = 2.0


class TreeSampler:
    """Processors kept busy by the process tree, of children that ended and were reaped too."""

    notes: Sequence[str] = ()

    def __init__(self, process: int, proc: Path = Path("/proc")) -> None:
        self._root, self._proc = process, proc
        self._tick_s = 1 / os.sysconf("SC_CLK_TCK")
        self._members: set[int] = {process}
        self._looked_s: float | None = None
        self._rates = Rates()
        if read_process(process, proc) is None:
            raise Unavailable(f"no processor time of the process tree: no {proc}/PID/stat")

    def read(self, now_s: float) -> Mapping[str, float]:
        """Processor seconds a second, user and system, and how many processes there are."""
        if self._looked_s is None or now_s - self._looked_s >= _LOOK_EVERY_S:
            self._looked_s = now_s
            self._members = descendants(self._root, self._proc)
        found = [one for pid in self._members if (one := read_process(pid, self._proc)) is not None]
        counters = {
            "user_cores": sum(one.user_ticks for one in found) * self._tick_s,
            "system_cores": sum(one.system_ticks for one in found) * self._tick_s,
        }
        return {**self._rates.of(counters, now_s), "processes": len(found)}

    def close(self) -> None:
        """Nothing is open."""
