"""Processes of this machine, told apart although their numbers are used again."""

from __future__ import annotations

import hashlib
import os
import secrets
from functools import lru_cache
from pathlib import Path


def started(process: int) -> str:
    """When a process began, in clock ticks after boot (proc(5)); empty if gone, or not known."""
    try:
        return _began(process)
    except OSError:
        return ""


def lives(process: int, began: str) -> bool:
    """Whether the process that ``started`` so still lives; where that cannot be told, it does.

    A system may hide the processes of other users (proc(5), ``hidepid``), but not that there are
    any; and there may be no descriptor left to look with.
    """
    try:
        return _began(process) == began != ""
    except (FileNotFoundError, ProcessLookupError):
        pass
    except OSError:
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return not began


def _began(process: int) -> str:
    """Empty for a zombie. Raises OSError where it cannot be read."""
    stat = Path(f"/proc/{process}/stat").read_text()
    state, *fields = stat.rpartition(")")[2].split()
    return "" if state in ("Z", "X") else fields[18]


@lru_cache(maxsize=1)
def machine() -> str:
    """This boot of this machine and its processes' name space, without a name."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()
        space = Path("/proc/self/ns/pid").readlink()
    except OSError:
        return secrets.token_hex(8)  # like nobody else: such a lease lapses
    return hashlib.sha256(f"{boot}{space}".encode()).hexdigest()[:16]
