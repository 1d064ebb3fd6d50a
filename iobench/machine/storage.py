"""The storage behind a path, from its mount down to disks."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple, NotRequired, TypedDict

from dataprep.machine.kernel_files import ROOT, number
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
from iobench.results.numbers import size

_HIDDEN_DEVICE = "/sys does not show its block device here"
_NO_DEVICE = "no block device is behind it, and its type is not known"
_KINDS_KNOWN_TO_ROTATE = frozenset({"sata", "sas", "usb"})
"""Kinds whose drivers report whether the disk rotates."""


class Storage(NamedTuple):
    """The storage behind a mount.

    Attributes:
        kind: its kind, a key of ``KINDS``.
        why: the evidence for this kind, or the reason why the kind is unknown.
        layers: the layers below the file system, from the top down. The last one describes the
            disks, if they are known and of one kind.
        disk: the disk, or the first of several disks of one kind; None if no disk is known, or if
            there are several kinds of disks.
    """

    kind: str
    why: str
    layers: Sequence[str] = ()
    disk: Disk | None = None


class TargetDescription(TypedDict):
    """The storage behind a path, under the keys of results.

    Results are shared, so it contains no source of a mount, address, path, serial number or name of
    a volume. Keys that are not required are left out if their values are unknown.

    Attributes:
        kind: the kind of storage, a key of ``KINDS``.
        name: the name of this kind for readers.
        why: the evidence for this kind, or the reason why the kind is unknown.
        stack: the file system and the layers below it, from the top down.
        file_system: the type of the file system.
        mount_options: the options of the mount that affect figures, separated by commas.
        total_bytes: the size of the file system.
        free_bytes: the space of the file system that this user can still fill.
        device: the known properties of the disk, with the names of the fields of ``Disk``.
        read_ahead_kb: how far the kernel reads ahead, in KiB.
    """

    kind: str
    name: str
    why: str
    stack: list[str]
    file_system: str
    mount_options: str
    total_bytes: NotRequired[int]
    free_bytes: NotRequired[int]
    device: NotRequired[dict[str, object]]
    read_ahead_kb: NotRequired[int]


def describe_target(
    path: Path, mount_table: Sequence[Mount] | None = None, root: Path = ROOT
) -> TargetDescription:
    """Describe the file system of a path, and the devices below it.

    Args:
        path: the path, which need not exist.
        mount_table: the mounted file systems; None for the mounted file systems of this machine.
        root: the folder that contains ``sys``.
    """
    # Unlike Path.resolve, realpath raises no error if symbolic links form a circle.
    real = Path(os.path.realpath(path))
    if mount_table is None:
        mount_table = mounts()
    mount = mount_of(real, mount_table) or Mount(Path("/"), UNKNOWN)
    device = mount.device or _device_number(mount.point)
    devices = block_devices.devices_of(device, mount.source, root)
    storage = _storage(mount, devices)
    disk = storage.disk
    described: TargetDescription = {
        "kind": storage.kind,
        "name": kind_name(storage.kind),
        "why": storage.why,
        "stack": [mount.file_system, *storage.layers],
        "file_system": mount.file_system,
        "mount_options": kept_options(mount.options.split(",")),
    }
    with contextlib.suppress(OSError):
        space = shutil.disk_usage(_nearest_existing(real))
        described["total_bytes"] = space.total
        described["free_bytes"] = space.free
    read_ahead_kb = number(root / "sys/class/bdi" / device / "read_ahead_kb")
    if disk is not None:
        described["device"] = _known_properties(disk)
        # A partition has no read-ahead setting of its own: the setting of its disk applies.
        if read_ahead_kb is None:
            read_ahead_kb = disk.queue.get("read_ahead_kb")
    if read_ahead_kb is not None:
        described["read_ahead_kb"] = read_ahead_kb
    return described


def _nearest_existing(path: Path) -> Path:
    """Return the path, or the nearest folder above it that exists: its files will be made there."""
    for candidate in (path, *path.parents):
        if candidate.exists():
            return candidate
    return path


def target_lines(path: str, target: Mapping[str, Any], *, exists: bool = True) -> list[str]:
    """Return lines for a terminal about the storage behind a path.

    Args:
        path: the path, as the user gave it.
        target: the ``TargetDescription`` of the path. It may come from a saved result.
        exists: whether the path exists.
    """
    lines = []
    if not exists:
        lines.append("no such file or directory; this is the storage on which it would be")
    layers = " → ".join(target["stack"] or [target["file_system"]])
    total_bytes = target.get("total_bytes")
    if total_bytes:
        free_bytes = target.get("free_bytes", 0)
        layers += f", {size(total_bytes)}, {size(free_bytes)} free"
    lines.append(layers)
    settings = _setting_texts(target)
    if settings:
        lines.append("; ".join(settings))
    if target["mount_options"]:
        lines.append(f"mounted {target['mount_options'].replace(',', ', ')}")
    prefix = "" if target["kind"] == UNKNOWN else "because "
    lines.append(f"{prefix}{target['why']}")
    return [f"{path}: {target['name']}", *(f"    {line}" for line in lines)]


def _setting_texts(target: Mapping[str, Any]) -> list[str]:
    """Return what a terminal shows about the settings and the device of a target, in words."""
    device = target.get("device", {})
    scheduler = device.get("queue", {}).get("scheduler")
    link_mb_per_s = device.get("link_mb_per_s")
    parts = []
    if target.get("read_ahead_kb") is not None:
        parts.append(f"reads {target['read_ahead_kb']} KiB ahead")
    if scheduler:
        parts.append(f"scheduler {scheduler}")
    if link_mb_per_s:
        parts.append(f"a link of {link_mb_per_s:,.0f} MB/s")
    if device.get("rotational"):
        parts.append("rotational")
    return parts


def _known_properties(disk: Disk) -> dict[str, object]:
    """Return the properties of a disk that are known, without its name, by their field names."""
    properties = asdict(disk)
    del properties["name"]
    return {key: value for key, value in properties.items() if value not in (None, "", {})}


def _device_number(point: Path) -> str:
    """Return ``MAJOR:MINOR`` of a mounted file system; ``0:0`` if it cannot be read."""
    try:
        device = point.stat().st_dev
    except OSError:
        return "0:0"
    return f"{os.major(device)}:{os.minor(device)}"


def _storage(mount: Mount, devices: Sequence[Path] | None) -> Storage:
    """Return the storage behind a mount.

    The kind follows from the mount itself if its type or source is known. Otherwise the block
    devices are followed downwards, layer by layer, until all of them are disks.

    Args:
        mount: the mount.
        devices: the folders in sysfs of its block devices; empty if it has none, None if sysfs
            does not show them.
    """
    # A FUSE mount with a block device is a local file system. Its kind is that of the device.
    has_fuse_device = bool(devices) and mount.file_system.startswith("fuse")
    if not has_fuse_device:
        recognised = kind_of_mount(mount.file_system, mount.source)
        if recognised is not None:
            return Storage(recognised.kind, recognised.why)
    if devices is None:
        return Storage(UNKNOWN, _HIDDEN_DEVICE)
    if not devices:
        return Storage(UNKNOWN, _NO_DEVICE)
    layers = [f"volume of {len(devices)}"] if len(devices) > 1 else []
    level = list(devices)
    while level:
        named_layers = [block_devices.layer_of(folder) for folder in level]
        layer_names = [name for name, _ in named_layers if name]
        if not layer_names:  # All devices of this level are disks.
            return _on_disks([block_devices.disk(folder) for folder in level], layers)
        # The devices of a level usually have the same layer. If not, the first layer is named.
        layers.append(layer_names[0])
        next_level: dict[Path, None] = {}
        for _, folders_below in named_layers:
            next_level |= dict.fromkeys(folders_below)
        level = list(next_level)
    return Storage(UNKNOWN, f"the devices below the {layers[-1]} cannot be seen", layers)


def _on_disks(disks: Sequence[Disk], layers: Sequence[str]) -> Storage:
    """Return the storage on some disks.

    Args:
        disks: the disks; at least one.
        layers: the layers between the file system and the disks, from the top down.
    """
    kinds = [kind_of_disk(disk) for disk in disks]
    names = sorted({kind_name(kind) for kind, _ in kinds})
    if len(names) > 1:
        why = f"{len(disks)} disks of several kinds: {', '.join(names)}"
        return Storage("mixed", why, layers)
    kind, why = kinds[0]
    # The disks are of one kind, so the properties of the first disk stand for all of them.
    disk, description = disks[0], names[0]
    if disk.model and disk.model != description:
        description += f" ({disk.model})"
    # Linux calls a disk rotational until its driver reports otherwise. The drivers of virtual disks
    # do not report it.
    if disk.rotational and kind not in _KINDS_KNOWN_TO_ROTATE:
        disk = replace(disk, rotational=None)
    if len(disks) > 1:
        why = f"{len(disks)} disks, each {why}"
        description = f"{len(disks)} × {description}"
        disk = replace(disk, link_mb_per_s=None)  # It is the rate of one disk, not of all.
    return Storage(kind, why, (*layers, description), disk)
