"""PURE. The kinds of storage that are told apart, and what each is for a reader of figures."""

from __future__ import annotations

from typing import Literal, NamedTuple

Reach = Literal["memory", "local", "network", "layers", "unknown"]
"""Where the bytes come from: this machine's memory, a device in it, over a network, another file
system below that cannot be seen, or not to be told (a hypervisor's disk)."""


class Kind(NamedTuple):
    """``name`` is what people call it. ``objects``: each file is an object of a store."""

    name: str
    reach: Reach
    objects: bool = False


UNKNOWN = "unknown"

KINDS = {
    "ebs": Kind("Amazon EBS", "network"),
    "ec2-instance-store": Kind("EC2 instance store", "local"),
    "google-persistent-disk": Kind("Google Persistent Disk or Hyperdisk", "network"),
    "google-local-ssd": Kind("Google Local SSD", "local"),
    "azure-managed-disk": Kind("Azure managed disk", "network"),
    "azure-local-disk": Kind("Azure local NVMe disk", "local"),
    "nvme": Kind("NVMe", "local"),
    "nvme-fabric": Kind("NVMe over a network", "network"),
    "sata": Kind("SATA", "local"),
    "sas": Kind("SAS", "local"),
    "usb": Kind("USB", "local"),
    "mmc": Kind("SD card or eMMC", "local"),
    "pmem": Kind("persistent memory", "local"),
    "iscsi": Kind("iSCSI", "network"),
    "fibre-channel": Kind("Fibre Channel", "network"),
    "nbd": Kind("network block device", "network"),
    "rbd": Kind("Ceph RBD", "network"),
    "drbd": Kind("DRBD", "network"),
    "virtio": Kind("virtual disk (virtio)", "unknown"),
    "xen": Kind("virtual disk (Xen)", "unknown"),
    "virtual": Kind("virtual disk", "unknown"),
    "ram-disk": Kind("RAM disk", "memory"),
    "mixed": Kind("several kinds of device", "unknown"),
    "tmpfs": Kind("tmpfs: memory", "memory"),
    "ramfs": Kind("ramfs: memory", "memory"),
    "hugetlbfs": Kind("hugetlbfs: memory", "memory"),
    "overlay": Kind("overlay of file systems", "layers"),
    "zfs": Kind("ZFS", "unknown"),
    "nfs": Kind("NFS", "network"),
    "efs": Kind("Amazon EFS", "network"),
    "fsx-nfs": Kind("Amazon FSx by NFS", "network"),
    "lustre": Kind("Lustre", "network"),
    "fsx-lustre": Kind("Amazon FSx for Lustre", "network"),
    "beegfs": Kind("BeeGFS", "network"),
    "gpfs": Kind("IBM Storage Scale (GPFS)", "network"),
    "wekafs": Kind("WekaFS", "network"),
    "ceph": Kind("CephFS", "network"),
    "glusterfs": Kind("GlusterFS", "network"),
    "afs": Kind("AFS", "network"),
    "cifs": Kind("SMB share", "network"),
    "azure-files": Kind("Azure Files by SMB", "network"),
    "sshfs": Kind("sshfs", "network"),
    "9p": Kind("9p: a host's directory", "unknown"),
    "virtiofs": Kind("virtiofs: a host's directory", "unknown"),
    "mountpoint-s3": Kind("Mountpoint for Amazon S3", "network", objects=True),
    "s3fs": Kind("s3fs", "network", objects=True),
    "goofys": Kind("goofys", "network", objects=True),
    "geesefs": Kind("GeeseFS", "network", objects=True),
    "gcsfuse": Kind("Cloud Storage FUSE", "network", objects=True),
    "rclone": Kind("rclone mount", "network", objects=True),
    "blobfuse2": Kind("BlobFuse2", "network", objects=True),
    "juicefs": Kind("JuiceFS", "network"),
    "alluxio": Kind("Alluxio", "network"),
    "fuse": Kind("FUSE, of a program that does not give its name", "unknown"),
    UNKNOWN: Kind("unknown", "unknown"),
}


def kind_name(kind: str) -> str:
    """In words; the kind itself where a newer version wrote it."""
    return KINDS[kind].name if kind in KINDS else kind


def reach(kind: str) -> Reach:
    """Where its bytes come from; ``unknown`` also for a kind of a newer version."""
    return KINDS[kind].reach if kind in KINDS else "unknown"
