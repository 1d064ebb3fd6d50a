"""The storage behind a path, from a table of mounts and a sysfs, and on this machine."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.machine.mounts import Mount, data_mounts, file_system, mount_of, mounts
from iobench.machine.storage import describe_target, target_lines
from iobench.machine.storage_kinds import KINDS, Reach, kept_options, kind_name, reach
from tests.iobench.machine.machines import PLANTED, Sysfs, link

PCI = "pci0000:00/0000:00:1f.0"
EFS = "fs-5d7edb06.efs.eu-central-1.amazonaws.com"
FSX = "fs-0123456789abcdef0.fsx.us-east-1.amazonaws.com"


@pytest.fixture
def sysfs(tmp_path: Path) -> Sysfs:
    """Return an empty sysfs in a temporary folder."""
    return Sysfs(tmp_path / "machine")


def described(sysfs: Sysfs, *table: Mount, path: str = "/x") -> dict[str, Any]:
    """Describe a path on a machine with these mounts, and check that no planted name is left."""
    description = describe_target(Path(path), table, sysfs.machine)
    text = json.dumps(description)
    assert PLANTED not in text
    assert json.loads(text) == description
    return {**description}


def disk_at(sysfs: Sysfs, number: str, kind: str = "ext4") -> dict[str, Any]:
    """Describe a file system on the block device with this number."""
    return described(sysfs, Mount(Path("/"), kind, "rw", "/dev/x", number))


def mounted(file_system: str, source: str) -> dict[str, Any]:
    """Describe a file system that is mounted without a block device."""
    table = [Mount(Path("/"), file_system, "rw", source, "0:52")]
    return {**describe_target(Path("/x"), table, Path("/nowhere"))}


def test_an_instance_store_with_an_ebs_root(sysfs: Sysfs) -> None:
    """Each path belongs to the deepest mount above it."""
    sysfs.partition(sysfs.nvme(0, "Amazon Elastic Block Store"), "nvme0n1p1", "259:1")
    sysfs.nvme(1, "Amazon EC2 NVMe Instance Storage")
    options = "rw,noatime,attr2,inode64,logbufs=8"
    table = (
        Mount(Path("/"), "xfs", options, "/dev/nvme0n1p1", "259:1"),
        Mount(Path("/mnt", PLANTED), "ext4", "rw,relatime,discard", "/dev/nvme1n1", "259:4"),
    )
    root = described(sysfs, *table, path="/no/such/path")
    assert (root["kind"], root["name"], root["file_system"]) == ("ebs", "Amazon EBS", "xfs")
    assert root["mount_options"] == "rw,noatime,inode64,logbufs=8"
    assert root["read_ahead_kb"] == 128
    store = described(sysfs, *table, path=f"/mnt/{PLANTED}/data")
    assert (store["kind"], store["mount_options"]) == ("ec2-instance-store", "rw,relatime,discard")
    assert store["device"] == {
        "model": "Amazon EC2 NVMe Instance Storage",
        "transport": "pcie",
        "rotational": False,
        "total_bytes": 41943040 * 512,
        "link_mb_per_s": 3938.5,
        "queue": {
            "scheduler": "none",
            "read_ahead_kb": 128,
            "requests": 1023,
            "largest_request_kb": 128,
            "write_cache": "write back",
        },
    }


def test_network_mounts_name_nobody(sysfs: Sysfs) -> None:
    """Servers, buckets, users and names of file systems are not kept."""
    sysfs.write("class/bdi/0:52/read_ahead_kb", "128")
    options = f"rw,vers=4.1,rsize=1048576,hard,clientaddr=10.0.0.1,username={PLANTED}"
    source = f"{PLANTED}.example.org:/{PLANTED}"
    description = described(sysfs, Mount(Path("/"), "nfs4", options, source, "0:52"))
    assert (description["kind"], description["read_ahead_kb"]) == ("nfs", 128)
    assert description["mount_options"] == "rw,vers=4.1,rsize=1048576,hard"


def test_btrfs_over_its_devices(sysfs: Sysfs) -> None:
    """The devices of btrfs are found, although no device has the number of the mount."""
    for i in (0, 1):
        disk = sysfs.nvme(i, "Some SSD")
        link(sysfs.root / "fs/btrfs" / PLANTED / "devices" / disk.name, disk)
    description = described(sysfs, Mount(Path("/"), "btrfs", "rw", "/dev/nvme0n1", "0:33"))
    assert description["kind"] == "nvme"
    assert description["stack"] == ["btrfs", "volume of 2", "2 × NVMe (Some SSD)"]


def test_a_virtual_disk_does_not_rotate(sysfs: Sysfs) -> None:
    """Linux's flag is ignored for virtual disks and kept for real drives."""
    sysfs.virtio()
    sysfs.scsi(f"{PCI}/usb2/host6", "sda", "8:0", "WD", "WD40EFRX", rotational=True)
    assert "rotational" not in disk_at(sysfs, "254:0")["device"]
    assert disk_at(sysfs, "8:0")["device"]["rotational"] is True


