"""The kernel's table of mounted file systems."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

_KERNELS = tuple(map(Path, ("/proc", "/sys", "/dev", "/run", "/boot")))
_SHARED_MEMORY = {Path("/dev/shm")}  # noqa: S108  where loaders share memory
_NO_DATA = {"autofs", "binfmt_misc", "nsfs", "mqueue", "fuse.lxcfs", "squashfs", "devtmpfs"}


class Mount(NamedTuple):
    """A mounted file system.

    ``options`` are those of this mount, ``super_options`` those that all mounts of the file
    system share. ``source`` is a device, a server or another text of the file system. ``device``
    is ``MAJOR:MINOR``, with major 0 where no block device is behind the mount.
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
    # Fields are separated by one space; names may contain other white space.
    left, right = before.split(" "), after.split(" ")
    if not dash or len(left) < 6 or not right[0]:
        return None
    source, options = (*right[1:3], "", "")[:2]
    point = Path(_unescaped(left[4]))
    return Mount(point, right[0], left[5], _unescaped(source), options, left[2])


def mount_of(path: Path, table: Iterable[Mount]) -> Mount | None:
    """The mount that holds an absolute path: the deepest, and of equals the last."""
    above = [mount for mount in table if path.is_relative_to(mount.point)]
    return max(reversed(above), key=lambda mount: len(mount.point.parts), default=None)


def file_system(path: Path) -> str:
    """The type of the file system that holds ``path`` (``ext4``, ``overlay``); empty if unknown."""
    mount = mount_of(path.resolve(), mounts())
    return mount.file_system if mount else ""


def data_mounts(table: Iterable[Mount]) -> list[Path]:
    """Mount points that may hold data: not the kernel's own, and no single files."""
    points = {mount.point for mount in table if mount.file_system not in _NO_DATA}
    ours = {point for point in points if not any(map(point.is_relative_to, _KERNELS))}
    return sorted(point for point in ours | (points & _SHARED_MEMORY) if os.path.isdir(point))  # noqa: PTH112  never raises


def _unescaped(text: str) -> str:
    """The kernel writes space, tab, line feed, backslash and # as octal digits."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)
