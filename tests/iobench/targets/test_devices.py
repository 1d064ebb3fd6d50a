"""Kinds of block devices, by model, vendor and the way to them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.targets.description import Device
from iobench.targets.devices import of_device
from iobench.targets.kinds import KINDS

EBS = Device("nvme0n1", model="Amazon Elastic Block Store", transport="pcie")
STORE = Device("nvme1n1", model="Amazon EC2 NVMe Instance Storage", transport="pcie")
SSD = Device("nvme0n1", model="Samsung SSD 980 PRO 1TB", transport="pcie", link_mb_per_s=7877.0)


@pytest.mark.parametrize(
    ("device", "kind"),
    [
        (EBS, "ebs"),
        (STORE, "ec2-instance-store"),
        (SSD, "nvme"),
        (Device("nvme0n1", model="nvme_card-pd", transport="pcie"), "google-persistent-disk"),
        (Device("nvme0n1", model="nvme_card", transport="pcie"), "google-local-ssd"),
        (Device("nvme0n1", model="nvme_card12", transport="pcie"), "google-local-ssd"),
        (
            Device("sda", model="PersistentDisk", vendor="Google", transport="virtio-scsi"),
            "google-persistent-disk",
        ),
        (Device("sda", model="PersistentDisk", vendor="ACME", transport="sas"), "sas"),
        (Device("nvme0n1", model="MSFT NVMe Accelerator v1.0"), "azure-managed-disk"),
        (Device("nvme1n1", model="Microsoft NVMe Direct Disk v2"), "azure-local-disk"),
        (Device("sda", model="Virtual Disk", vendor="Msft", transport="hyper-v"), "virtual"),
        (Device("sda", model="QEMU HARDDISK", vendor="ATA", transport="ata"), "virtual"),
        (Device("nvme0n1", model="QEMU NVMe Ctrl", transport="pcie"), "virtual"),
        (Device("vda", transport="virtio"), "virtio"),
        (Device("sda", transport="virtio-scsi", vendor="Nutanix"), "virtio"),
        (Device("xvda", transport="xen"), "xen"),
        (Device("sda", transport="sata", model="WDC WD40EFRX"), "sata"),
        (Device("sda", transport="ata", model="Maxtor"), "unknown"),
        (Device("sda", transport="sas"), "sas"),
        (Device("sda", transport="usb"), "usb"),
        (Device("sda", transport="iscsi"), "iscsi"),
        (Device("sda", transport="fc"), "fibre-channel"),
        (Device("sda", vendor="AVAGO", model="MR9361-8i"), "unknown"),
        (Device("nvme0n1", transport="tcp"), "nvme-fabric"),
        (Device("nvme0n1", transport="nvme-fc"), "nvme-fabric"),
        (Device("nvme0n1", transport="nvme"), "nvme"),
        (Device("mmcblk0"), "mmc"),
        (Device("pmem0"), "pmem"),
        (Device("nbd0"), "nbd"),
        (Device("rbd0"), "rbd"),
        (Device("zram0"), "ram-disk"),
        (Device("sdb"), "unknown"),
    ],
)
def test_a_disk(device: Device, kind: str) -> None:
    """Told, or unknown."""
    found = of_device(device)
    assert found.kind == kind
    assert found.device == device
    assert found.why


def test_a_hypervisors_disk_is_not_said_to_be_its_clouds() -> None:
    """On EC2's Xen machines an EBS volume and an instance store look alike."""
    assert "cannot be seen from here" in of_device(Device("xvdf", transport="xen")).why


def test_a_stack_is_told_from_the_top_down() -> None:
    """LVM on a RAID of partitions of two alike disks."""
    parts = tuple(
        Device(f"{name}p1", "partition", below=(Device(name, model=SSD.model, transport="pcie"),))
        for name in ("nvme0n1", "nvme1n1")
    )
    top = Device("dm-0", "lvm", below=(Device("md0", "md", detail="raid0", below=parts),))
    found = of_device(top)
    assert found.kind == "nvme"
    assert found.why == "2 disks, each an NVMe drive on PCI Express"
    raid, disks = "md RAID (raid0) of 2", "2 × NVMe (Samsung SSD 980 PRO 1TB)"
    assert found.stack == ("LVM", raid, "partition", disks)


def test_two_partitions_of_a_disk_are_one_disk() -> None:
    """A RAID across them has one below it."""
    parts = tuple(Device(f"p{i}", "partition", below=(SSD,)) for i in (1, 2))
    found = of_device(Device("md0", "md", below=parts))
    assert found.stack[-1] == "NVMe (Samsung SSD 980 PRO 1TB)"
    assert found.device == SSD


def test_the_link_of_one_disk_is_not_that_of_several() -> None:
    """Two drives carry more than one link does."""
    other = Device("nvme1n1", model=SSD.model, transport="pcie", link_mb_per_s=7877.0)
    assert of_device(Device("md0", "md", below=(SSD,))).device == SSD
    several = of_device(Device("md0", "md", below=(SSD, other))).device
    assert several is not None
    assert several.link_mb_per_s is None


def test_disks_of_several_kinds_are_mixed() -> None:
    """Which of them gave the bytes is not to be told; a cache device before a slow disk, say."""
    found = of_device(Device("bcache0", "bcache", below=(EBS, STORE)))
    assert found.kind == "mixed"
    assert "Amazon EBS, EC2 instance store" in found.why
    assert found.device is None


def test_nothing_below_is_unknown() -> None:
    """A device mapper without slaves, as a container may see it."""
    found = of_device(Device("dm-0", "crypt"))
    assert (found.kind, found.device) == ("unknown", None)
    assert "below the dm-crypt" in found.why


words = st.text(max_size=20)
disks = st.builds(Device, name=words, model=words, vendor=words, transport=words)
devices = st.recursive(
    disks,
    lambda below: st.builds(
        Device,
        name=words,
        layer=st.sampled_from(["partition", "md", "lvm", "crypt", "dm", "loop", "bcache", "pool"]),
        below=st.lists(below, max_size=3).map(tuple),
    ),
    max_leaves=8,
)


@given(devices)
def test_every_stack_has_a_kind_and_a_reason(device: Device) -> None:
    """Whatever a kernel shows."""
    found = of_device(device)
    assert found.kind in KINDS
    assert found.why
