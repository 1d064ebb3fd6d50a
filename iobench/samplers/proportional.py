"""Memory of a process in which shared pages count once: ``/proc/PID/smaps_rollup`` (proc(5)).

Linux has it from 4.14 on. The kernel walks all pages of the process for it: 20 ms a GB, say.
"""

from __future__ import annotations

import re
from pathlib import Path

_PSS = re.compile(rb"^Pss:\s+(\d+) kB$", re.M)


def pss_bytes(proc: Path, process: int) -> int | None:
    """Its proportional set size: each page divided by the number of processes that map it.

    0 for a process that has gone; None where it may not be read.
    """
    try:
        data = (proc / str(process) / "smaps_rollup").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    except OSError:
        return None
    found = _PSS.search(data)
    return int(found[1]) * 1024 if found else 0
