"""Memory of a process in which shared pages count once: ``/proc/PID/smaps_rollup`` (proc(5)).

Linux has it from 4.14 on. The kernel walks all pages of the process for it: 20 ms a GB, say.
"""

from __future__ import annotations

import re
from pathlib import Path

_LINE = re.compile(rb"^(Pss|Pss_Anon|Pss_Shmem):\s+(\d+) kB$", re.M)


def pss_bytes(proc: Path, process: int) -> int | None:
    """Its proportional set size: each page divided by the number of processes that map it.

    0 for a process that has gone; None where it may not be read.
    """
    try:
        return _rollup(proc, process).get(b"Pss", 0)
    except (FileNotFoundError, ProcessLookupError):
        return 0
    except OSError:
        return None


def unbacked_bytes(proc: Path, process: int) -> int | None:
    """The same of pages that no file backs, anonymous ones and shared memory.

    All of them where an older kernel does not tell them apart; None for a process that has gone or
    may not be read.
    """
    try:
        found = _rollup(proc, process)
    except OSError:
        return None
    if b"Pss_Anon" in found:
        return found[b"Pss_Anon"] + found.get(b"Pss_Shmem", 0)
    return found.get(b"Pss")


def _rollup(proc: Path, process: int) -> dict[bytes, int]:
    data = (proc / str(process) / "smaps_rollup").read_bytes()
    return {name: 1024 * int(size) for name, size in _LINE.findall(data)}