def test_storage_that_cannot_be_seen_is_unknown(sysfs: Sysfs, tmp_path: Path) -> None:
    """The storage is unknown if sysfs lacks the device, a mount, or the disks below a layer."""
    assert disk_at(sysfs, "9:0")["why"] == "/sys does not show its block device here"
    unmounted = describe_target(tmp_path, [], sysfs.root)
    assert (unmounted["kind"], unmounted["file_system"]) == ("unknown", "unknown")
    assert unmounted["total_bytes"] >= unmounted["free_bytes"] > 0
    sysfs.mapped("dm-0", "252:0", "mpath")
    assert disk_at(sysfs, "252:0")["why"] == "the devices below the multipath cannot be seen"
    sysfs.mapped("dm-1", "252:1", "DMRAID")
    assert disk_at(sysfs, "252:1")["why"] == "the devices below the device mapper cannot be seen"
    sysfs.partition(sysfs.block("virtual/block/loop0", "7:0"), "loop0p1", "259:9")
    description = disk_at(sysfs, "259:9")
    assert description["kind"] == "unknown"
    assert description["stack"] == ["ext4", "partition", "loop device"]


@pytest.mark.parametrize(
    ("model", "transport", "kind"),
    [
        ("nvme_card-pd", "pcie", "google-persistent-disk"),
        ("nvme_card", "pcie", "google-local-ssd"),
        ("nvme_card12", "pcie", "google-local-ssd"),
        ("MSFT NVMe Accelerator v1.0", "pcie", "azure-managed-disk"),
        ("Microsoft NVMe Direct Disk v2", "pcie", "azure-local-disk"),
        ("QEMU NVMe Ctrl", "pcie", "virtual"),
        ("Samsung SSD 980 PRO 1TB", "pcie", "nvme"),
        ("Array", "tcp", "nvme-fabric"),
        ("Array", "fc", "nvme-fabric"),
        ("Array", "", "nvme"),
    ],
)
def test_nvme_disks(sysfs: Sysfs, model: str, transport: str, kind: str) -> None:
    """NVMe disks are known by their model, or else by their transport."""
    sysfs.nvme(0, model, transport)
    storage = disk_at(sysfs, "259:0")
    assert (storage["kind"], storage["device"]["model"]) == (kind, model)


