"""How much memory there is for data to stay in."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path


def memory_bytes() -> int:
    """Memory that the page cache may take: the machine's, or less by the control group."""
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min([machine, *_group_limits()])


def _group_limits(root: Path = Path("/sys/fs/cgroup"), groups: str | None = None) -> Iterator[int]:
    """Memory limits of our control group and of those around it, of either version."""
    if groups is None:
        try:
            groups = Path("/proc/self/cgroup").read_text()
        except OSError:
            return
    for line in groups.splitlines():
        _, controllers, name = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        top = root / "memory" if controllers else root
        own = top / name.strip("/")
        for folder in (own, *own.parents):
            limit = folder / ("memory.limit_in_bytes" if controllers else "memory.max")
            with contextlib.suppress(OSError, ValueError):  # absent, or "max"
                yield int(limit.read_text())
            if folder == top:
                break
