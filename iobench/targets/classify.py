"""PURE. What a mount is taken for. What cannot be told is unknown, and says why."""

from __future__ import annotations

from dataclasses import replace

from iobench.targets.description import Device, Mounted, Told
from iobench.targets.devices import of_device
from iobench.targets.file_systems import of_mount
from iobench.targets.kinds import UNKNOWN


def classify(mounted: Mounted) -> Told:
    """Its kind, with the evidence and all layers from the file system to the device."""
    name = mounted.file_system or UNKNOWN
    told = of_mount(mounted) or _overlay(mounted) or _on_devices(mounted)
    return replace(told, stack=(name, *told.stack))


def _overlay(mounted: Mounted) -> Told | None:
    if mounted.file_system not in ("overlay", "aufs"):
        return None
    if mounted.lower is None:
        return Told("overlay", "a container's layers; the disk below them cannot be seen from here")
    below = classify(mounted.lower)
    why = f"layers, of which the upper one is written to {below.stack[0]}: {below.why}"
    return Told("overlay", why, below.stack, below.device)


def _on_devices(mounted: Mounted) -> Told:
    if mounted.hidden:
        return Told(UNKNOWN, "it lies on a block device that /sys does not show from here")
    if not mounted.devices:
        return Told(UNKNOWN, "no block device is behind it, and its type is not one of the known")
    if len(mounted.devices) == 1:
        return _through(mounted.devices[0])
    return of_device(Device("", "pool", below=mounted.devices))


def _through(device: Device) -> Told:
    """A device, or the mount on which the file of a loop device lies."""
    loop = _loop(device)
    if loop is None or loop.backing is None:
        return of_device(device)
    below, top = classify(loop.backing), of_device(device)
    why = f"a file on {below.stack[0]} as a device: {below.why}"
    return Told(below.kind, why, (*top.stack, *below.stack), below.device)


def _loop(device: Device) -> Device | None:
    """The loop device at the bottom of a stack of single devices."""
    while device.layer != "loop" and len(device.below) == 1:
        device = device.below[0]
    return device if device.layer == "loop" else None