@pytest.mark.parametrize(
    ("way", "vendor", "model", "transport", "kind"),
    [
        (f"{PCI}/host0/port-0:0/end_device-0:0", "SEAGATE", "X", "sas", "sas"),
        (f"{PCI}/host0/port-0:0/end_device-0:0", "ATA", "X", "sata", "sata"),
        (f"{PCI}/host0/port-0:0/end_device-0:0", "ACME", "PersistentDisk", "sas", "sas"),
        (f"{PCI}/usb2/2-1/2-1:1.0/host6", "WD", "X", "usb", "usb"),
        ("platform/host3/session1", "DELL", "X", "iscsi", "iscsi"),
        (f"{PCI}/host1/rport-1:0-0", "NETAPP", "LUN C-Mode", "fc", "fibre-channel"),
        (f"{PCI}/virtio0/host0", "Nutanix", "X", "virtio-scsi", "virtio"),
        (
            f"{PCI}/virtio0/host0",
            "Google",
            "PersistentDisk",
            "virtio-scsi",
            "google-persistent-disk",
        ),
        ("LNXSYSTM:00/VMBUS:00/f8b3-0/host0", "Msft", "Virtual Disk", "hyper-v", "virtual"),
        (f"{PCI}/ata1/host0", "ATA", "QEMU HARDDISK", "ata", "virtual"),
        (f"{PCI}/ata1/host0", "ATA", "Maxtor", "ata", "unknown"),
        (f"{PCI}/host0", "AVAGO", "MR9361-8i", "", "unknown"),
    ],
)
def test_scsi_disks(
    sysfs: Sysfs, way: str, vendor: str, model: str, transport: str, kind: str
) -> None:
    """SCSI disks are known by vendor and model, or else by their path."""
    sysfs.scsi(way, "sda", "8:0", vendor, model)
    storage = disk_at(sysfs, "8:0")
    device = storage["device"]
    assert (storage["kind"], device.get("transport", "")) == (kind, transport)
    assert (device["model"], device["vendor"]) == (model, vendor)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("virtual/block/zram0", "ram-disk"),
        ("virtual/block/nbd0", "nbd"),
        ("virtual/block/rbd0", "rbd"),
        ("virtual/block/pmem0", "pmem"),
        ("platform/mmc/block/mmcblk0", "mmc"),
        ("vbd-51712/block/xvda", "xen"),
        ("virtual/block/sdb", "unknown"),
    ],
)
def test_other_disks(sysfs: Sysfs, path: str, kind: str) -> None:
    """Other disks are known by their name or their path."""
    sysfs.block(path, "99:0")
    assert disk_at(sysfs, "99:0")["kind"] == kind


def test_a_link_with_a_speed_is_serial(sysfs: Sysfs) -> None:
    """Only serial ATA has a speed, which tells it from parallel ATA and QEMU's controller."""
    sysfs.write(f"devices/{PCI}/ata1/link1/ata_link/link1/sata_spd", "6.0 Gbps")
    sysfs.scsi(f"{PCI}/ata1/host0", "sda", "8:0", "ATA", "Samsung SSD 870")
    device = disk_at(sysfs, "8:0")["device"]
    assert (device["transport"], device["link_mb_per_s"]) == ("sata", 600)


def test_an_nvme_drive_with_several_controllers(sysfs: Sysfs) -> None:
    """With native multipath the namespace belongs to a subsystem beside its controllers."""
    sub = "virtual/nvme-subsystem/nvme-subsys0"
    sysfs.write(f"devices/{sub}/model", "Remote Flash")
    sysfs.write("devices/virtual/nvme-fabrics/ctl/nvme0/transport", "tcp")
    disk = sysfs.block(f"{sub}/nvme0n1", "259:0")
    link(disk / "device", disk.parent)
    link(disk.parent / "nvme0", sysfs.root / "devices/virtual/nvme-fabrics/ctl/nvme0")
    device = disk_at(sysfs, "259:0")["device"]
    assert (device["model"], device["transport"]) == ("Remote Flash", "tcp")
    assert "link_mb_per_s" not in device


def test_layers_down_to_the_disks(sysfs: Sysfs) -> None:
    """All layers are listed down to two equal disks, which have no link speed of one disk."""
    partitions = []
    for number in (0, 1):
        disk = sysfs.nvme(number, "SSD")
        name = f"nvme{number}n1p1"
        partitions.append(sysfs.partition(disk, name, f"259:{4 * number + 1}"))
    raid = sysfs.md("raid0", *partitions)
    sysfs.write("class/bdi/9:127/read_ahead_kb", "4096")
    assert disk_at(sysfs, "9:127")["read_ahead_kb"] == 4096
    sysfs.mapped("dm-1", "252:1", "LVM", sysfs.mapped("dm-0", "252:0", "CRYPT-LUKS2", raid))
    storage = disk_at(sysfs, "252:1")
    disks = "2 × NVMe (SSD)"
    layers = ["ext4", "LVM", "dm-crypt", "md RAID (raid0) of 2", "partition", disks]
    assert (storage["kind"], storage["stack"]) == ("nvme", layers)
    assert storage["why"] == "2 disks, each an NVMe drive on PCI Express"
    assert "link_mb_per_s" not in storage["device"]


