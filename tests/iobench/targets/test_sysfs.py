"""Block devices as the kernel lays them out on real machines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.targets import sysfs as read
from iobench.targets.description import Device
from tests.iobench.targets.machines import PLANTED, Sysfs, link

PCI = "pci0000:00/0000:00:1f.0"


def at(sysfs: Sysfs, number: str) -> Device:
    """The device with that number, which is there."""
    found = read.device(number, sysfs.root)
    assert found is not None
    return found


def test_an_nvme_drive_and_its_partition(sysfs: Sysfs) -> None:
    """Model and way are its controller's, the queue its own, and a partition lies on it."""
    disk = sysfs.nvme(1, "Amazon EC2 NVMe Instance Storage")
    sysfs.partition(disk, "nvme1n1p1", "259:5")
    found = at(sysfs, "259:5")
    assert (found.layer, found.model, found.bytes) == ("partition", "", 20971520 * 512)
    (below,) = found.below
    assert (below.name, below.layer, below.transport) == ("nvme1n1", "disk", "pcie")
    assert below.model == "Amazon EC2 NVMe Instance Storage"
    assert below.rotational is False
    queue = below.queue
    assert (queue.scheduler, queue.read_ahead_kb, queue.requests) == ("none", 128, 1023)
    assert (queue.largest_request_kb, queue.write_cache) == (128, "write back")
    assert below.link_mb_per_s == pytest.approx(4 * 8000 / 8 * 128 / 130, abs=0.1)


def test_an_nvme_drive_by_several_paths(sysfs: Sysfs) -> None:
    """With native multipath the namespace is the subsystem's, and controllers are beside it."""
    sub = "virtual/nvme-subsystem/nvme-subsys0"
    sysfs.write(f"devices/{sub}/model", "Remote Flash")
    sysfs.write("devices/virtual/nvme-fabrics/ctl/nvme0/transport", "tcp")
    disk = sysfs.block(f"{sub}/nvme0n1", "259:0")
    link(disk / "device", disk.parent)
    link(disk.parent / "nvme0", sysfs.root / "devices/virtual/nvme-fabrics/ctl/nvme0")
    found = at(sysfs, "259:0")
    assert (found.model, found.transport, found.link_mb_per_s) == ("Remote Flash", "tcp", None)


def test_fibre_channel_has_two_meanings(sysfs: Sysfs) -> None:
    """Under NVMe it carries NVMe, else SCSI."""
    sysfs.nvme(0, "Array", transport="fc")
    sysfs.scsi(f"{PCI}/host1/rport-1:0-0", "sdb", "8:16", "NETAPP", "LUN C-Mode")
    assert at(sysfs, "259:0").transport == "nvme-fc"
    assert at(sysfs, "8:16").transport == "fc"


@pytest.mark.parametrize(
    ("way", "vendor", "transport"),
    [
        (f"{PCI}/host0/port-0:0/end_device-0:0", "SEAGATE", "sas"),
        (f"{PCI}/host0/port-0:0/end_device-0:0", "ATA", "sata"),
        (f"{PCI}/usb2/2-1/2-1:1.0/host6", "WD", "usb"),
        ("platform/host3/session1", "DELL", "iscsi"),
        (f"{PCI}/virtio0/host0", "Google", "virtio-scsi"),
        ("LNXSYSTM:00/LNXSYBUS:00/ACPI0004:00/VMBUS:00/f8b3-0/host0", "Msft", "hyper-v"),
        (f"{PCI}/host0", "AVAGO", ""),
    ],
)
def test_ways_to_scsi_disks(sysfs: Sysfs, way: str, vendor: str, transport: str) -> None:
    """The path tells; a RAID controller's does not."""
    sysfs.scsi(way, "sda", "8:0", vendor, "Some Model")
    found = at(sysfs, "8:0")
    assert (found.transport, found.model, found.vendor) == (transport, "Some Model", vendor)


@pytest.mark.parametrize(
    ("speed", "transport", "most"), [("6.0 Gbps", "sata", 600), ("<unknown>", "ata", None)]
)
def test_a_link_with_a_speed_is_serial(
    sysfs: Sysfs, speed: str, transport: str, most: float | None
) -> None:
    """Parallel ATA and QEMU's controller go the same way without one."""
    sysfs.sata("Samsung SSD 870", speed=speed, rotational=True)
    found = at(sysfs, "8:0")
    assert (found.transport, found.link_mb_per_s, found.rotational) == (transport, most, True)


def test_virtio_and_xen(sysfs: Sysfs) -> None:
    """Neither has a model, and a number is no vendor."""
    sysfs.virtio()
    sysfs.block("vbd-51712/block/xvda", "202:0")
    assert (at(sysfs, "254:0").transport, at(sysfs, "254:0").vendor) == ("virtio", "")
    assert at(sysfs, "202:0").transport == "xen"


def test_layers_down_to_the_disks(sysfs: Sysfs) -> None:
    """LVM on dm-crypt on a RAID of two partitions."""
    parts = [
        sysfs.partition(sysfs.nvme(i, "SSD"), f"nvme{i}n1p1", f"259:{4 * i + 1}") for i in (0, 1)
    ]
    raid = sysfs.md("raid0", *parts)
    crypt = sysfs.mapped("dm-0", "252:0", "CRYPT-LUKS2", raid)
    sysfs.mapped("dm-1", "252:1", "LVM", crypt)
    found, layers = at(sysfs, "252:1"), []
    while found.below:
        layers.append((found.layer, found.detail, len(found.below)))
        found = found.below[0]
    assert layers == [("lvm", "", 1), ("crypt", "", 1), ("md", "raid0", 2), ("partition", "", 1)]
    assert found.model == "SSD"


