"""A control group with little memory, in which the kernel itself ends processes (Linux, cgroup v1).

It needs the right to make one below ``/sys/fs/cgroup/memory``: root's, on a machine of one's own.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_GROUPS = Path("/sys/fs/cgroup/memory")
_PATIENCE_S = 30.0


@dataclass(frozen=True)
class Group:
    """A group of processes whose memory together is bounded."""

    folder: Path

    @property
    def kills(self) -> int:
        """How many processes the kernel has ended in it since memory ran out."""
        lines = (self.folder / "memory.oom_control").read_text().splitlines()
        return int(dict(line.split() for line in lines)["oom_kill"])


@contextlib.contextmanager
def limited(most_bytes: int) -> Iterator[Group]:
    """A group with so much memory; gone afterwards.

    Raises:
        OSError: this system has no such groups, or not for this user.
    """
    folder = _GROUPS / f"dataprep-{secrets.token_hex(4)}"
    folder.mkdir()
    try:
        (folder / "memory.limit_in_bytes").write_text(str(most_bytes))
        yield Group(folder)
    finally:
        deadline_s = time.monotonic() + _PATIENCE_S
        while True:  # until its last process is quite gone
            try:
                folder.rmdir()
                break
            except OSError:
                if time.monotonic() > deadline_s:
                    raise
                time.sleep(0.05)


def can_limit() -> bool:
    """Whether this user may make such groups here."""
    try:
        with limited(2**30) as group:
            return group.kills == 0
    except (OSError, KeyError):
        return False