def test_two_partitions_of_a_disk_are_one_disk(sysfs: Sysfs) -> None:
    """A RAID over two partitions of one disk has one disk below it."""
    disk = sysfs.nvme(0, "SSD")
    sysfs.md("raid1", *(sysfs.partition(disk, f"nvme0n1p{i}", f"259:{i}") for i in (1, 2)))
    storage = disk_at(sysfs, "9:127")
    assert storage["stack"][-1] == "NVMe (SSD)"
    assert storage["device"]["link_mb_per_s"] > 0


def test_disks_of_several_kinds_are_mixed(sysfs: Sysfs) -> None:
    """Which disk delivers the bytes is unknown, such as with a cache before a slow disk."""
    disks = sysfs.nvme(0, "Amazon Elastic Block Store"), sysfs.virtio()
    sysfs.over(sysfs.block("virtual/block/bcache0", "251:0"), *disks)
    storage = disk_at(sysfs, "251:0")
    assert (storage["kind"], storage["stack"]) == ("mixed", ["ext4", "bcache"])
    assert "Amazon EBS, virtual disk (virtio)" in storage["why"]
    assert "device" not in storage


def test_names_that_people_chose_are_not_kept(sysfs: Sysfs) -> None:
    """The model is left out if it is a name that a user gave; else it is one short line."""
    sysfs.scsi("platform/host3/session1", "sda", "8:0", "LIO-ORG", PLANTED)
    assert "model" not in disk_at(sysfs, "8:0")["device"]
    sysfs.nvme(0, "a\tb\x1b[31m\u20ac" + "x" * 500)
    model = disk_at(sysfs, "259:0")["device"]["model"]
    assert model.startswith("a b [31m x")
    assert len(model) == 60


@given(st.binary(max_size=80))
def test_any_bytes_in_sysfs_are_read(content: bytes) -> None:
    """No text of a driver raises an error."""
    with tempfile.TemporaryDirectory() as name:
        sysfs = Sysfs(Path(name))
        disk = sysfs.block("x/block/sda", "8:0")
        for file in filter(Path.is_file, disk.rglob("*")):
            file.write_bytes(content)
        assert disk_at(sysfs, "8:0")["kind"] in KINDS


@pytest.mark.parametrize(
    ("source", "file_system", "kind"),
    [
        (f"{EFS}:/", "nfs4", "efs"),
        (f"us-east-1a.{EFS}:/a/path", "nfs4", "efs"),
        ("fs-5d7edb06.efs.cn-north-1.amazonaws.com.cn:/", "nfs4", "efs"),
        ("172.31.84.29:/", "nfs4", "nfs"),
        ("127.0.0.1:/", "nfs4", "nfs"),
        ("nas01:/home", "nfs", "nfs"),
        (f"{EFS}.example.org:/", "nfs4", "nfs"),
        ("[fe80::1]:/export", "nfs4", "nfs"),
        (f"svm-0123.{FSX}:/vol1", "nfs4", "fsx-nfs"),
        (f"{FSX}:/fsx", "nfs4", "fsx-nfs"),
        ("10.1.1.47@tcp:/testfs", "lustre", "lustre"),
        ("192.168.1.61@o2ib,192.168.1.62@o2ib1:/ai200", "lustre", "lustre"),
        (f"{FSX}@tcp:/mountname", "lustre", "fsx-lustre"),
        ("beegfs_nodev", "beegfs", "beegfs"),
        ("10.0.0.1:6789,10.0.0.2:6789:/", "ceph", "ceph"),
        ("mountpoint-s3", "fuse", "mountpoint-s3"),
        ("s3fs", "fuse.s3fs", "s3fs"),
        ("some-bucket", "fuse.gcsfuse", "gcsfuse"),
        ("some-bucket", "fuse.geesefs", "geesefs"),
        ("remote:bucket/prefix", "fuse.rclone", "rclone"),
        ("blobfuse2", "fuse.blobfuse2", "blobfuse2"),
        ("blobfuse", "fuse.blobfuse", "blobfuse2"),
        ("JuiceFS:foo-dev", "fuse.juicefs", "juicefs"),
        ("jane@host:/home/jane", "fuse.sshfs", "sshfs"),
        ("some-bucket", "fuse", "fuse"),
        ("some-bucket", "fuse.goofys", "goofys"),
        ("x", "fuse.lxcfs", "unknown"),
        ("//account.file.core.windows.net/share", "cifs", "azure-files"),
        ("//nas/share", "cifs", "cifs"),
        (f"//amznfsx.{FSX}/share", "smb3", "cifs"),
        ("tmpfs", "tmpfs", "tmpfs"),
        ("overlay", "overlay", "overlay"),
        ("hostshare", "9p", "9p"),
        ("myfs", "virtiofs", "virtiofs"),
        ("tank/data", "zfs", "zfs"),
        ("x", "newfs", "unknown"),
        ("/dev/no-such-disk", "ext4", "unknown"),
    ],
)
def test_mounts_without_a_device(source: str, file_system: str, kind: str) -> None:
    """The type and the source of a mount show its kind, and the reason repeats no source."""
    description = mounted(file_system, source)
    assert (description["kind"], description["stack"]) == (kind, [file_system])
    assert not re.search(r"jane|bucket|nas0|\d\.\d", description["why"])