@pytest.mark.parametrize(
    ("prefix", "layer"), [("mpath", "multipath"), ("DMRAID", "dm"), ("", "dm")]
)
def test_other_maps(sysfs: Sysfs, prefix: str, layer: str) -> None:
    """Whatever is mapped and not known is device mapper."""
    sysfs.mapped("dm-0", "252:0", prefix)
    assert at(sysfs, "252:0").layer == layer


def test_a_loop_device_has_a_file(sysfs: Sysfs) -> None:
    """Found from a partition in it, too; a disk has none."""
    loop = sysfs.loop("/srv/images/disk.img")
    sysfs.partition(loop, "loop0p1", "259:9")
    sysfs.virtio()
    assert at(sysfs, "7:0").layer == "loop"
    assert read.backing_file("259:9", sysfs.root) == Path("/srv/images/disk.img")
    assert read.backing_file("254:0", sysfs.root) is None
    assert read.backing_file("1:99", sysfs.root) is None


def test_models_that_people_chose_are_not_kept(sysfs: Sysfs) -> None:
    """Linux's own iSCSI target calls a disk what its owner called it."""
    sysfs.scsi("platform/host3/session1", "sda", "8:0", "LIO-ORG", PLANTED)
    assert at(sysfs, "8:0").model == ""


def test_control_characters_and_long_lines_are_not_kept(sysfs: Sysfs) -> None:
    """A device says what it likes; one short line is made of it."""
    sysfs.nvme(0, "a\tb\x1b[31m\u20ac" + "x" * 500)
    found = at(sysfs, "259:0").model
    assert found.isascii()
    assert found.isprintable()
    assert found.startswith("a b [31m x")
    assert len(found) == 60


@pytest.mark.parametrize("number", ["0:21", "99:1", "", "x:y", "../..", "8:0/../../x"])
def test_what_is_no_device_is_none(sysfs: Sysfs, number: str) -> None:
    """Numbers of mounts without a device, and no numbers at all."""
    assert read.device(number, sysfs.root) is None


def test_what_may_not_be_read_is_not_known(sysfs: Sysfs, tmp_path: Path) -> None:
    """A device with nothing in its folder is one of which nothing is known."""
    empty = sysfs.root / "devices" / "empty"
    empty.mkdir(parents=True)
    link(sysfs.root / "dev" / "block" / "8:0", empty)
    found = at(sysfs, "8:0")
    assert found == Device("empty")
    assert read.device("8:0", tmp_path / "nowhere") is None


def test_a_circle_ends(sysfs: Sysfs) -> None:
    """Devices that lie on each other, which no kernel shows, end after some levels."""
    one = sysfs.block("virtual/block/dm-0", "252:0", {"dm/uuid": "LVM-a"})
    two = sysfs.mapped("dm-1", "252:1", "LVM", one)
    sysfs.over(one, two)
    assert read.device("252:0", sysfs.root) is not None
    assert read.backing_file("252:0", sysfs.root) is None


def test_disks_of_the_machine(sysfs: Sysfs) -> None:
    """Whole ones with room, not what is made of them nor of memory."""
    sysfs.partition(sysfs.nvme(0, "SSD"), "nvme0n1p1", "259:1")
    sysfs.loop("/x")
    sysfs.md("raid1")
    sysfs.block("virtual/block/zram0", "251:0")
    sysfs.block("virtual/block/nbd0", "43:0", {"size": "0"})
    sysfs.sata("HDD")
    assert [disk.name for disk in read.disks(sysfs.root)] == ["nvme0n1", "sda"]
    assert read.disks(sysfs.root / "nowhere") == []


def test_devices_of_a_pool(sysfs: Sysfs) -> None:
    """A btrfs lists all that it lies on, whichever of them is mounted."""
    for i in (0, 1):
        disk = sysfs.nvme(i, "SSD")
        link(sysfs.root / "fs/btrfs" / f"uuid-{PLANTED}" / "devices" / disk.name, disk)
    assert read.pool("/dev/nvme1n1", sysfs.root) == ["259:0", "259:4"]
    assert read.pool("/dev/sdz", sysfs.root) == []


def test_read_ahead_of_a_mount(sysfs: Sysfs) -> None:
    """Network file systems have one of their own."""
    sysfs.write("class/bdi/0:52/read_ahead_kb", "15000")
    assert read.read_ahead_kb("0:52", sysfs.root) == 15000
    assert read.read_ahead_kb("0:53", sysfs.root) is None


@given(st.binary(max_size=80))
def test_whatever_stands_in_a_file_is_read(content: bytes) -> None:
    """No bytes of a driver's break it."""
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        made = Sysfs(Path(name) / "sys")
        disk = made.block("x/block/sda", "8:0")
        for file in disk.rglob("*"):
            if file.is_file():
                file.write_bytes(content)
        assert read.device("8:0", made.root) is not None


def test_this_machine_has_a_device_below_some_mount() -> None:
    """The real sysfs is read, where this machine shows its disks."""
    try:
        numbers = [path.name for path in (read.SYSFS / "dev" / "block").iterdir()]
    except OSError:
        pytest.skip("no block devices are shown here")
    told: Callable[[str], Device | None] = read.device
    if not numbers:
        pytest.skip("no block devices are shown here")
    assert all(told(number) is not None for number in numbers)
