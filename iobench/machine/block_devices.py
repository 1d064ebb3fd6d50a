"""Block devices as the kernel describes them below ``/sys`` (see sysfs(5)).

The names of volumes, serial numbers and UUIDs are not read.

Link rates do not include the bits of the line coding. PCI Express uses 8b/10b up to 5 GT/s, and
128b/130b from 8 GT/s on. SATA uses 8b/10b. The headers of PCI Express take another 2 to 20 %, so
the limit of a disk is lower.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict

from dataprep.machine.kernel_files import ROOT, names, number, one_line, text

_SECTOR_BYTES = 512
"""The unit of the file ``size``, also for disks with other sectors."""

_VENDORS_WITH_CHOSEN_NAMES = {"LIO-ORG"}
"""Vendors whose models are not described. The model of a LIO target is a name that its owner chose,
and that may be private."""
# Patterns of a device's path in sysfs, each with the transport. The first one that is found counts.
_TRANSPORTS = (
    (r"/session\d+/", "iscsi"),
    (r"/rport-[^/]+/", "fc"),
    (r"/usb\d+/", "usb"),
    (r"/ata\d+/", "ata"),
    (r"/virtio\d+/host\d+/", "virtio-scsi"),
    (r"/virtio\d+/", "virtio"),
    (r"/(?:vbd-\d+|xen)[^/]*/", "xen"),
    (r"/end_device-[^/]+/", "sas"),
    (r"/(?:VMBUS|vmbus)[^/]*/", "hyper-v"),
)
_FLAGS = {"0": False, "1": True}
"""The contents of files in sysfs that are yes or no."""

# The layer of a mapped device, by the prefix of its UUID.
_MAPPED_LAYERS = {"LVM": "LVM", "CRYPT": "dm-crypt", "mpath": "multipath"}


class QueueSettings(TypedDict, total=False):
    """The known settings of a request queue, under the keys of results.

    Attributes:
        scheduler: the I/O scheduler.
        read_ahead_kb: how far the kernel reads ahead, in KiB.
        requests: the largest number of requests in the queue.
        largest_request_kb: the size of the largest request, in KiB.
        write_cache: how the kernel treats the write cache of the disk.
    """

    scheduler: str
    read_ahead_kb: int
    requests: int
    largest_request_kb: int
    write_cache: str


@dataclass(frozen=True, slots=True)
class Disk:
    """A disk; values that the kernel does not report are empty or None.

    Attributes:
        name: the name of the device.
        model: the model.
        vendor: the vendor.
        transport: how the disk is connected, such as ``pcie``, ``sata`` or ``virtio``.
        rotational: whether it has a rotating medium.
        total_bytes: the size of the disk.
        link_mb_per_s: the rate of its SATA or PCI Express link, in MB/s.
        queue: the settings of its request queue.
    """

    name: str
    model: str = ""
    vendor: str = ""
    transport: str = ""
    rotational: bool | None = None
    total_bytes: int | None = None
    link_mb_per_s: float | None = None
    queue: QueueSettings = field(default_factory=QueueSettings)


def devices_of(device: str, source: str, root: Path = ROOT) -> list[Path] | None:
    """Return the folders in sysfs of the block devices below a mount.

    A btrfs has a major number of 0, as a mount without a block device. Its devices are found by the
    source of the mount, which is one of them.

    Args:
        device: the ``MAJOR:MINOR`` of the mount.
        source: the source of the mount.
        root: the folder that contains ``sys``.

    Returns:
        The folders; empty if the mount has no device, None if sysfs does not show its devices.
    """
    if not device.startswith("0:"):
        folders = [root / "sys/dev/block" / device]
    elif source.startswith("/dev/"):
        name = Path(source).resolve().name
        members = [name]
        for devices_folder in (root / "sys/fs/btrfs").glob("*/devices"):
            if name in names(devices_folder):
                members = list(names(devices_folder))
        folders = [root / "sys/class/block" / member for member in members]
    else:
        return []
    return [folder.resolve() for folder in folders if folder.exists()] or None


def layer_of(folder: Path) -> tuple[str, list[Path]]:
    """Return the name of a device's layer, and the folders of the devices below it.

    A disk has no layer: the name is empty, and the only folder is its own. The folders are empty if
    the devices below the layer are not shown, as for a loop device.
    """
    if (folder / "partition").exists():
        return "partition", [folder.parent]
    below = [(folder / "slaves" / name).resolve() for name in names(folder / "slaves")]
    if (folder / "md").is_dir():
        level = one_line(folder / "md" / "level")
        level_text = f" ({level})" if level else ""
        return f"md RAID{level_text} of {len(below)}", below
    if (folder / "dm").is_dir():
        prefix = re.split("[-:]", text(folder / "dm" / "uuid"))[0]
        return _MAPPED_LAYERS.get(prefix, "device mapper"), below
    if folder.name.startswith("loop"):
        return "loop device", []
    if folder.name.startswith("bcache"):
        return "bcache", below
    return "", [folder]


def disk(folder: Path) -> Disk:
    """Return the disk with this folder in sysfs."""
    vendor = one_line(folder / "device" / "vendor")
    model = one_line(folder / "device" / "model") or one_line(folder / "device" / "name")
    transport, link_mb_per_s = _connection(folder, vendor)
    sectors = number(folder / "size")
    return Disk(
        name=folder.name,
        model="" if vendor in _VENDORS_WITH_CHOSEN_NAMES else model,
        vendor="" if vendor.startswith("0x") else vendor,
        transport=transport,
        rotational=_FLAGS.get(text(folder / "queue" / "rotational")),
        total_bytes=sectors * _SECTOR_BYTES if sectors else None,
        link_mb_per_s=link_mb_per_s,
        queue=_queue(folder / "queue"),
    )


def _connection(folder: Path, vendor: str) -> tuple[str, float | None]:
    """Return how a disk is connected, and the rate of its link in MB/s.

    Args:
        folder: the folder of the disk in sysfs.
        vendor: the vendor of the disk.

    Returns:
        The transport, empty if unknown; and the rate, None if unknown.
    """
    if folder.name.startswith("nvme"):
        device = folder / "device"
        # With multipath the namespace belongs to a subsystem, which has controllers.
        files = [device / "transport", *sorted(device.glob("nvme*/transport"))]
        transports = [text(file) for file in files if text(file)]
        transport = transports[0] if transports else "nvme"
        if transport == "fc":
            transport = "nvme-fc"
        return transport, _pci_express_mb_per_s(device / "device")
    transport = ""
    for pattern, name in _TRANSPORTS:
        if re.search(pattern, f"{folder}/"):
            transport = name
            break
    if transport == "sas" and vendor == "ATA":
        return "sata", None
    link_mb_per_s = _sata_mb_per_s(folder) if transport == "ata" else None
    if link_mb_per_s:
        return "sata", link_mb_per_s
    return transport, None


def _sata_mb_per_s(folder: Path) -> float | None:
    """Return the rate of a SATA link in MB/s; None if the kernel reports none.

    It reports none for parallel ATA and for QEMU's controller.
    """
    port = next(parent for parent in folder.parents if re.fullmatch(r"ata\d+", parent.name))
    rates = []
    for file in port.glob("link*/ata_link/link*/sata_spd"):
        gigabits = re.match(r"([\d.]+) Gbps", text(file))
        if gigabits:
            # 8b/10b coding sends 10 bits for each byte.
            rates.append(float(gigabits[1]) * 100)
    return max(rates, default=None)


def _pci_express_mb_per_s(device: Path) -> float | None:
    """Return the rate of a PCI Express link in MB/s; None if unknown."""
    transfers = re.match(r"([\d.]+) GT/s", text(device / "current_link_speed"))
    lanes = number(device / "current_link_width")
    if not transfers or not lanes or lanes > 16:
        return None
    transfers_per_ns = float(transfers[1])
    coding = 8 / 10 if transfers_per_ns < 8 else 128 / 130
    return round(transfers_per_ns * 1000 / 8 * coding * lanes, 1)


def _queue(folder: Path) -> QueueSettings:
    """Return the settings of a request queue that are known."""
    settings: QueueSettings = {}
    # The file has all schedulers, and the current one is in brackets.
    current_scheduler = re.search(r"\[([a-z0-9-]+)\]", text(folder / "scheduler"))
    scheduler = current_scheduler[1] if current_scheduler else one_line(folder / "scheduler")
    if scheduler:
        settings["scheduler"] = scheduler
    read_ahead_kb = number(folder / "read_ahead_kb")
    if read_ahead_kb is not None:
        settings["read_ahead_kb"] = read_ahead_kb
    requests = number(folder / "nr_requests")
    if requests is not None:
        settings["requests"] = requests
    largest_request_kb = number(folder / "max_sectors_kb")
    if largest_request_kb is not None:
        settings["largest_request_kb"] = largest_request_kb
    write_cache = one_line(folder / "write_cache")
    if write_cache:
        settings["write_cache"] = write_cache
    return settings
