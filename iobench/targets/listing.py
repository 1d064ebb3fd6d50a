"""Mounted file systems that may hold data."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from iobench.mounts import Mount

_KERNELS = tuple(map(Path, ("/proc", "/sys", "/dev", "/run", "/boot")))
_MEMORY_FOR_DATA = Path("/dev/shm")  # noqa: S108  where loaders share memory
_NO_FILES = {"autofs", "binfmt_misc", "nsfs", "mqueue", "fuse.lxcfs", "squashfs", "devtmpfs"}


def data_mounts(table: Iterable[Mount]) -> list[Path]:
    """Where each is mounted, in the order of paths: not the kernel's own, nor single files."""
    points = {
        mount.point
        for mount in table
        if mount.file_system not in _NO_FILES and _may_hold_data(mount.point)
    }
    return sorted(points)


def _may_hold_data(point: Path) -> bool:
    if point == _MEMORY_FOR_DATA:
        return True
    if any(point.is_relative_to(folder) for folder in _KERNELS):
        return False
    try:
        return point.is_dir()
    except OSError:
        return False
