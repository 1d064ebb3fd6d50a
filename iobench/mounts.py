"""Which file system a path lies on, as the kernel tells it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple


class Mount(NamedTuple):
    """A mounted file system: its type, and the options of this mount of it.

    ``source`` is a device, a server or whatever the file system puts there; ``super_options``
    those of the file system itself, which all its mounts share; ``device`` is
    ``MAJOR:MINOR``, 0 before the colon where no block device is behind it.
    """

    point: Path
    file_system: str
    options: str
    source: str = ""
    super_options: str = ""
    device: str = ""


def mounts() -> list[Mount]:
    """Every mounted file system."""
    try:
        lines = Path("/proc/self/mountinfo").read_text(errors="surrogateescape").split("\n")
    except OSError:
        return []
    return [mount for line in lines if (mount := parse_mount(line)) is not None]


def parse_mount(line: str) -> Mount | None:
    """A line of ``/proc/PID/mountinfo`` (see proc_pid_mountinfo(5))."""
    before, dash, after = line.partition(" - ")
    # One space each; other white space may stand in names.
    left, right = before.split(" "), after.split(" ")
    if not dash or len(left) < 6 or not right[0]:
        return None
    source, options = (*right[1:3], "", "")[:2]
    point = Path(_unescaped(left[4]))
    return Mount(point, right[0], left[5], _unescaped(source), options, left[2])


def mount_of(path: Path, table: Iterable[Mount]) -> Mount | None:
    """The mount that ``path``, absolute, lies on: the deepest, and of equals the last."""
    found = None
    for mount in table:
        deeper = found is None or len(mount.point.parts) >= len(found.point.parts)
        if path.is_relative_to(mount.point) and deeper:
            found = mount
    return found


def file_system(path: Path) -> str:
    """The type of the file system that holds ``path`` (``ext4``, ``overlay``); empty if unknown."""
    mount = mount_of(path.resolve(), mounts())
    return mount.file_system if mount else ""


def _unescaped(text: str) -> str:
    """Space, tab, line feed, backslash and #, which the kernel writes as octal digits."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)
