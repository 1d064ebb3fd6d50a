"""``tree``: processor time and memory of the measured process and of all that it started."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from iobench.errors import Unavailable
from iobench.samplers.processes import descendants, read_process
from iobench.samplers.proportional import pss_bytes
from iobench.samplers.rates import Rates

# New workers are looked for so often, beside when the process says that it has new children:
# it takes a look at every process of the machine.
_LOOK_EVERY_S = 2.0
# Of a processor, that counting pages may take: the more pages, the more seldom they are counted.
_PSS_SHARE = 0.003
_NO_PSS = (
    "memory of processes is RSS here, in which pages that several share count for each of them: "
    "/proc/PID/smaps_rollup cannot be read"
)


class TreeSampler:
    """Processors kept busy by the process tree, of children that ended and were reaped too.

    And its memory: RSS at every reading, PSS as often as ``_PSS_SHARE`` allows; ``clock`` tells
    the seconds that this took.
    """

    def __init__(
        self,
        process: int,
        proc: Path = Path("/proc"),
        clock: Callable[[], float] = time.thread_time,
    ) -> None:
        self._root, self._proc, self._clock = process, proc, clock
        self._tick_s = 1 / os.sysconf("SC_CLK_TCK")
        self._page_bytes = os.sysconf("SC_PAGE_SIZE")
        self._members: set[int] = {process}
        self._children = b""
        self._looked_s: float | None = None
        self._rates = Rates()
        if read_process(process, proc) is None:
            raise Unavailable(f"no processor time of the process tree: no {proc}/PID/stat")
        # None: it cannot be read.
        self._pss_due_s = float("-inf") if pss_bytes(proc, process) else None
        self.notes: Sequence[str] = () if self._pss_due_s is not None else (_NO_PSS,)

    def read(self, now_s: float) -> Mapping[str, float]:
        """Processor seconds a second, user and system, of that by workers; memory; processes."""
        if self._is_time_to_look(now_s):
            self._looked_s = now_s
            self._members = descendants(self._root, self._proc)
        found = {
            pid: one for pid in self._members if (one := read_process(pid, self._proc)) is not None
        }
        workers = [one for pid, one in found.items() if pid != self._root]
        counters = {
            "user_cores": sum(one.user_ticks for one in found.values()) * self._tick_s,
            "system_cores": sum(one.system_ticks for one in found.values()) * self._tick_s,
            "worker_cores": sum(one.user_ticks + one.system_ticks for one in workers)
            * self._tick_s,
        }
        return {
            **self._rates.of(counters, now_s),
            "rss_bytes": sum(one.rss_pages for one in found.values()) * self._page_bytes,
            **self._proportional(found, now_s),
            "processes": len(found),
        }

    def close(self) -> None:
        """Nothing is open."""

    def _is_time_to_look(self, now_s: float) -> bool:
        """Children of the process's first thread are told by a file of its own (proc(5))."""
        before, self._children = self._children, self._told_children()
        due = self._looked_s is None or now_s - self._looked_s >= _LOOK_EVERY_S
        return due or self._children != before

    def _told_children(self) -> bytes:
        path = self._proc / str(self._root) / "task" / str(self._root) / "children"
        try:
            return path.read_bytes()
        except OSError:  # it has gone, or the kernel has no such file
            return b""

    def _proportional(self, members: Iterable[int], now_s: float) -> dict[str, float]:
        """PSS of all together, where it can be read and its time has come."""
        if self._pss_due_s is None or now_s < self._pss_due_s:
            return {}
        begun_s = self._clock()
        sizes = [pss_bytes(self._proc, pid) for pid in members]
        self._pss_due_s = now_s + (self._clock() - begun_s) / _PSS_SHARE
        known = [size for size in sizes if size is not None]
        # Without one of them it is not the memory of the tree.
        return {"pss_bytes": sum(known)} if len(known) == len(sizes) and any(known) else {}
