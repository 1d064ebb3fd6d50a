"""Identify the process that wrote a file or an object, and check whether it has ended."""

from __future__ import annotations

import hashlib
import os
import secrets
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from dataprep.machine.kernel_files import text


class ProcessIdentity(NamedTuple):
    """The identity of a process. A later process with the same PID has a different identity.

    Attributes:
        machine: a hash of the boot of the machine and of the PID namespace. It does not reveal the
            name of the machine.
        process: the PID.
        started: the start time of the process, in clock ticks after the boot; empty if unknown.
    """

    machine: str
    process: int
    started: str

    def has_ended(self) -> bool:
        """Whether the process is known to have ended. It is never known for other machines."""
        if self.machine != _this_machine():
            return False
        try:
            os.kill(self.process, 0)
        except ProcessLookupError:
            return True
        except (OSError, OverflowError):
            # The process belongs to another user, or the number is too large for a PID.
            pass
        if not self.started:
            return False
        # If the start time differs, a later process has got the same PID.
        return _start_time(self.process) not in ("", self.started)


def this_process() -> ProcessIdentity:
    """Return the identity of the calling process."""
    return _identity(os.getpid())


def unknown_process() -> ProcessIdentity:
    """Return an identity that is never known to have ended."""
    return ProcessIdentity(secrets.token_hex(8), os.getpid(), "")


@lru_cache(maxsize=1)
def _identity(process: int) -> ProcessIdentity:
    """Return the identity of a process of this machine."""
    return ProcessIdentity(_this_machine(), process, _start_time(process))


def _start_time(process: int) -> str:
    """Return the start time of a process, which is field 22 of its ``stat`` file (proc(5)).

    The result is "ended" for a zombie, and empty if the file cannot be read.
    """
    # The kernel cuts the name of a program to 15 bytes, which may not be UTF-8 then.
    status = text(Path(f"/proc/{process}/stat"))
    if not status:
        return ""
    # Field 2 is the name of the program in parentheses, which may contain spaces.
    _, _, after_name = status.rpartition(")")
    state, *fields_from_4 = after_name.split()
    if state in ("Z", "X"):
        return "ended"
    return fields_from_4[22 - 4]


@lru_cache(maxsize=1)
def _this_machine() -> str:
    """Return the hash of this boot and this PID namespace."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()
        namespace = Path("/proc/self/ns/pid").readlink()
    except OSError:
        # A random value differs from all other values, so that no process counts as ended.
        return secrets.token_hex(8)
    return hashlib.sha256(f"{boot}{namespace}".encode()).hexdigest()[:16]
