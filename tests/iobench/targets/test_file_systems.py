"""Kinds that a mount's type and source tell. Lines are as real mount tables have them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.targets.description import Device, Mounted
from iobench.targets.file_systems import of_mount
from iobench.targets.kinds import KINDS

EFS = "fs-5d7edb06.efs.eu-central-1.amazonaws.com"
FSX = "fs-0123456789abcdef0.fsx.us-east-1.amazonaws.com"


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
        ("JuiceFS:foo-dev", "fuse.juicefs", "juicefs"),
        ("jane@host:/home/jane", "fuse.sshfs", "sshfs"),
        ("some-bucket", "fuse", "fuse"),
        ("some-bucket", "fuse.goofys", "goofys"),
        ("x", "fuse.lxcfs", "unknown"),
        ("//account.file.core.windows.net/share", "cifs", "azure-files"),
        ("//nas/share", "cifs", "cifs"),
        (f"//amznfsx.{FSX}/share", "smb3", "cifs"),
        ("tmpfs", "tmpfs", "tmpfs"),
        ("hostshare", "9p", "9p"),
        ("myfs", "virtiofs", "virtiofs"),
        ("tank/data", "zfs", "zfs"),
    ],
)
def test_what_stands_in_mount_tables(source: str, file_system: str, kind: str) -> None:
    """Each is told, or is what its type alone says."""
    found = of_mount(Mounted(file_system, source))
    assert found is not None
    assert found.kind == kind
    assert found.kind in KINDS


@pytest.mark.parametrize("file_system", ["ext4", "xfs", "btrfs", "overlay", "proc", "autofs"])
def test_others_are_told_by_what_lies_below(file_system: str) -> None:
    """Type and source say nothing of a disk."""
    assert of_mount(Mounted(file_system, "/dev/sda1")) is None


def test_a_disk_by_fuse_is_a_disk() -> None:
    """NTFS and exFAT may be a program's, with a device below."""
    disk = Device("sda", transport="usb")
    assert of_mount(Mounted("fuseblk", "/dev/sda1", devices=(disk,))) is None


def test_a_proxy_on_this_machine_is_said_to_be_one() -> None:
    """EFS's mount helper makes one; that it did is not guessed."""
    found = of_mount(Mounted("nfs4", "127.0.0.1:/"))
    assert found is not None
    assert "whose server that reaches cannot be told" in found.why
    told = of_mount(Mounted("nfs4", "127.0.0.1:/", by_efs_helper=True))
    assert told is not None
    assert (told.kind, told.why) == (
        "efs",
        "NFS by the proxy of EFS's mount helper on this machine",
    )
    other = of_mount(Mounted("nfs4", "10.0.0.1:/", by_efs_helper=True))
    assert other is not None
    assert other.kind == "nfs"


names = st.text(st.characters(categories=["Ll", "Nd"], max_codepoint=127), min_size=6, max_size=12)


@given(names, st.sampled_from(["nfs", "nfs4", "lustre", "cifs", "fuse", "fuse.s3fs", "fuse.x9"]))
def test_no_source_is_repeated(name: str, file_system: str) -> None:
    """Hosts, buckets, accounts and users stand in sources."""
    source = f"{name}.example.com:/{name}"
    found = of_mount(Mounted(file_system, source))
    assert found is not None
    assert source not in found.why
    assert f"{name}.example.com" not in found.why


@given(st.text(max_size=80), st.text(max_size=20))
def test_no_text_breaks_it(source: str, file_system: str) -> None:
    """A kind of the table, or none."""
    found = of_mount(Mounted(file_system, source))
    assert found is None or found.kind in KINDS
