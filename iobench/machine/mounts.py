"""Mounted file systems."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import psutil

_KERNELS = tuple(map(Path, ("/proc", "/sys", "/dev", "/run", "/boot")))
_SHARED_MEMORY = {Path("/dev/shm")}  # noqa: S108  where loaders share memory
_NO_DATA = {"autofs", "binfmt_misc", "nsfs", "mqueue", "fuse.lxcfs", "squashfs", "devtmpfs"}


class Mount(NamedTuple):
    """A mounted file system; ``source`` is a device, a server or another text of its type.

    ``device`` is ``MAJOR:MINOR``, with major 0 if no block device is behind the mount.
    """

    point: Path
    file_system: str
    options: str = ""
    source: str = ""
    device: str = ""


def mounts() -> list[Mount]:
    """Every mounted file system, in the order in which they were mounted."""
    found = psutil.disk_partitions(all=True)
    return [Mount(Path(one.mountpoint), one.fstype, one.opts, one.device) for one in found]


def mount_of(path: Path, table: Iterable[Mount]) -> Mount | None:
    """The mount of an absolute path: the deepest, and of equals the last."""
    above = [mount for mount in table if path.is_relative_to(mount.point)]
    return max(reversed(above), key=lambda mount: len(mount.point.parts), default=None)


def file_system(path: Path) -> str:
    """The type of the file system that holds ``path`` (``ext4``, ``overlay``); empty if unknown."""
    mount = mount_of(path.resolve(), mounts())
    return mount.file_system if mount else ""


def data_mounts(table: Iterable[Mount]) -> list[Path]:
    """Mount points that may have data: not the kernel's own, and no single files."""
    points = {mount.point for mount in table if mount.file_system not in _NO_DATA}
    ours = {point for point in points if not any(map(point.is_relative_to, _KERNELS))}
    return sorted(point for point in ours | (points & _SHARED_MEMORY) if os.path.isdir(point))  # noqa: PTH112  never raises
