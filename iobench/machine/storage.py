"""The storage behind a path: from its mount down to disks."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeAlias

from dataprep.kernel_files import ROOT, number
from iobench.machine import block_devices
from iobench.machine.block_devices import Disk
from iobench.machine.mounts import Mount, mount_of, mounts
from iobench.machine.storage_kinds import (
    UNKNOWN,
    kept_options,
    kind_name,
    kind_of_disk,
    kind_of_mount,
)
from iobench.numbers import size

_HIDDEN_DEVICE = "its block device is not shown by /sys here"
_NO_DEVICE = "no block device is behind it, and its type is not one of the known"
# Kinds whose drivers know whether the disk rotates.
_DRIVES = frozenset({"sata", "sas", "usb"})


Storage: TypeAlias = tuple[str, str, Sequence[str], Disk | None]
"""A kind (a key of ``KINDS``), its evidence, the layers below the file system, and the disk."""


def describe_target(
    path: Path, table: Sequence[Mount] | None = None, root: Path = ROOT
) -> dict[str, Any]:
    """The file system that holds ``path``, which need not exist, and the devices below it.

    Keys: ``kind`` (of ``KINDS``), ``name``, ``why``, ``stack`` (from the file system down),
    ``file_system``, ``mount_options`` (those that affect figures), ``total_bytes`` and
    ``free_bytes`` where available, ``read_ahead_kb``, ``device``. It contains no source, address,
    path, serial number or name of a volume.
    """
    # Unlike Path.resolve, realpath accepts links in a circle.
    real = Path(os.path.realpath(path))
    mount = mount_of(real, mounts() if table is None else table) or Mount(Path("/"), UNKNOWN)
    device = mount.device or _device_number(mount.point)
    devices = block_devices.devices_of(device, mount.source, root)
    kind, why, stack, disk = _storage(mount, devices)
    described: dict[str, Any] = {
        "kind": kind,
        "name": kind_name(kind),
        "why": why,
        "stack": [mount.file_system, *stack],
        "file_system": mount.file_system,
        "mount_options": kept_options(mount.options.split(",")),
    }
    with contextlib.suppress(OSError):
        total_bytes, _, free_bytes = shutil.disk_usage(path)
        described |= {"total_bytes": total_bytes, "free_bytes": free_bytes}
    ahead_kb = number(root / "sys/class/bdi" / device / "read_ahead_kb")
    if disk is not None:
        described["device"] = {
            key: value
            for key, value in asdict(disk).items()
            if key != "name" and value not in (None, "", {})
        }
        # The mount of a partition has no setting of its own.
        ahead_kb = disk.queue.get("read_ahead_kb") if ahead_kb is None else ahead_kb
    return described if ahead_kb is None else {**described, "read_ahead_kb": ahead_kb}


def target_lines(path: str, target: Mapping[str, Any], *, exists: bool = True) -> list[str]:
    """Lines for a terminal on what ``describe_target`` returned for ``path``."""
    lines = [] if exists else ["no such file or directory; this is the storage that it would be on"]
    way = " → ".join(target["stack"] or [target["file_system"]])
    if total := target.get("total_bytes"):
        way += f", {size(total)}, {size(target.get('free_bytes', 0))} free"
    lines.append(way)
    device = target.get("device", {})
    scheduler, link = device.get("queue", {}).get("scheduler"), device.get("link_mb_per_s")
    settings = {
        f"reads {target.get('read_ahead_kb')} KiB ahead": target.get("read_ahead_kb") is not None,
        f"scheduler {scheduler}": scheduler,
        f"a link of {link or 0:,.0f} MB/s": link,
        "rotational": device.get("rotational"),
    }
    if shown := [words for words, is_known in settings.items() if is_known]:
        lines.append("; ".join(shown))
    if target["mount_options"]:
        lines.append(f"mounted {target['mount_options'].replace(',', ', ')}")
    lines.append(("" if target["kind"] == UNKNOWN else "because ") + target["why"])
    return [f"{path}: {target['name']}", *(f"    {line}" for line in lines)]


def _device_number(point: Path) -> str:
    """``MAJOR:MINOR`` of a mounted file system."""
    try:
        found = point.stat().st_dev
    except OSError:
        return "0:0"
    return f"{os.major(found)}:{os.minor(found)}"


def _storage(mount: Mount, devices: Sequence[Path] | None) -> Storage:
    """The storage behind a mount with these block devices; None for hidden ones."""
    fuse = mount.file_system.startswith("fuse")
    told = None if devices and fuse else kind_of_mount(mount.file_system, mount.source)
    if told is not None:
        return (*told, (), None)
    if not devices:
        return UNKNOWN, _HIDDEN_DEVICE if devices is None else _NO_DEVICE, (), None
    stack = [f"volume of {len(devices)}"] if len(devices) > 1 else []
    level = list(devices)
    while level:
        layers = [block_devices.layer_of(folder) for folder in level]
        named = [name for name, _ in layers if name]
        if not named:
            return _on_disks([block_devices.disk(folder) for folder in level], stack)
        # If devices side by side differ, the layer of the first is named.
        stack.append(named[0])
        level = list(dict.fromkeys(one for _, below in layers for one in below))
    return UNKNOWN, f"what is below the {stack[-1]} cannot be seen", stack, None


def _on_disks(disks: Sequence[Disk], stack: Sequence[str]) -> Storage:
    told = [kind_of_disk(disk) for disk in disks]
    names = sorted({kind_name(kind) for kind, _ in told})
    if len(names) > 1:
        why = f"{len(disks)} disks of several kinds: {', '.join(names)}"
        return "mixed", why, stack, None
    kind, why = told[0]
    disk, shown = disks[0], names[0]
    if disk.model and disk.model != shown:
        shown += f" ({disk.model})"
    # Linux calls a disk rotational until its driver says otherwise, as virtual disks' do not.
    if disk.rotational and kind not in _DRIVES:
        disk = replace(disk, rotational=None)
    if len(disks) > 1:
        why, shown = f"{len(disks)} disks, each {why}", f"{len(disks)} × {shown}"
        disk = replace(disk, link_mb_per_s=None)  # of one of them, not of all
    return kind, why, (*stack, shown), disk
