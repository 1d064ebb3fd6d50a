"""PURE. What is known of a mount and of the devices below it: all that a kind is told from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Queue:
    """How the kernel talks to a device; None where it does not say."""

    scheduler: str | None = None
    read_ahead_kb: int | None = None
    requests: int | None = None
    largest_request_kb: int | None = None
    write_cache: str | None = None


@dataclass(frozen=True, slots=True)
class Device:
    """A block device and what lies below it.

    ``layer`` is what it is made of: ``disk``, ``partition``, ``md``, ``lvm``, ``crypt``,
    ``multipath``, ``dm`` (another device mapper target), ``loop``, ``bcache`` or ``pool``
    (devices that a file system takes together). ``detail`` is a RAID's level. ``transport`` is
    the way to a disk (``pcie``, ``sata``, ``virtio``), "" where sysfs does not show one.
    ``backing`` is the mount on which a loop device's file lies. ``link_mb_per_s`` is what the way
    to a disk can carry. Serial numbers, names of volumes and paths have no place here.
    """

    name: str
    layer: str = "disk"
    model: str = ""
    vendor: str = ""
    transport: str = ""
    rotational: bool | None = None
    bytes: int | None = None
    queue: Queue = Queue()
    detail: str = ""
    below: tuple[Device, ...] = ()
    backing: Mounted | None = None
    link_mb_per_s: float | None = None


@dataclass(frozen=True, slots=True)
class Mounted:
    """A mount as a kind is told from it; ``source`` and ``options`` go no further than that.

    ``devices``: block devices that it lies on, several for btrfs. ``lower``: the mount on which
    an overlay's upper directory lies, where that can be seen. ``read_ahead_kb`` is the kernel's
    for this file system, network file systems included. ``by_efs_helper``: the proxy that it is
    mounted by is that of EFS's mount helper. ``hidden``: it has a block device that sysfs does not
    show.
    """

    file_system: str
    source: str = ""
    options: tuple[str, ...] = ()
    devices: tuple[Device, ...] = ()
    lower: Mounted | None = None
    read_ahead_kb: int | None = None
    by_efs_helper: bool = False
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class Told:
    """What storage was taken for: a key of ``KINDS``, what that rests on, and what it passes
    through from the file system down to the device."""

    kind: str
    why: str
    stack: tuple[str, ...] = ()
    device: Device | None = None
