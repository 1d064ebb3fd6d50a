"""``cpu``: what the machine's processors did, from ``/proc/stat`` (proc(5))."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from iobench.errors import Unavailable

# The order of the kernel's columns; guests are counted in user time already.
_COLUMNS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
_SHARES = {
    "user_share": ("user", "nice"),
    "system_share": ("system", "irq", "softirq"),
    "iowait_share": ("iowait",),
    "steal_share": ("steal",),
}


class CpuSampler:
    """Shares of the time of all processors, 0 to 1; of the machine, not of a container."""

    notes: Sequence[str] = (
        "iowait is idle time of processors while some read or write was under way: a machine "
        "whose processors are busy shows little of it however long its loader waits",
    )

    def __init__(self, process: int, proc: Path = Path("/proc")) -> None:
        self._path = proc / "stat"
        self._before: dict[str, int] | None = None
        if not _counters(self._path):
            raise Unavailable("no processor times: /proc/stat cannot be read")

    def read(self, now_s: float) -> Mapping[str, float]:
        """Shares since the call before."""
        counters = _counters(self._path)
        before, self._before = self._before, counters
        if before is None or not counters:
            return {}
        # The kernel takes iowait back at times.
        spent = {name: max(0, counters[name] - before.get(name, 0)) for name in counters}
        total = sum(spent.values())
        if not total:
            return {}
        return {
            share: sum(spent.get(name, 0) for name in names) / total
            for share, names in _SHARES.items()
        }

    def close(self) -> None:
        """Nothing is open."""


def _counters(path: Path) -> dict[str, int]:
    try:
        with path.open("rb") as file:
            words = file.readline().split()
    except OSError:
        return {}
    if words[:1] != [b"cpu"]:
        return {}
    return dict(zip(_COLUMNS, map(int, words[1 : len(_COLUMNS) + 1]), strict=False))
