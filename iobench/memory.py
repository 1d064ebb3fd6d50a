"""How much memory there is for data to stay in."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from iobench import control_groups


def memory_bytes() -> int:
    """Memory that the page cache may take: the machine's, or less by the control group."""
    return min([machine_bytes(), *_group_limits()])


def machine_bytes() -> int:
    """The machine's memory, whatever a control group leaves of it."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _group_limits(root: Path = control_groups.SYSFS, groups: str | None = None) -> Iterator[int]:
    """Memory limits of our control group and of those around it, of either version."""
    for folder, version in control_groups.folders("memory", root, groups):
        limit = folder / ("memory.limit_in_bytes" if version == 1 else "memory.max")
        with contextlib.suppress(OSError, ValueError):  # absent, or "max"
            yield int(limit.read_text())
