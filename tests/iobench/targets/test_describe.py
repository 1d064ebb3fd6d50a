"""Paths as what they lie on: from a mount table and a sysfs, and from the real ones."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from iobench.mounts import file_system, mounts, parse_mount
from iobench.targets import KINDS, describe_target
from tests.iobench.targets.machines import PLANTED, Sysfs, link


def described(path: str, sysfs: Sysfs, *lines: str) -> dict[str, object]:
    """A path on a machine with these lines in its mount table."""
    table = [mount for line in lines if (mount := parse_mount(line)) is not None]
    assert len(table) == len(lines)
    found = describe_target(Path(path), table, sysfs.root)
    text = json.dumps(found)
    assert PLANTED not in text
    assert json.loads(text) == found
    return found


def test_an_instance_store_with_an_ebs_root(sysfs: Sysfs) -> None:
    """Each path by the deepest mount above it."""
    sysfs.partition(sysfs.nvme(0, "Amazon Elastic Block Store"), "nvme0n1p1", "259:1")
    sysfs.nvme(1, "Amazon EC2 NVMe Instance Storage")
    lines = (
        "1 0 259:1 / / rw,noatime - xfs /dev/nvme0n1p1 rw,attr2,inode64,logbufs=8",
        f"2 1 259:4 / /mnt/{PLANTED} rw,relatime - ext4 /dev/nvme1n1 rw,discard",
    )
    root = described("/no/such/path", sysfs, *lines)
    assert (root["kind"], root["name"], root["file_system"]) == ("ebs", "Amazon EBS", "xfs")
    assert root["mount_options"] == "rw,noatime,inode64,logbufs=8"
    assert root["read_ahead_kb"] == 128
    store = described(f"/mnt/{PLANTED}/data", sysfs, *lines)
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


def test_a_raid_of_instance_stores(sysfs: Sysfs) -> None:
    """As training machines have it; read-ahead is the RAID's."""
    sysfs.md("raid0", *(sysfs.nvme(i, "Amazon EC2 NVMe Instance Storage") for i in (1, 2)))
    sysfs.write("devices/virtual/block/md127/queue/read_ahead_kb", "4096")
    found = described("/x", sysfs, "1 0 9:127 / / rw - xfs /dev/md/0 rw")
    assert found["kind"] == "ec2-instance-store"
    assert found["stack"][1] == "md RAID (raid0) of 2"  # type: ignore[index]
    assert found["read_ahead_kb"] == 4096


def test_network_mounts_name_nobody(sysfs: Sysfs) -> None:
    """Servers, buckets, users and file systems' identities stay where they are."""
    sysfs.write("class/bdi/0:52/read_ahead_kb", "128")
    line = (
        f"1 0 0:52 / / rw,relatime shared:1 - nfs4 {PLANTED}.example.org:/{PLANTED} "
        f"rw,vers=4.1,rsize=1048576,hard,clientaddr=10.0.0.1,addr=10.0.0.2"
    )
    found = described("/x", sysfs, line)
    assert (found["kind"], found["read_ahead_kb"]) == ("nfs", 128)
    assert found["mount_options"] == "rw,relatime,vers=4.1,rsize=1048576,hard"
    for source, mounted_as, kind in (
        ("fs-0a1b2c3d.efs.us-east-1.amazonaws.com:/", "nfs4", "efs"),
        ("mountpoint-s3", "fuse", "mountpoint-s3"),
        (PLANTED, "fuse", "fuse"),
        (PLANTED, "fuse.gcsfuse", "gcsfuse"),
        (f"//acme/{PLANTED}", "cifs", "cifs"),
        ("beegfs_nodev", "beegfs", "beegfs"),
    ):
        options = f"rw,user_id=0,username={PLANTED},cfgFile=/etc/{PLANTED}"
        found = described("/x", sysfs, f"1 0 0:52 / / rw - {mounted_as} {source} {options}")
        assert found["kind"] == kind
        assert "0a1b2c3d" not in json.dumps(found)


def test_btrfs_over_its_devices(sysfs: Sysfs) -> None:
    """The mount's own number is that of no device."""
    for i in (0, 1):
        disk = sysfs.nvme(i, "Some SSD")
        link(sysfs.root / "fs/btrfs" / PLANTED / "devices" / disk.name, disk)
    line = "1 0 0:33 /@home / rw - btrfs /dev/nvme0n1 rw,compress=zstd:3,subvol=/@home"
    found = described("/x", sysfs, line)
    assert (found["kind"], found["mount_options"]) == ("nvme", "rw,compress=zstd:3")
    assert found["stack"] == ["btrfs", "volume of 2", "2 × NVMe (Some SSD)"]


def test_a_loop_device_and_an_overlay_below(sysfs: Sysfs, tmp_path: Path) -> None:
    """Followed as long as what they lie on is seen from here."""
    sysfs.nvme(0, "Amazon Elastic Block Store")
    image = tmp_path / PLANTED
    image.touch()
    sysfs.loop(str(image))
    root = "1 0 259:0 / / rw - ext4 /dev/nvme0n1 rw"
    loop = "2 1 7:0 / /loop rw - xfs /dev/loop0 rw"
    upper = f"rw,lowerdir=/l,upperdir={tmp_path},workdir=/w"
    layers = f"3 1 0:40 / /merged rw - overlay overlay {upper}"
    found = described("/loop/x", sysfs, root, loop, layers)
    assert (found["kind"], found["stack"][1:3]) == ("ebs", ["loop device", "ext4"])  # type: ignore[index]
    found = described("/merged/x", sysfs, root, loop, layers)
    assert found["kind"] == "overlay"
    assert found["device"]["model"] == "Amazon Elastic Block Store"  # type: ignore[index]
    image.unlink()
    assert described("/loop/x", sysfs, root, loop)["kind"] == "unknown"
    elsewhere = layers.replace(str(tmp_path), f"/nowhere/{PLANTED}")
    assert described("/merged/x", sysfs, root, elsewhere)["stack"] == ["overlay"]


