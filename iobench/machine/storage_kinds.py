"""PURE. Kinds of storage, and the patterns that recognise a mount or a disk as a kind.

How the mount table shows kinds of storage:

- EFS by its DNS name, ``fs-ID.efs.REGION.amazonaws.com:/`` of type ``nfs4``
  (https://docs.aws.amazon.com/efs/latest/ug/mounting-fs-mount-cmd-dns-name.html). Its mount
  helper puts a proxy of this machine in between, and the source is ``127.0.0.1:/``.
- FSx for Lustre as ``lustre``. ``mount.lustre`` resolves names, so that its source is usually
  ``ADDRESS@tcp:/NAME``, as for any other Lustre.
- Mountpoint for Amazon S3: source ``mountpoint-s3``, type ``fuse`` (``FSName`` in
  awslabs/mountpoint-s3). s3fs, gcsfuse, rclone, JuiceFS, GeeseFS and others: a type ``fuse.NAME``.
- goofys: the bucket as source and a plain ``fuse`` (kahing/goofys), as other programs may have.
- BeeGFS: ``beegfs_nodev`` of type ``beegfs``.

Models of disks: ``Amazon Elastic Block Store`` and ``Amazon EC2 NVMe Instance Storage``
(https://docs.aws.amazon.com/ebs/latest/userguide/nvme-ebs-volumes.html and
https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ssd-instance-store.html); ``nvme_card-pd``
and ``nvme_card`` with a number, SCSI ``PersistentDisk`` and ``EphemeralDisk`` of vendor Google
(udev rules of GoogleCloudPlatform/guest-configs); ``MSFT NVMe Accelerator`` and ``Microsoft NVMe
Direct Disk`` (README of Azure/azure-vm-utils). The storage behind a virtio or Xen disk cannot be
seen, and does not follow from the name of the cloud. It may be EBS.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, NamedTuple

from iobench.machine.block_devices import Disk

Reach = Literal["memory", "local", "network", "layers", "unknown"]
"""Where bytes come from: the memory of this machine, a device in it, a network, another file system
that cannot be seen (``layers``), or unknown (a disk of a hypervisor)."""


class Kind(NamedTuple):
    """A kind of storage.

    Attributes:
        name: the name for readers.
        reach: where its bytes come from.
    """

    name: str
    reach: Reach


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
    "mountpoint-s3": Kind("Mountpoint for Amazon S3", "network"),
    "s3fs": Kind("s3fs", "network"),
    "goofys": Kind("goofys", "network"),
    "geesefs": Kind("GeeseFS", "network"),
    "gcsfuse": Kind("Cloud Storage FUSE", "network"),
    "rclone": Kind("rclone mount", "network"),
    "blobfuse2": Kind("BlobFuse2", "network"),
    "juicefs": Kind("JuiceFS", "network"),
    "alluxio": Kind("Alluxio", "network"),
    "fuse": Kind("FUSE, unnamed program", "unknown"),
    UNKNOWN: Kind("unknown", "unknown"),
}

_HIDDEN = "the storage of the hypervisor behind it cannot be seen from here"
_AWS = r"\.amazonaws\.com(?:\.cn)?"
_EFS = rf"(?:[a-z0-9-]+\.)?fs-[0-9a-f]+\.efs\.[a-z0-9-]+{_AWS}"
_FSX = rf"(?:[a-z0-9-]+\.)*fs-[0-9a-f]+\.fsx\.[a-z0-9-]+{_AWS}"
_HERE = r"(?:127\.0\.0\.1|localhost|\[?::1\]?):/.*"
_NFS_PROXY = (
    "NFS by a proxy on this machine, as EFS's mount helper sets one up; the server behind it "
    "cannot be seen"
)

# Patterns of the type and of the source of a mount, its kind, and the evidence. The first row that
# matches counts. An empty kind stands for the type itself, without "fuse.".
_MOUNTS = (
    (r"tmpfs|ramfs", r".*", "", "a {} is memory"),
    (r"hugetlbfs", r".*", "", "its type is memory"),
    (
        r"overlay|aufs",
        r".*",
        "overlay",
        "a container's layers; the disk below them cannot be seen from here",
    ),
    (r"beegfs|gpfs|wekafs|ceph|afs", r".*", "", "its type is {}"),
    (
        r"9p|virtiofs",
        r".*",
        "",
        "its type is {}; the storage of the host is not visible",
    ),
    (r"zfs", r".*", "", "its type is zfs; the devices of its pool are not visible"),
    (r"nfs4?", rf"{_EFS}:/.*", "efs", "NFS from an address of EFS"),
    (r"nfs4?", rf"{_FSX}:/.*", "fsx-nfs", "NFS from an address of FSx"),
    (r"nfs4?", _HERE, "nfs", _NFS_PROXY),
    (r"nfs4?", r".*", "nfs", "its type is NFS; the owner of the server is unknown"),
    (r"lustre", rf"(?:.*[:,])?{_FSX}[@:,].*", "fsx-lustre", "Lustre from an address of FSx"),
    (
        r"lustre",
        r".*",
        "lustre",
        "its type is lustre; its servers have numbers, as those of FSx have",
    ),
    (
        r"cifs|smb3|smbfs",
        r"//[^/]*\.file\.core\.windows\.net(?:/.*)?",
        "azure-files",
        "SMB from an address of Azure Files",
    ),
    (r"cifs|smb3|smbfs", rf"//{_FSX}(?:/.*)?", "cifs", "SMB from an address of FSx"),
    (r"cifs|smb3|smbfs", r".*", "cifs", "its type is SMB"),
    (r"fuse\.blobfuse", r".*", "blobfuse2", "its type is {}"),
    (r"fuse\.alluxio-fuse", r".*", "alluxio", "its type is {}"),
    (r"fuse\.ceph-fuse", r".*", "ceph", "its type is {}"),
    (
        r"fuse\.(mountpoint-s3|s3fs|goofys|geesefs|gcsfuse|rclone|blobfuse2|juicefs|alluxio|sshfs"
        r"|glusterfs)",
        r".*",
        "",
        "its type is {}",
    ),
    (
        r"fuse(?:blk)?(\..*)?",
        r"mountpoint-s3",
        "mountpoint-s3",
        "FUSE with the source mountpoint-s3",
    ),
    (r"fuse(?:blk)?\..+", r".*", UNKNOWN, "FUSE of a program that iobench does not know"),
    (
        r"fuse(?:blk)?\.?",
        r".*",
        "fuse",
        "FUSE mount that does not name its program, such as goofys",
    ),
)
_MODEL = "its model is {}"
# Patterns of the name, vendor and model of a disk, its kind, and the evidence. The first row that
# matches counts.
_DISKS = (
    (r".*", r".*", r"Amazon Elastic Block Store", "ebs", _MODEL),
    (r".*", r".*", r"Amazon EC2 NVMe Instance Storage", "ec2-instance-store", _MODEL),
    (r".*", r".*", r"nvme_card-pd", "google-persistent-disk", _MODEL),
    (r".*", r".*", r"nvme_card\d*", "google-local-ssd", _MODEL),
    (r".*", r".*", r"MSFT NVMe Accelerator.*", "azure-managed-disk", _MODEL),
    (r".*", r".*", r"Microsoft NVMe Direct Disk.*", "azure-local-disk", _MODEL),
    (
        r".*",
        r".*",
        r"QEMU .*|VMware .*|Virtual Disk|VBOX .*|VIRTUAL-DISK|Parallels .*|Bhyve .*",
        "virtual",
        f"{_MODEL}: {_HIDDEN}",
    ),
    (
        r".*",
        r"Google",
        r"PersistentDisk",
        "google-persistent-disk",
        "its vendor is Google, its model {}",
    ),
    (r".*", r"Google", r"EphemeralDisk", "google-local-ssd", "its vendor is Google, its model {}"),
    (r"zram\d+|ram\d+", r".*", r".*", "ram-disk", "a RAM disk is memory"),
    (r"nbd\d+", r".*", r".*", "nbd", "a network block device"),
    (r"rbd\d+", r".*", r".*", "rbd", "a Ceph block device"),
    (r"drbd\d+", r".*", r".*", "drbd", "a DRBD device"),
    (r"pmem[\d.s]+", r".*", r".*", "pmem", "a persistent memory device"),
    (r"mmcblk\d+", r".*", r".*", "mmc", "an SD card or eMMC"),
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
    "virtio": ("virtio", f"a virtio disk: {_HIDDEN}"),
    "virtio-scsi": ("virtio", f"a disk on virtio-scsi: {_HIDDEN}"),
    "xen": ("xen", f"a Xen disk: {_HIDDEN}"),
    "hyper-v": ("virtual", f"a disk of Hyper-V: {_HIDDEN}"),
}
_UNKNOWN_DISK = "a block device of a model and a connection that iobench does not know"

# Options of all file systems; of ext4, xfs, btrfs and f2fs; of nfs, lustre, cifs, 9p and ceph; of
# overlay and FUSE.
_FLAG_NAMES = """
    ro rw sync async dirsync atime noatime relatime strictatime nodiratime lazytime
    discard nodiscard barrier nobarrier delalloc nodelalloc dax dioread_lock dioread_nolock
    journal_checksum largeio nolargeio swalloc inode32 inode64 ssd nossd ssd_spread nodatacow
    nodatasum autodefrag noautodefrag compress nocompress noacl flush_merge
    hard soft softerr ac noac cto nocto lock nolock fsc sharecache nosharecache noresvport
    flock noflock localflock lazystatfs checksum nochecksum lruresize encrypt
    multichannel mfsymlinks posix nodcache dcache rbytes norbytes
    volatile metacopy userxattr default_permissions allow_other
