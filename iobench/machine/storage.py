"""The storage behind a path: from its mount down to disks."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from iobench.machine import block_devices
from iobench.machine.block_devices import LOOP, Disk
from iobench.machine.kernel_files import ROOT, names, text
from iobench.machine.mounts import Mount, mount_of, mounts
from iobench.machine.storage_kinds import (
    NFS_PROXY,
    UNKNOWN,
    kept_options,
    kind_name,
    kind_of_disk,
    kind_of_mount,
)

_DEEPEST = 16
_HIDDEN_DEVICE = "its block device is not shown by /sys here"
_NO_DEVICE = "no block device is behind it, and its type is not one of the known"
# Other disks' word on whether they rotate is Linux's default.
_DRIVES = frozenset({"sata", "sas", "usb"})


@dataclass(frozen=True, slots=True)
class Storage:
    """A kind (a key of ``KINDS``), its evidence, and the layers from the file system down."""

    kind: str
    why: str
    stack: tuple[str, ...] = ()
    disk: Disk | None = None


def describe_target(
    path: Path, table: Sequence[Mount] | None = None, root: Path = ROOT
) -> dict[str, Any]:
    """The file system that holds ``path``, which need not exist, and the devices below it.

    Keys: ``kind`` (of ``KINDS``), ``name``, ``why``, ``stack`` (from the file system down),
    ``file_system``, ``mount_options`` (those that affect figures), ``total_bytes`` and
    ``free_bytes`` where available, ``read_ahead_kb``, ``device``. It contains no source, address,
    path, serial number or name of a volume.
    """
    table = mounts() if table is None else table
    # realpath leaves links in a circle as they are.
    unknown = Mount(Path("/"), UNKNOWN, "", device="0:0")
    mount = mount_of(Path(os.path.realpath(path)), table) or unknown
    storage = _storage(mount, table, root)
    described: dict[str, Any] = {
        "kind": storage.kind,
        "name": kind_name(storage.kind),
        "why": storage.why,
        "stack": list(storage.stack),
        "file_system": mount.file_system,
        "mount_options": kept_options(_options(mount)),
        **_room(path),
    }
    if storage.disk is not None:
        described["device"] = device_fields(storage.disk, storage.kind)
    read_ahead_kb = block_devices.read_ahead_kb(mount, root)
    return described if read_ahead_kb is None else {**described, "read_ahead_kb": read_ahead_kb}


def device_fields(disk: Disk, kind: str) -> dict[str, Any]:
    """The fields of a disk in a result; those without a value are left out."""
    # Linux calls a disk rotational until its driver says otherwise, as virtual disks' do not.
    default = disk.rotational and kind not in _DRIVES
    found = {
        "model": disk.model,
        "vendor": disk.vendor,
        "transport": disk.transport,
        "rotational": None if default else disk.rotational,
        "total_bytes": disk.total_bytes,
        "link_mb_per_s": disk.link_mb_per_s,
        "queue": dict(disk.queue),
    }
    return {name: value for name, value in found.items() if value not in (None, "", {})}


def target_lines(path: str, target: Mapping[str, Any], *, exists: bool = True) -> list[str]:
    """Lines for a terminal on what ``describe_target`` returned for ``path``."""
    lines = [] if exists else ["no such file or directory; this is the storage that it would be on"]
    way = " → ".join(target["stack"] or [target["file_system"]])
    if total := target.get("total_bytes"):
        way += f", {total / 1e9:,.1f} GB, {target.get('free_bytes', 0) / 1e9:,.1f} GB free"
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


def _storage(mount: Mount, table: Sequence[Mount], root: Path, depth: int = 0) -> Storage:
    """The storage behind a mount."""
    kind = mount.file_system or UNKNOWN
    devices = block_devices.devices_of(mount, root)
    told = None if devices and kind.startswith("fuse") else kind_of_mount(kind, mount.source)
    if told == ("nfs", NFS_PROXY) and _mounted_by_efs_helper(mount, root):
        told = "efs", "NFS by the proxy of EFS's mount helper on this machine"
    if told is not None:
        found = Storage(*told)
    elif devices:
        found = _on_devices(devices, table, root, depth)
    else:
        found = Storage(UNKNOWN, _HIDDEN_DEVICE if devices is None else _NO_DEVICE)
    return replace(found, stack=(kind, *found.stack))


def _on_devices(devices: Sequence[Path], table: Sequence[Mount], root: Path, depth: int) -> Storage:
    """Follow devices down to disks; of devices side by side, name the layers of the first."""
    stack = [f"volume of {len(devices)}"] if len(devices) > 1 else []
    level = list(devices)
    for _ in range(_DEEPEST):
        layers = [block_devices.layer_of(folder) for folder in level]
        named = [name for name, _ in layers if name]
        if not named:
            return _on_disks([block_devices.disk(folder) for folder in level], stack)
        stack.append(named[0])
        if named[0] == LOOP:
            return _in_file(text(level[0] / "loop" / "backing_file"), stack, table, root, depth)
        below_all = [
            one
            for folder, (name, below) in zip(level, layers, strict=True)
            for one in (below if name else [folder])
        ]
        level = list(dict.fromkeys(below_all))
        if not level:
            break
    return Storage(UNKNOWN, f"what lies below the {stack[-1]} cannot be seen", tuple(stack))


def _on_disks(disks: Sequence[Disk], stack: Sequence[str]) -> Storage:
    told = [kind_of_disk(disk) for disk in disks]
    names = sorted({kind_name(kind) for kind, _ in told})
    if len(names) > 1:
        why = f"{len(disks)} disks of several kinds: {', '.join(names)}"
        return Storage("mixed", why, tuple(stack))
    kind, why = told[0]
    disk, shown = disks[0], names[0]
    if disk.model and disk.model != shown:
        shown += f" ({disk.model})"
    if len(disks) > 1:
        why, shown = f"{len(disks)} disks, each {why}", f"{len(disks)} × {shown}"
        disk = replace(disk, link_mb_per_s=None)  # of one of them, not of all
    return Storage(kind, why, (*stack, shown), disk)


def _in_file(
    file: str, stack: Sequence[str], table: Sequence[Mount], root: Path, depth: int
) -> Storage:
    """The storage of a loop device's file, which another mount namespace may have named."""
    is_there = file.startswith("/") and os.path.exists(file)  # noqa: PTH110  never raises
    mount = mount_of(Path(file).resolve(), table) if is_there and depth < _DEEPEST else None
    if mount is None:
        return Storage(UNKNOWN, f"what lies below the {LOOP} cannot be seen", tuple(stack))
    below = _storage(mount, table, root, depth + 1)
    why = f"a file on {below.stack[0]} as a device: {below.why}"
    return replace(below, why=why, stack=(*stack, *below.stack))


def _options(mount: Mount) -> list[str]:
    return [*mount.options.split(","), *mount.super_options.split(",")]


def _mounted_by_efs_helper(mount: Mount, root: Path) -> bool:
    """EFS's mount helper keeps a file ``fs-ID.MOUNT.POINT.PORT`` for each of its proxies.

    They are in ``/var/run/efs``, which root alone may list (aws/efs-utils).
    """
    ports = [option[5:] for option in _options(mount) if option.startswith("port=")]
    files = (re.fullmatch(r"fs-[0-9a-f]+\..*\.(\d+)", name) for name in names(root / "var/run/efs"))
    return any(match[1] in ports for match in files if match)


def _room(path: Path) -> dict[str, int]:
    try:
        found = os.statvfs(path)
    except OSError:
        return {}
    return {
        "total_bytes": found.f_blocks * found.f_frsize,
        "free_bytes": found.f_bavail * found.f_frsize,  # for us, not for root alone
    }
