"""Processes of this machine, told apart although their numbers are used again."""

from __future__ import annotations

from pathlib import Path


def started(process: int) -> str:
    """When a process began, in clock ticks after boot (proc(5)); empty if gone, or not known."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return ""
    state, *fields = stat.rpartition(")")[2].split()
    return "" if state in ("Z", "X") else fields[18]
