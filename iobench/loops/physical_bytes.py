"""Bytes that storage gave to a loop: to this process and to the workers that live.

``read_bytes`` of proc_pid_io(5) holds a process, its threads and the children that it has reaped,
so that a worker is counted by itself while it lives, in its parent's count afterwards, and never
in both.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from iobench.machine.processes import descendants

_PROC = Path("/proc")
_TRIES = 5


def physical_bytes(proc: Path = _PROC, root: int | None = None) -> int | None:
    """So far, of a process (this one) and all below it; None where the kernel does not tell it."""
    root = os.getpid() if root is None else root
    for _ in range(_TRIES):
        before = descendants(root)
        try:
            counts = [_read_bytes(pid, proc) for pid in before]
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended meanwhile: by now it may stand in its parent's count
        except OSError:
            return None
        if descendants(root) == before:
            known = [count for count in counts if count is not None]
            return sum(known) if len(known) == len(counts) else None
    return None


def _read_bytes(pid: int, proc: Path) -> int | None:
    found = re.search(r"^read_bytes: (\d+)$", (proc / str(pid) / "io").read_text(), re.M)
    return int(found[1]) if found else None