@given(st.text(max_size=80), st.text(max_size=20))
def test_no_text_of_a_mount_table_breaks_it(source: str, file_system: str) -> None:
    """Every text gives a known kind."""
    assert mounted(file_system, source)["kind"] in KINDS


def test_a_disk_by_fuse_is_a_disk(sysfs: Sysfs) -> None:
    """NTFS and exFAT may be served by a program with a device below."""
    sysfs.virtio()
    assert disk_at(sysfs, "254:0", "fuseblk")["kind"] == "virtio"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("rw,noatime,rw,discard", "rw,noatime,discard"),
        (
            "rw,relatime,vers=4.1,rsize=1048576,wsize=1048576,namlen=255,hard,noresvport,proto=tcp,"
            "port=20376,timeo=600,retrans=2,sec=sys,clientaddr=172.31.92.143,local_lock=none,"
            "addr=172.31.84.29,nconnect=16",
            "rw,relatime,vers=4.1,rsize=1048576,wsize=1048576,namlen=255,hard,noresvport,proto=tcp,"
            "timeo=600,retrans=2,sec=sys,local_lock=none,nconnect=16",
        ),
        ("rw,cfgFile=/etc/beegfs/jane.conf,_netdev", "rw"),
        ("rw,username=jane,domain=ACME,uid=1000,password=x,cache=strict", "rw,cache=strict"),
        (
            "rw,lowerdir=/home/jane/l,upperdir=/home/jane/u,workdir=/w,xino=off,volatile",
            "rw,xino=off,volatile",
        ),
        ("ro,user_id=1000,group_id=1000,default_permissions", "ro,default_permissions"),
        ("rw,name=jane,secret=<hidden>,mds_namespace=acme,fsid=1-2", "rw"),
        (
            "rw,subvol=/home/jane,compress=zstd:3,space_cache=v2",
            "rw,compress=zstd:3,space_cache=v2",
        ),
        ("", ""),
    ],
)
def test_mount_options_that_are_kept(options: str, expected: str) -> None:
    """Options that affect figures are kept, and options with names are dropped."""
    assert kept_options(options.split(",")) == expected


@given(st.text(min_size=1, max_size=20), st.text(max_size=20))
def test_an_option_that_is_not_listed_is_dropped(name: str, value: str) -> None:
    """Unknown options of any file system are dropped."""
    assert kept_options([f"x-{name}={value}", f"x-{name}"]) == ""


@pytest.mark.parametrize("value", ["10.0.0.1", "fe80::1", "/home/jane", "jane@acme", "", "x" * 40])
def test_a_listed_option_with_an_odd_value_is_dropped(value: str) -> None:
    """A known option is dropped if its value is an address, a path or long."""
    assert kept_options([f"cache={value}"]) == ""