"""
_VALUED_NAMES = """
    barrier commit data stripe journal_async_commit auto_da_alloc init_itable
    logbufs logbsize allocsize sunit swidth dax compress compress-force space_cache
    thread_pool max_inline active_logs
    vers nfsvers minorversion proto rsize wsize bsize nconnect max_connect timeo retrans
    acregmin acregmax acdirmin acdirmax actimeo lookupcache local_lock sec namlen
    cache msize trans max_credits max_channels rasize caps_max readdir_max_entries
    max_read blksize redirect_dir index xino metacopy size nr_inodes huge
"""
_FLAGS, _VALUED = frozenset(_FLAG_NAMES.split()), frozenset(_VALUED_NAMES.split())
# Values that are paths or addresses are dropped. An address of IPv6 has two colons.
_VALUE = re.compile(r"(?!\d+\.\d+\.\d+\.\d+)[A-Za-z0-9][A-Za-z0-9.+-]{0,15}(?::[A-Za-z0-9+-]+)?")


def kind_name(kind: str) -> str:
    """Return the name of a kind; a kind of a newer version is its own name."""
    return KINDS[kind].name if kind in KINDS else kind


def reach(kind: str) -> Reach:
    """Return where the bytes of a kind come from; ``unknown`` for a kind of a newer version."""
    return KINDS[kind].reach if kind in KINDS else "unknown"


def has_server(file_system: str) -> bool:
    """Return whether a file system has a server, or a FUSE program, with a cache of its own."""
    kind = kind_of_mount(file_system, "")
    is_remote = kind is not None and reach(kind[0]) == "network"
    return is_remote or file_system.startswith("fuse")


def kind_of_mount(file_system: str, source: str) -> tuple[str, str] | None:
    """Return the kind of a mount by its type and source, and the evidence; None if unknown."""
    for types, sources, kind, why in _MOUNTS:
        if re.fullmatch(types, file_system) and re.fullmatch(sources, source, re.I | re.S):
            return kind or file_system.removeprefix("fuse."), why.format(file_system)
    return None


def kind_of_disk(disk: Disk) -> tuple[str, str]:
    """Return the kind of a disk, and the evidence."""
    for name, vendor, model, kind, why in _DISKS:
        if (
            re.fullmatch(name, disk.name)
            and re.fullmatch(vendor, disk.vendor)
            and re.fullmatch(model, disk.model)
        ):
            return kind, why.format(disk.model)
    return _TRANSPORTS.get(disk.transport, (UNKNOWN, _UNKNOWN_DISK))


def kept_options(options: Iterable[str]) -> str:
    """Return the mount options that affect figures, each once: ``rw,noatime,rsize=1048576``.

    ``addr=``, ``username=``, ``cfgFile=``, ``lowerdir=`` and others contain addresses, paths and
    names of people. So this module lists the options that are kept, and drops all others.
    """
    kept = dict[str, None]()
    for option in options:
        name, equals, value = option.partition("=")
        is_kept = option in _FLAGS
        if name in _VALUED and equals:
            is_kept = _VALUE.fullmatch(value) is not None
        if is_kept:
            kept[option] = None
    return ",".join(kept)
