"""The mounted file systems of this machine: list them, and find the one that holds a path."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import psutil

_SYSTEM_FOLDERS = tuple(map(Path, ("/proc", "/sys", "/dev", "/run", "/boot")))
"""Folders below which the system mounts file systems that have no data of users."""
_SHARED_MEMORY = {Path("/dev/shm")}  # noqa: S108  the folder in which loaders share memory
"""Mount points that are listed although they are below one of the system's folders."""
_TYPES_WITHOUT_DATA = {
    "autofs",
    "binfmt_misc",
    "nsfs",
    "mqueue",
    "fuse.lxcfs",
    "squashfs",
    "devtmpfs",
}


class Mount(NamedTuple):
    """A mounted file system.

    Attributes:
        point: the folder where it is mounted.
        file_system: its type.
        options: the options of the mount, separated by commas.
        source: a device, a server or another text, depending on the type.
        device: ``MAJOR:MINOR``, with major 0 if no block device is behind the mount; empty if it
            has not been read.
    """

    point: Path
    file_system: str
    options: str = ""
    source: str = ""
    device: str = ""


def mounts() -> list[Mount]:
    """Return all mounted file systems in the order of the mount table, without their devices."""
    return [
        Mount(Path(entry.mountpoint), entry.fstype, entry.opts, entry.device)
        for entry in psutil.disk_partitions(all=True)
    ]


def mount_of(path: Path, mount_table: Iterable[Mount]) -> Mount | None:
    """Return the mount that holds an absolute path; None if there is none.

    This is the mount whose mount point is the deepest folder above the path, or the path itself. If
    several have the same mount point, it is the last one, since it hides the others.
    """
    above = [mount for mount in mount_table if path.is_relative_to(mount.point)]
    # max returns the first of equal items, so the order is reversed.
    return max(reversed(above), key=lambda mount: len(mount.point.parts), default=None)


def file_system(path: Path) -> str:
    """Return the type of the file system of a path (``ext4``, ``overlay``); empty if unknown."""
    mount = mount_of(path.resolve(), mounts())
    return mount.file_system if mount else ""


def data_mounts(mount_table: Iterable[Mount]) -> list[Path]:
    """Return the mount points that may have data of users, sorted.

    Folders of the system (except for ``/dev/shm``) and single files that are mounted are left out.
    """
    points = {mount.point for mount in mount_table if mount.file_system not in _TYPES_WITHOUT_DATA}
    data_points = points & _SHARED_MEMORY
    for point in points:
        if not any(point.is_relative_to(folder) for folder in _SYSTEM_FOLDERS):
            data_points.add(point)
    return sorted(point for point in data_points if os.path.isdir(point))  # noqa: PTH112  Path.is_dir may raise
