"""Which process wrote a file or an object, and whether that process is known to have ended."""

from __future__ import annotations

import hashlib
import os
import secrets
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple


class ProcessIdentity(NamedTuple):
    """A process of a machine. No other process is equal to it, not even one that had its number.

    ``machine`` stands for a boot of a machine and a namespace of process numbers, and names
    neither. ``started`` is in clock ticks after the boot; it is empty where the system does not
    say.
    """

    machine: str
    process: int
    started: str

    def has_ended(self) -> bool:
        """Whether the process is known to have ended; of other machines nothing is known."""
        if self.machine != _machine():
            return False
        try:
            os.kill(self.process, 0)
        except ProcessLookupError:
            return True
        except (OSError, OverflowError):
            pass  # the process belongs to another user, or the number is too large for a process
        return bool(self.started) and _started(self.process) not in ("", self.started)


def this_process() -> ProcessIdentity:
    """Return the identity of the process that asks."""
    return _identity(os.getpid())


def unknown_process() -> ProcessIdentity:
    """Return an identity of which nobody will ever know that it has ended."""
    return ProcessIdentity(secrets.token_hex(8), os.getpid(), "")


@lru_cache(maxsize=1)
def _identity(process: int) -> ProcessIdentity:
    return ProcessIdentity(_machine(), process, _started(process))


def _started(process: int) -> str:
    """Field 22 of proc(5)'s ``stat``; "ended" for a zombie, empty if it cannot be read."""
    try:
        state, *fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "ended" if state in ("Z", "X") else fields[18]


@lru_cache(maxsize=1)
def _machine() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()
        namespace = Path("/proc/self/ns/pid").readlink()
    except OSError:
        return secrets.token_hex(8)  # equal to no other machine, so that nothing is concluded
    return hashlib.sha256(f"{boot}{namespace}".encode()).hexdigest()[:16]
