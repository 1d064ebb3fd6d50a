"""Block devices as the kernel describes them below ``/sys`` (see sysfs(5)).

Names of volumes, serial numbers and UUIDs are there too, and are not read.

Link rates: PCI Express after line coding (8b/10b up to 5 GT/s, 128b/130b from 8 GT/s on), SATA
after 8b/10b. Headers take 2 to 20 % more of PCI Express, so a disk's own limit is lower.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dataprep.kernel_files import ROOT, names, number, text, word

_SECTOR_BYTES = 512  # of the file "size", whatever the disk's own sectors are
# LIO's target reports a name that its owner chose as the model.
_MODELS_OF_PEOPLE = {"LIO-ORG"}
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
_MAPPED = {"LVM": "LVM", "CRYPT": "dm-crypt", "mpath": "multipath"}


@dataclass(frozen=True, slots=True)
class Disk:
    """A disk; values that the kernel does not report are empty or None.

    ``transport`` is how the disk is connected (``pcie``, ``sata``, ``virtio``). ``queue`` holds
    the settings of its request queue, ``link_mb_per_s`` what its link can carry.
    """

    name: str
    model: str = ""
    vendor: str = ""
    transport: str = ""
    rotational: bool | None = None
    total_bytes: int | None = None
    link_mb_per_s: float | None = None
    queue: Mapping[str, Any] = field(default_factory=dict)


def devices_of(device: str, source: str, root: Path = ROOT) -> list[Path] | None:
    """Folders of the block devices below a mount; None if it has some that sysfs does not show.

    ``device`` is the mount's ``MAJOR:MINOR``; its major number is 0 if it is of no device. A btrfs
    has such a number; its devices are found by its source, which is one of them.
    """
    if not device.startswith("0:"):
        found = [root / "sys/dev/block" / device]
    elif source.startswith("/dev/"):
        name = Path(source).resolve().name
        pools = [names(folder) for folder in (root / "sys/fs/btrfs").glob("*/devices")]
        members = next((pool for pool in pools if name in pool), [name])
        found = [root / "sys/class/block" / member for member in members]
    else:
        return []
    return [folder.resolve() for folder in found if folder.exists()] or None


def layer_of(folder: Path) -> tuple[str, list[Path]]:
    """The name of a device's layer, and the devices below it; ``""`` and itself for a disk."""
    if (folder / "partition").exists():
        return "partition", [folder.parent]
    below = [(folder / "slaves" / name).resolve() for name in names(folder / "slaves")]
    if (folder / "md").is_dir():
        level = word(folder / "md" / "level")
        return f"md RAID{level and f' ({level})'} of {len(below)}", below
    if (folder / "dm").is_dir():
        prefix = re.split("[-:]", text(folder / "dm" / "uuid"))[0]
        return _MAPPED.get(prefix, "device mapper"), below
    if folder.name.startswith("loop"):
        return "loop device", []
    return ("bcache", below) if folder.name.startswith("bcache") else ("", [folder])


def disk(folder: Path) -> Disk:
    """The disk with that folder in sysfs."""
    vendor = word(folder / "device" / "vendor")
    model = word(folder / "device" / "model") or word(folder / "device" / "name")
    transport, link = _connection(folder, vendor)
    return Disk(
        name=folder.name,
        model="" if vendor in _MODELS_OF_PEOPLE else model,
        vendor="" if vendor.startswith("0x") else vendor,
        transport=transport,
        rotational=_FLAGS.get(text(folder / "queue" / "rotational")),
        total_bytes=(number(folder / "size") or 0) * _SECTOR_BYTES or None,
        link_mb_per_s=link,
        queue=_queue(folder / "queue"),
    )


def _connection(folder: Path, vendor: str) -> tuple[str, float | None]:
    """How a disk is connected, and the MB/s that this can carry."""
    if folder.name.startswith("nvme"):
        device = folder / "device"
        # With multipath the namespace belongs to a subsystem, which has controllers.
        told = [device / "transport", *sorted(device.glob("nvme*/transport"))]
        name = next((value for path in told if (value := text(path))), "nvme")
        return "nvme-fc" if name == "fc" else name, _pci_express_mb_per_s(device / "device")
    path = f"{folder}/"
    found = next((name for pattern, name in _TRANSPORTS if re.search(pattern, path)), "")
    if found == "sas" and vendor == "ATA":
        return "sata", None
    link = _sata_mb_per_s(folder) if found == "ata" else None
    return ("sata", link) if link else (found, None)


def _sata_mb_per_s(folder: Path) -> float | None:
    """The rate of a SATA link; parallel ATA and QEMU's controller report none."""
    port = next(one for one in folder.parents if re.fullmatch(r"ata\d+", one.name))
    speeds = [text(path) for path in port.glob("link*/ata_link/link*/sata_spd")]
    found = [re.match(r"([\d.]+) Gbps", speed) for speed in speeds]
    return max((float(match[1]) * 100 for match in found if match), default=None)


def _pci_express_mb_per_s(device: Path) -> float | None:
    transfers = re.match(r"([\d.]+) GT/s", text(device / "current_link_speed"))
    lanes = number(device / "current_link_width")
    if not transfers or not lanes or lanes > 16:
        return None
    rate = float(transfers[1])
    coding = 8 / 10 if rate < 8 else 128 / 130
    return round(rate * 1000 / 8 * coding * lanes, 1)


def _queue(folder: Path) -> dict[str, Any]:
    scheduler = re.search(r"\[([a-z0-9-]+)\]", text(folder / "scheduler"))
    found = {
        "scheduler": scheduler[1] if scheduler else word(folder / "scheduler"),
        "read_ahead_kb": number(folder / "read_ahead_kb"),
        "requests": number(folder / "nr_requests"),
        "largest_request_kb": number(folder / "max_sectors_kb"),
        "write_cache": word(folder / "write_cache"),
    }
    return {name: value for name, value in found.items() if value not in (None, "")}
