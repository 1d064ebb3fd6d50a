"""Block devices as the kernel describes them below ``/sys`` (see sysfs(5)).

Names of volumes, serial numbers and UUIDs lie there too, and are not read.
"""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

from iobench import kernel_files
from iobench.kernel_files import text, word
from iobench.targets.description import Device, Queue
from iobench.targets.links import link_mb_per_s

SYSFS = Path("/sys")
_SECTOR_BYTES = 512  # of "size", whatever the disk's own are
_DEEPEST = 16
# LIO's target calls a disk whatever its owner called it.
_MODELS_OF_PEOPLE = {"LIO-ORG"}
_BY_PATH = (
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
_MAPPED = {"LVM": "lvm", "CRYPT": "crypt", "mpath": "multipath"}


def device(number: str, root: Path = SYSFS) -> Device | None:
    """The device ``MAJOR:MINOR`` with all that lies below it; None where there is no such one."""
    if not re.fullmatch(r"[1-9]\d*:\d+", number):
        return None
    folder = root / "dev" / "block" / number
    try:
        return _device(folder.resolve(strict=True), root)
    except (OSError, RuntimeError):
        return None


def disks(root: Path = SYSFS) -> list[Device]:
    """Every disk that has room: no partitions, no loop devices, no RAM disks, nothing made of
    others."""
    found = []
    for name in _names(root / "class" / "block"):
        if re.match(r"loop|ram|zram|sr|fd|dm-|md", name):
            continue
        with contextlib.suppress(OSError, RuntimeError):
            one = _device((root / "class" / "block" / name).resolve(strict=True), root)
            if one.layer == "disk" and one.bytes:
                found.append(one)
    return found


def pool(source: str, root: Path = SYSFS) -> list[str]:
    """Numbers of all devices of the btrfs to which the device at ``source`` belongs."""
    name = source.rpartition("/")[2]
    for folder in (root / "fs" / "btrfs").glob("*/devices"):
        members = _names(folder)
        if name and name in members:
            numbers = (text(folder / member / "dev") for member in members)
            return [number for number in numbers if number]
    return []


def read_ahead_kb(number: str, root: Path = SYSFS) -> int | None:
    """How far the kernel reads ahead on the mount with that number, over a network too."""
    return kernel_files.number(root / "class" / "bdi" / number / "read_ahead_kb")


def backing_file(number: str, root: Path = SYSFS) -> Path | None:
    """The file of the loop device at the bottom of single devices; None where there is none."""
    with contextlib.suppress(OSError, RuntimeError):
        folder = (root / "dev" / "block" / number).resolve(strict=True)
        for _ in range(_DEEPEST):
            if name := text(folder / "loop" / "backing_file"):
                return Path(name)
            below = _below(folder)
            if len(below) != 1:
                return None
            folder = below[0]
    return None


def _device(folder: Path, root: Path, depth: int = 0) -> Device:
    layer, detail = _layer(folder)
    below = (
        () if depth >= _DEEPEST else tuple(_device(one, root, depth + 1) for one in _below(folder))
    )
    vendor = word(folder / "device" / "vendor")
    model = word(folder / "device" / "model") or word(folder / "device" / "name")
    sectors = kernel_files.number(folder / "size")
    rotational = kernel_files.number(folder / "queue" / "rotational")
    return Device(
        name=folder.name,
        layer=layer,
        model="" if vendor in _MODELS_OF_PEOPLE or layer != "disk" else model,
        vendor="" if vendor.startswith("0x") else vendor,
        transport=_transport(folder, vendor) if layer == "disk" else "",
        rotational=None if rotational is None else bool(rotational),
        bytes=None if sectors is None else sectors * _SECTOR_BYTES,
        queue=_queue(folder / "queue"),
        detail=detail,
        below=below,
        link_mb_per_s=link_mb_per_s(folder) if layer == "disk" else None,
    )


def _layer(folder: Path) -> tuple[str, str]:
    if (folder / "partition").exists():
        return "partition", ""
    if (folder / "md").is_dir():
        return "md", word(folder / "md" / "level")
    if (folder / "dm").is_dir():
        prefix = re.split("[-:]", text(folder / "dm" / "uuid"))[0]
        return _MAPPED.get(prefix, "dm"), ""
    if folder.name.startswith("loop"):
        return "loop", ""
    if folder.name.startswith("bcache"):
        return "bcache", ""
    return "disk", ""


def _below(folder: Path) -> list[Path]:
    """What a device is made of: the disk of a partition, or its slaves."""
    if (folder / "partition").exists():
        return [folder.parent]
    return [(folder / "slaves" / name).resolve(strict=True) for name in _names(folder / "slaves")]


def _transport(folder: Path, vendor: str) -> str:
    path = f"{folder}/"
    if folder.name.startswith("nvme"):
        return _nvme_transport(folder)
    for pattern, name in _BY_PATH:
        if re.search(pattern, path):
            if name == "ata":
                return "sata" if _is_serial(folder) else "ata"
            return "sata" if name == "sas" and vendor == "ATA" else name
    return ""


def _nvme_transport(folder: Path) -> str:
    """Of the controller, or of the first of those through which a subsystem is reached."""
    above = folder / "device"
    said = text(above / "transport")
    for controller in sorted(above.glob("nvme*/transport")):
        said = said or text(controller)
    return "nvme-fc" if said == "fc" else said or "nvme"


def _is_serial(folder: Path) -> bool:
    """Whether the link has a speed, as SATA's have and parallel ones have not."""
    for port in folder.parents:
        if re.fullmatch(r"ata\d+", port.name):
            speeds = port.glob("link*/ata_link/link*/sata_spd")
            return any("Gbps" in text(speed) for speed in speeds)
    return False


def _queue(folder: Path) -> Queue:
    scheduler = re.search(r"\[([a-z0-9-]+)\]", text(folder / "scheduler"))
    return Queue(
        scheduler=scheduler[1] if scheduler else word(folder / "scheduler") or None,
        read_ahead_kb=kernel_files.number(folder / "read_ahead_kb"),
        requests=kernel_files.number(folder / "nr_requests"),
        largest_request_kb=kernel_files.number(folder / "max_sectors_kb"),
        write_cache=word(folder / "write_cache") or None,
    )


def _names(folder: Path) -> list[str]:
    try:
        return sorted(path.name for path in folder.iterdir())
    except OSError:
        return []