def test_kinds_have_names_of_their_own() -> None:
    """No two kinds have the same name, and an unknown kind is shown as it is."""
    names = [kind.name for kind in KINDS.values()]
    assert len(set(names)) == len(names)
    assert {kind.reach for kind in KINDS.values()} == set(get_args(Reach))
    assert (kind_name("holographic"), reach("holographic")) == ("holographic", "unknown")
    assert (kind_name("ebs"), reach("ebs")) == ("Amazon EBS", "network")


def test_lines_for_a_terminal() -> None:
    """The lines have kind, layers, sizes, settings, options and reason, if they are known."""
    target = {
        "kind": "ec2-instance-store",
        "name": "EC2 instance store",
        "why": "its model is Amazon EC2 NVMe Instance Storage",
        "stack": ["xfs", "md RAID (raid0) of 2", "2 × EC2 instance store"],
        "device": {
            "queue": {"scheduler": "none"},
            "link_mb_per_s": 3938.5,
            "rotational": True,
        },
        "file_system": "xfs",
        "mount_options": "rw,noatime",
        "total_bytes": 38 * 10**11,
        "free_bytes": 10**9,
        "read_ahead_kb": 4096,
    }
    assert target_lines("/mnt", target) == [
        "/mnt: EC2 instance store",
        "    xfs → md RAID (raid0) of 2 → 2 × EC2 instance store, 3.80 TB, 1 GB free",
        "    reads 4096 KiB ahead; scheduler none; a link of 3,938 MB/s; rotational",
        "    mounted rw, noatime",
        "    because its model is Amazon EC2 NVMe Instance Storage",
    ]
    unknown = {
        "kind": "unknown",
        "name": "unknown",
        "why": "no block device is behind it",
        "stack": [],
        "file_system": "proc",
        "mount_options": "",
    }
    assert target_lines("/proc", unknown) == [
        "/proc: unknown",
        "    proc",
        "    no block device is behind it",
    ]


def test_the_deepest_mount_counts_and_of_equals_the_last() -> None:
    """``/data2`` is not on ``/data``, and a later mount hides an earlier one."""
    table = [Mount(Path(point), kind) for point, kind in (("/data", "xfs"), ("/data", "tmpfs"))]
    assert mount_of(Path("/data/x"), table) == table[1]
    assert mount_of(Path("/data2/x"), table) is None
    root = Mount(Path("/"), "ext4")
    assert mount_of(Path("/data2/x"), [root, *table]) == root


def test_mounts_that_hold_no_data_are_left_out(tmp_path: Path) -> None:
    """Mounts of the kernel and of single files are left out; a path is listed once."""
    data, hosts = tmp_path / "data", tmp_path / "hosts"
    data.mkdir()
    hosts.touch()
    points = {
        "/": "ext4",
        "/proc": "proc",
        "/sys/fs/cgroup": "tmpfs",
        "/run/user/1000": "tmpfs",
        "/dev/shm": "tmpfs",
        "/dev/pts": "devpts",
        str(hosts): "ext4",
        str(data): "nfs4",
        str(tmp_path / "gone"): "ext4",
    }
    table = [Mount(Path(point), kind) for point, kind in points.items()]
    table += [Mount(data, "autofs"), Mount(data, "nfs4")]
    assert data_mounts(table) == sorted([Path("/"), Path("/dev/shm"), data])


def test_this_machine(tmp_path: Path) -> None:
    """Each mount of this machine has a kind; missing paths and loops of links are described."""
    for mount in mounts():
        assert describe_target(mount.point)["kind"] in KINDS
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    for path in (loop, tmp_path, tmp_path / "not" / "there"):
        description = describe_target(path)
        assert description["file_system"] == file_system(tmp_path) not in ("", "proc")
        assert str(tmp_path) not in json.dumps(description)
    assert file_system(Path("/proc/self")) == "proc"
    if file_system(Path("/dev/shm")) == "tmpfs":
        assert describe_target(Path("/dev/shm"))["kind"] == "tmpfs"
