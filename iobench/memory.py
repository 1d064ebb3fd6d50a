"""How much memory there is for data to stay in."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from iobench import control_groups
from iobench.kernel_files import text


def memory_bytes() -> int:
    """Memory that the page cache may take: the machine's, or less by the control group."""
    return min([machine_bytes(), *_group_limits()])


def available_bytes(meminfo: Path = Path("/proc/meminfo")) -> int:
    """Memory that may still be taken before others have to give theirs up.

    ``MemAvailable`` (proc(5)), at most what the control group allows; half of that where the
    kernel does not tell.
    """
    found = re.search(r"^MemAvailable:\s+(\d+) kB$", text(meminfo), re.MULTILINE)
    allowed = memory_bytes()
    return min(int(found[1]) * 1024, allowed) if found else allowed // 2


def machine_bytes() -> int:
    """The machine's memory, whatever a control group leaves of it."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _group_limits(root: Path = control_groups.SYSFS, groups: str | None = None) -> Iterator[int]:
    """Memory limits of our control group and of those around it, of either version."""
    for folder, version in control_groups.folders("memory", root, groups):
        limit = folder / ("memory.limit_in_bytes" if version == 1 else "memory.max")
        with contextlib.suppress(OSError, ValueError):  # absent, or "max"
            yield int(limit.read_text())
