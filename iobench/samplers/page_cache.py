"""``page-cache``: how much of files the kernel holds in memory, from ``/proc/meminfo``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from iobench.errors import Unavailable

_NAMES = {b"Cached": "cached_bytes", b"Dirty": "dirty_bytes"}
_LINE = re.compile(rb"^(Cached|Dirty):\s+(\d+) kB$", re.M)


class PageCacheSampler:
    """Bytes of files in memory, and of those that are yet to be written; of the machine."""

    notes: Sequence[str] = ()

    def __init__(self, process: int, proc: Path = Path("/proc")) -> None:
        self._path = proc / "meminfo"
        if not self.read(0.0):
            raise Unavailable("no size of the page cache: /proc/meminfo cannot be read")

    def read(self, now_s: float) -> Mapping[str, float]:
        """As it is now."""
        try:
            data = self._path.read_bytes()
        except OSError:
            return {}
        return {_NAMES[name]: int(kib) * 1024 for name, kib in _LINE.findall(data)}

    def close(self) -> None:
        """Nothing is open."""