def test_a_virtual_disk_does_not_rotate(sysfs: Sysfs) -> None:
    """Linux says so of every one whose driver does not say otherwise; a drive's word counts."""
    sysfs.virtio()
    sysfs.sata("WDC WD40EFRX", rotational=True)
    found = described("/x", sysfs, "1 0 254:0 / / rw - ext4 /dev/vda rw")
    assert found["kind"] == "virtio"
    assert "rotational" not in found["device"]  # type: ignore[operator]
    drive = described("/x", sysfs, "1 0 8:0 / / rw - ext4 /dev/sda rw")
    assert drive["device"]["rotational"] is True  # type: ignore[index]


def test_a_device_that_sysfs_does_not_show(sysfs: Sysfs) -> None:
    """There is one: it is not said that there is none."""
    found = described("/data", sysfs, "1 0 9:0 / /data rw - xfs /dev/md0 rw")
    assert found["kind"] == "unknown"
    assert found["why"] == "it lies on a block device that /sys does not show from here"


def test_no_table_and_no_sysfs(sysfs: Sysfs, tmp_path: Path) -> None:
    """Room is told all the same; the rest is unknown, with why."""
    found = describe_target(tmp_path, [], sysfs.root)
    assert (found["kind"], found["file_system"]) == ("unknown", "unknown")
    assert found["total_bytes"] >= found["free_bytes"] > 0
    line = "1 0 254:0 / / rw - ext4 /dev/vda rw"
    assert described("/x", sysfs, line)["kind"] == "unknown"


class TestHere:
    def test_this_machines_own(self, tmp_path: Path) -> None:
        """The file system that the mount table gives, and a kind of the table."""
        found = describe_target(tmp_path)
        assert found["file_system"] == file_system(tmp_path)
        assert found["kind"] in KINDS
        assert found["why"]
        assert str(tmp_path) not in json.dumps(found)

    def test_memory(self) -> None:
        """Shared memory is a tmpfs, where there is any."""
        if file_system(Path("/dev/shm")) != "tmpfs":
            pytest.skip("/dev/shm is no tmpfs here")
        assert describe_target(Path("/dev/shm"))["kind"] == "tmpfs"

    @pytest.fixture
    def loop_mount(self, tmp_path: Path) -> Iterator[Path]:
        """An ext4 in a file, mounted."""
        if os.geteuid() != 0 or not shutil.which("mkfs.ext4"):
            pytest.skip("only root may mount, and mkfs.ext4 is needed")
        image, point = tmp_path / f"{PLANTED}.img", tmp_path / "mounted"
        with image.open("wb") as file:
            file.truncate(16 * 2**20)
        point.mkdir()
        subprocess.run(["mkfs.ext4", "-q", image], check=True, capture_output=True)
        done = subprocess.run(
            ["mount", "-o", "loop,noatime", image, point], check=False, capture_output=True
        )
        if done.returncode:
            pytest.skip(f"a loop device cannot be mounted here: {done.stderr.decode()}")
        yield point
        subprocess.run(["umount", point], check=True)

    def test_a_file_as_a_device(self, loop_mount: Path, tmp_path: Path) -> None:
        """It is what its file lies on, with the loop device told on the way."""
        found, below = describe_target(loop_mount), describe_target(tmp_path)
        assert (found["file_system"], found["kind"]) == ("ext4", below["kind"])
        assert found["stack"] == ["ext4", "loop device", *below["stack"]]
        assert "noatime" in found["mount_options"].split(",")
        assert PLANTED not in json.dumps(found)

    def test_layers(self, tmp_path: Path) -> None:
        """A real overlay: the disk below its upper directory is seen from here."""
        if os.geteuid() != 0:
            pytest.skip("only root may mount")
        for name in ("lower", "upper", "work", "merged"):
            (tmp_path / name).mkdir()
        folders = [f"{name}dir={tmp_path / name}" for name in ("lower", "upper", "work")]
        command = ["mount", "-t", "overlay", "overlay", "-o", ",".join(folders)]
        done = subprocess.run(
            [*command, str(tmp_path / "merged")], check=False, capture_output=True
        )
        if done.returncode:
            pytest.skip(f"no overlay can be mounted here: {done.stderr.decode()}")
        try:
            found, below = describe_target(tmp_path / "merged"), describe_target(tmp_path)
        finally:
            subprocess.run(["umount", tmp_path / "merged"], check=True)
        assert (found["file_system"], found["kind"]) == ("overlay", "overlay")
        assert found["stack"] == ["overlay", *below["stack"]]
        assert str(tmp_path) not in json.dumps(found)

    def test_links_in_a_circle(self, tmp_path: Path) -> None:
        """They lie where they lie."""
        loop = tmp_path / "loop"
        loop.symlink_to(loop)
        assert describe_target(loop)["file_system"] == file_system(tmp_path)

    def test_every_mount_of_this_machine(self) -> None:
        """None of them breaks it."""
        for mount in mounts():
            assert describe_target(mount.point)["kind"] in KINDS
