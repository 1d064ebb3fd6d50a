"""PURE. Kinds of block devices, by model, vendor and the way to them.

Models: ``Amazon Elastic Block Store`` and ``Amazon EC2 NVMe Instance Storage``
(https://docs.aws.amazon.com/ebs/latest/userguide/nvme-ebs-volumes.html and
https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ssd-instance-store.html); ``nvme_card-pd``
and ``nvme_card`` with a number, SCSI ``PersistentDisk`` and ``EphemeralDisk`` of vendor Google
(udev rules of GoogleCloudPlatform/guest-configs); ``MSFT NVMe Accelerator`` and ``Microsoft NVMe
Direct Disk`` (README of Azure/azure-vm-utils). Behind a virtio or Xen disk is whatever the
hypervisor keeps there, EBS included: that is not guessed from being on a cloud.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from iobench.targets.description import Device, Told
from iobench.targets.kinds import kind_name

_MODELS = (
    (r"Amazon Elastic Block Store", "ebs"),
    (r"Amazon EC2 NVMe Instance Storage", "ec2-instance-store"),
    (r"nvme_card-pd", "google-persistent-disk"),
    (r"nvme_card\d*", "google-local-ssd"),
    (r"MSFT NVMe Accelerator.*", "azure-managed-disk"),
    (r"Microsoft NVMe Direct Disk.*", "azure-local-disk"),
    (r"QEMU .*|VMware .*|Virtual Disk|VBOX .*|VIRTUAL-DISK|Parallels .*|Bhyve .*", "virtual"),
)
_GOOGLE = {"PersistentDisk": "google-persistent-disk", "EphemeralDisk": "google-local-ssd"}
_NAMES = (
    (r"zram\d+|ram\d+", "ram-disk", "a RAM disk lies in memory"),
    (r"nbd\d+", "nbd", "a network block device"),
    (r"rbd\d+", "rbd", "a Ceph block device"),
    (r"drbd\d+", "drbd", "a DRBD device"),
    (r"pmem[\d.s]+", "pmem", "a persistent memory device"),
    (r"mmcblk\d+", "mmc", "an SD card or eMMC"),
)
_TRANSPORTS = {
    "pcie": ("nvme", "an NVMe drive on PCI Express"),
    "nvme": ("nvme", "an NVMe drive"),
    "tcp": ("nvme-fabric", "NVMe over TCP"),
    "rdma": ("nvme-fabric", "NVMe over RDMA"),
    "nvme-fc": ("nvme-fabric", "NVMe over Fibre Channel"),
    "sata": ("sata", "a drive on SATA"),
    "sas": ("sas", "a drive on SAS"),
    "usb": ("usb", "a drive on USB"),
    "iscsi": ("iscsi", "a SCSI disk over iSCSI"),
    "fc": ("fibre-channel", "a SCSI disk over Fibre Channel"),
    "virtio": ("virtio", "a virtio disk: what the hypervisor keeps it on cannot be seen from here"),
    "virtio-scsi": (
        "virtio",
        "a disk on virtio-scsi: what the hypervisor keeps it on cannot be seen from here",
    ),
    "xen": ("xen", "a Xen disk: what the hypervisor keeps it on cannot be seen from here"),
    "hyper-v": (
        "virtual",
        "a disk of Hyper-V: what the hypervisor keeps it on cannot be seen from here",
    ),
}
_LAYERS = {
    "partition": "partition",
    "md": "md RAID",
    "lvm": "LVM",
    "crypt": "dm-crypt",
    "multipath": "multipath",
    "dm": "device mapper",
    "loop": "loop device",
    "bcache": "bcache",
    "pool": "volume",
}
PHYSICAL = frozenset({"sata", "sas", "usb"})
"""Kinds whose word on whether they rotate is their drive's; a virtual disk's is a default."""


def of_device(device: Device) -> Told:
    """The kind of what lies at the bottom, and all that is passed through on the way there."""
    disks = list(dict.fromkeys(_disks(device)))
    stack = tuple(_layers(device))
    if not disks:
        return Told("unknown", f"what lies below the {_layer(device)} cannot be seen", stack)
    told = [_of_disk(disk) for disk in disks]
    kinds = {kind for kind, _ in told}
    if len(kinds) > 1:
        names = ", ".join(sorted(kind_name(kind) for kind in kinds))
        return Told("mixed", f"{len(disks)} disks of several kinds: {names}", stack)
    ((kind, why), first) = (told[0], disks[0])
    several = ""
    if len(disks) > 1:
        several = f"{len(disks)} disks, each "
        first = replace(first, link_mb_per_s=None)  # of one of them, not of all
    return Told(kind, several + why, (*stack, _named(kind, first, len(disks))), first)


def _disks(device: Device) -> Iterator[Device]:
    if device.layer == "disk":
        yield device
    for below in device.below:
        yield from _disks(below)


def _layers(device: Device) -> Iterator[str]:
    """From the top down; of several devices side by side the first one's, with their number."""
    if device.layer == "disk":
        return
    yield _layer(device)
    if device.below:
        yield from _layers(device.below[0])


def _layer(device: Device) -> str:
    name = _LAYERS.get(device.layer, "device mapper")
    if device.layer not in ("md", "pool"):
        return name
    level = f" ({device.detail})" if device.detail else ""
    return f"{name}{level} of {len(device.below)}"


def _named(kind: str, device: Device, count: int) -> str:
    times = f"{count} × " if count > 1 else ""
    model = device.model if device.model and device.model != kind_name(kind) else ""
    return times + kind_name(kind) + (f" ({model})" if model else "")


def _of_disk(disk: Device) -> tuple[str, str]:
    """Kind and evidence."""
    for pattern, kind in _MODELS:
        if re.fullmatch(pattern, disk.model):
            hidden = ": what the hypervisor keeps it on cannot be seen from here"
            return kind, f"its model is {disk.model}" + (hidden if kind == "virtual" else "")
    if disk.vendor == "Google" and disk.model in _GOOGLE:
        return _GOOGLE[disk.model], f"its vendor is Google, its model {disk.model}"
    for pattern, kind, why in _NAMES:
        if re.fullmatch(pattern, disk.name):
            return kind, why
    if disk.transport in _TRANSPORTS:
        return _TRANSPORTS[disk.transport]
    return "unknown", "a block device of a model and a connection that iobench does not know"
