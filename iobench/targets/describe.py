"""A path as what it lies on: read from the mount table and sysfs, told by ``classify``."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from iobench.mounts import Mount, mount_of, mounts
from iobench.targets import sysfs
from iobench.targets.classify import classify
from iobench.targets.description import Device, Mounted, Told
from iobench.targets.devices import PHYSICAL
from iobench.targets.efs_helper import mounted_by_helper
from iobench.targets.kinds import kind_name
from iobench.targets.options import kept

_DEEPEST = 4


def describe_target(
    path: Path, table: Sequence[Mount] | None = None, root: Path = sysfs.SYSFS
) -> dict[str, Any]:
    """The file system that holds ``path``, which need not exist, and what is below it.

    Keys: ``kind`` (of ``iobench.targets.KINDS``), ``name``, ``why``, ``stack`` (from the file
    system down), ``file_system``, ``mount_options`` (those that bear on figures),
    ``total_bytes`` and ``free_bytes`` where they can be had, ``read_ahead_kb``, ``device``. No
    source, address, path, serial number or name of a volume is in it.
    """
    found = mounts() if table is None else table
    mount = mount_of(_resolved(path), found)
    if mount is None:
        told = Told("unknown", "no mount in the kernel's table holds it")
        return {**_as_told(told), "file_system": "unknown", "mount_options": "", **_room(path)}
    mounted = look(mount, found, root)
    described = {
        **_as_told(classify(mounted)),
        "file_system": mount.file_system,
        "mount_options": kept(mounted.options),
        **_room(path),
    }
    if mounted.read_ahead_kb is not None:
        described["read_ahead_kb"] = mounted.read_ahead_kb
    return described


def _resolved(path: Path) -> Path:
    """Without links; links in a circle stay."""
    try:
        return path.resolve()
    except (OSError, RuntimeError):
        return path.absolute()


def look(mount: Mount, table: Sequence[Mount], root: Path = sysfs.SYSFS, depth: int = 0) -> Mounted:
    """What the kernel says of a mount and of all that lies below it."""
    options = (*mount.options.split(","), *mount.super_options.split(","))
    numbers = _numbers(mount, root)
    devices = [
        one if depth >= _DEEPEST else _with_backing(one, number, table, root, depth)
        for number in numbers
        if (one := sysfs.device(number, root)) is not None
    ]
    lower = _upper_directory(options, table, root, depth) if depth < _DEEPEST else None
    read_ahead_kb = sysfs.read_ahead_kb(mount.device, root)
    if read_ahead_kb is None and devices:
        read_ahead_kb = _first_read_ahead_kb(devices[0])
    helped = mount.file_system in ("nfs", "nfs4") and mounted_by_helper(options)
    return Mounted(
        *(mount.file_system, mount.source, options, tuple(devices), lower, read_ahead_kb, helped),
        hidden=bool(numbers) and not devices,
    )


def device_words(device: Device, kind: str) -> dict[str, Any]:
    """What of a device stands in a result; keys of which nothing is known are left out."""
    # Linux calls a disk rotational until its driver says otherwise, which virtual ones' do not.
    default = device.rotational and kind not in PHYSICAL
    queue = {name: value for name, value in asdict(device.queue).items() if value is not None}
    found = {
        "model": device.model,
        "vendor": device.vendor,
        "transport": device.transport,
        "rotational": None if default else device.rotational,
        "total_bytes": device.bytes,
        "link_mb_per_s": device.link_mb_per_s,
        "queue": queue,
    }
    return {name: value for name, value in found.items() if value not in (None, "", {})}


def _as_told(told: Told) -> dict[str, Any]:
    found: dict[str, Any] = {
        "kind": told.kind,
        "name": kind_name(told.kind),
        "why": told.why,
        "stack": list(told.stack),
    }
    if told.device is not None:
        found["device"] = device_words(told.device, told.kind)
    return found


def _room(path: Path) -> dict[str, int]:
    try:
        found = os.statvfs(path)
    except OSError:
        return {}
    # Free for us, not for root alone.
    return {
        "total_bytes": found.f_blocks * found.f_frsize,
        "free_bytes": found.f_bavail * found.f_frsize,
    }


def _first_read_ahead_kb(device: Device) -> int | None:
    """Of the topmost device that has a queue, as partitions have not."""
    while device.queue.read_ahead_kb is None and device.below:
        device = device.below[0]
    return device.queue.read_ahead_kb


def _numbers(mount: Mount, root: Path) -> list[str]:
    """Of the devices that a mount lies on; btrfs and others have one of no device themselves."""
    if not mount.device.startswith("0:"):
        return [mount.device]
    if mount.file_system == "btrfs" and (found := sysfs.pool(mount.source, root)):
        return found
    if not mount.source.startswith("/dev/"):
        return []
    numbers = (_device_number(part) for part in mount.source.split(":"))
    return [number for number in numbers if number]


def _device_number(source: str) -> str:
    try:
        found = Path(source).stat()
    except (OSError, ValueError):
        return ""
    if not stat.S_ISBLK(found.st_mode):
        return ""
    return f"{os.major(found.st_rdev)}:{os.minor(found.st_rdev)}"


def _upper_directory(
    options: Sequence[str], table: Sequence[Mount], root: Path, depth: int
) -> Mounted | None:
    """The mount on which an overlay's upper directory lies, if that path is seen from here."""
    for option in options:
        name, _, value = option.partition("=")
        if name == "upperdir":
            return _mount_below(Path(value), table, root, depth)
    return None


def _with_backing(
    device: Device, number: str, table: Sequence[Mount], root: Path, depth: int
) -> Device:
    file = sysfs.backing_file(number, root)
    return device if file is None else _put(device, _mount_below(file, table, root, depth))


def _put(device: Device, backing: Mounted | None) -> Device:
    if device.layer == "loop":
        return replace(device, backing=backing)
    return replace(device, below=tuple(_put(one, backing) for one in device.below))


def _mount_below(path: Path, table: Sequence[Mount], root: Path, depth: int) -> Mounted | None:
    """Of a path that another mount namespace may have named: only if there is such a one here."""
    try:
        if not path.is_absolute() or not path.exists():
            return None
        mount = mount_of(path.resolve(), table)
    except OSError:
        return None
    return None if mount is None else look(mount, table, root, depth + 1)
