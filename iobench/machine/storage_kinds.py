"""PURE. Kinds of storage, and the patterns that recognise a mount or a disk as a kind.

The mount table shows these kinds of storage as follows:

- EFS has the type ``nfs4``, and its DNS name ``fs-ID.efs.REGION.amazonaws.com:/`` as the source
  (https://docs.aws.amazon.com/efs/latest/ug/mounting-fs-mount-cmd-dns-name.html). If its mount
  helper is used, the source is ``127.0.0.1:/``, a proxy on this machine.
- FSx for Lustre has the type ``lustre``. ``mount.lustre`` resolves names, so the source is usually
  ``ADDRESS@tcp:/NAME``, as for any other Lustre.
- Mountpoint for Amazon S3 has the type ``fuse`` and the source ``mountpoint-s3`` (``FSName`` in
  awslabs/mountpoint-s3). s3fs, gcsfuse, rclone, JuiceFS, GeeseFS and others have the type
  ``fuse.NAME``.
- goofys has the type ``fuse``, as other programs may have, and the bucket as the source
  (kahing/goofys).
- BeeGFS has the type ``beegfs`` and the source ``beegfs_nodev``.

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
"""Where the bytes of a storage come from: the memory of this machine, a device in this machine, a
network, file systems below that cannot be seen (``layers``), or unknown (such as a disk of a
hypervisor)."""


class Kind(NamedTuple):
    """A kind of storage.

    Attributes:
        name: the name for readers.
        reach: where its bytes come from.
    """

    name: str
    reach: Reach


class RecognisedKind(NamedTuple):
    """The kind of a mount or of a disk.

    Attributes:
        kind: a key of ``KINDS``.
        why: the evidence for this kind, as the end of a sentence that begins with "because".
    """

    kind: str
    why: str


class _MountPattern(NamedTuple):
    """A pattern of mounts. Both regular expressions must match the whole text.

    Attributes:
        types: a regular expression for the type of the file system.
        why: the evidence; ``{}`` stands for the type.
        sources: a regular expression for the source of the mount. It ignores case.
        kind: the kind; empty if the type, without ``fuse.``, is the kind.
    """

    types: str
    why: str
    sources: str = r".*"
    kind: str = ""


class _DiskPattern(NamedTuple):
    """A pattern of disks. All regular expressions must match the whole text.

    Attributes:
        kind: the kind.
        why: the evidence; ``{}`` stands for the model.
        names: a regular expression for the name of the device.
        vendors: a regular expression for the vendor.
        models: a regular expression for the model.
    """

    kind: str
    why: str
    names: str = r".*"
    vendors: str = r".*"
    models: str = r".*"


UNKNOWN = "unknown"
"""The kind of a storage that is not recognised."""


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

# Parts of the patterns and of the evidence below.
_HIDDEN = "the storage of the hypervisor behind it cannot be seen from here"
_AWS = r"\.amazonaws\.com(?:\.cn)?"
_EFS = rf"(?:[a-z0-9-]+\.)?fs-[0-9a-f]+\.efs\.[a-z0-9-]+{_AWS}"
_FSX = rf"(?:[a-z0-9-]+\.)*fs-[0-9a-f]+\.fsx\.[a-z0-9-]+{_AWS}"
_HERE = r"(?:127\.0\.0\.1|localhost|\[?::1\]?):/.*"
_NFS_PROXY = (
    "NFS by a proxy on this machine, as EFS's mount helper sets one up; the server behind it "
    "cannot be seen"
)

_MOUNTS = (
    _MountPattern(types=r"tmpfs|ramfs", why="a {} is memory"),
    _MountPattern(types=r"hugetlbfs", why="its type is memory"),
    _MountPattern(
        types=r"overlay|aufs",
        kind="overlay",
        why="a container's layers; the disk below them cannot be seen from here",
    ),
    _MountPattern(types=r"beegfs|gpfs|wekafs|ceph|afs", why="its type is {}"),
    _MountPattern(
        types=r"9p|virtiofs", why="its type is {}; the storage of the host is not visible"
    ),
    _MountPattern(types=r"zfs", why="its type is zfs; the devices of its pool are not visible"),
    _MountPattern(
        types=r"nfs4?", sources=rf"{_EFS}:/.*", kind="efs", why="NFS from an address of EFS"
    ),
    _MountPattern(
        types=r"nfs4?", sources=rf"{_FSX}:/.*", kind="fsx-nfs", why="NFS from an address of FSx"
    ),
    _MountPattern(types=r"nfs4?", sources=_HERE, kind="nfs", why=_NFS_PROXY),
    _MountPattern(
        types=r"nfs4?", kind="nfs", why="its type is NFS; the owner of the server is unknown"
    ),
    _MountPattern(
        types=r"lustre",
        sources=rf"(?:.*[:,])?{_FSX}[@:,].*",
        kind="fsx-lustre",
        why="Lustre from an address of FSx",
    ),
    _MountPattern(
        types=r"lustre",
        kind="lustre",
        why="its type is lustre; the mount does not show whether it is FSx",
    ),
    _MountPattern(
        types=r"cifs|smb3|smbfs",
        sources=r"//[^/]*\.file\.core\.windows\.net(?:/.*)?",
        kind="azure-files",
        why="SMB from an address of Azure Files",
    ),
    _MountPattern(
        types=r"cifs|smb3|smbfs",
        sources=rf"//{_FSX}(?:/.*)?",
        kind="cifs",
        why="SMB from an address of FSx",
    ),
    _MountPattern(types=r"cifs|smb3|smbfs", kind="cifs", why="its type is SMB"),
    _MountPattern(types=r"fuse\.blobfuse", kind="blobfuse2", why="its type is {}"),
    _MountPattern(types=r"fuse\.alluxio-fuse", kind="alluxio", why="its type is {}"),
    _MountPattern(types=r"fuse\.ceph-fuse", kind="ceph", why="its type is {}"),
    _MountPattern(
        types=r"fuse\.(mountpoint-s3|s3fs|goofys|geesefs|gcsfuse|rclone|blobfuse2|juicefs|alluxio|sshfs"
        r"|glusterfs)",
        why="its type is {}",
    ),
    _MountPattern(
        types=r"fuse(?:blk)?(\..*)?",
        sources=r"mountpoint-s3",
        kind="mountpoint-s3",
        why="FUSE with the source mountpoint-s3",
    ),
    _MountPattern(
        types=r"fuse(?:blk)?\..+", kind=UNKNOWN, why="FUSE of a program that iobench does not know"
    ),
    _MountPattern(
        types=r"fuse(?:blk)?\.?",
        kind="fuse",
        why="FUSE mount that does not name its program, such as goofys",
    ),
)
"""The first pattern that matches a mount decides its kind."""

_MODEL = "its model is {}"
_DISKS = (
    _DiskPattern(models=r"Amazon Elastic Block Store", kind="ebs", why=_MODEL),
    _DiskPattern(models=r"Amazon EC2 NVMe Instance Storage", kind="ec2-instance-store", why=_MODEL),
    _DiskPattern(models=r"nvme_card-pd", kind="google-persistent-disk", why=_MODEL),
    _DiskPattern(models=r"nvme_card\d*", kind="google-local-ssd", why=_MODEL),
    _DiskPattern(models=r"MSFT NVMe Accelerator.*", kind="azure-managed-disk", why=_MODEL),
    _DiskPattern(models=r"Microsoft NVMe Direct Disk.*", kind="azure-local-disk", why=_MODEL),
    _DiskPattern(
        models=r"QEMU .*|VMware .*|Virtual Disk|VBOX .*|VIRTUAL-DISK|Parallels .*|Bhyve .*",
        kind="virtual",
        why=f"{_MODEL}: {_HIDDEN}",
    ),
    _DiskPattern(
        vendors=r"Google",
        models=r"PersistentDisk",
        kind="google-persistent-disk",
        why="its vendor is Google, its model {}",
    ),
    _DiskPattern(
        vendors=r"Google",
        models=r"EphemeralDisk",
        kind="google-local-ssd",
        why="its vendor is Google, its model {}",
    ),
    _DiskPattern(names=r"zram\d+|ram\d+", kind="ram-disk", why="a RAM disk is memory"),
    _DiskPattern(names=r"nbd\d+", kind="nbd", why="a network block device"),
    _DiskPattern(names=r"rbd\d+", kind="rbd", why="a Ceph block device"),
    _DiskPattern(names=r"drbd\d+", kind="drbd", why="a DRBD device"),
    _DiskPattern(names=r"pmem[\d.s]+", kind="pmem", why="a persistent memory device"),
    _DiskPattern(names=r"mmcblk\d+", kind="mmc", why="an SD card or eMMC"),
)
"""The first pattern that matches a disk decides its kind."""

_TRANSPORTS = {
    "pcie": RecognisedKind("nvme", "an NVMe drive on PCI Express"),
    "nvme": RecognisedKind("nvme", "an NVMe drive"),
    "tcp": RecognisedKind("nvme-fabric", "NVMe over TCP"),
    "rdma": RecognisedKind("nvme-fabric", "NVMe over RDMA"),
    "nvme-fc": RecognisedKind("nvme-fabric", "NVMe over Fibre Channel"),
    "sata": RecognisedKind("sata", "a drive on SATA"),
    "sas": RecognisedKind("sas", "a drive on SAS"),
    "usb": RecognisedKind("usb", "a drive on USB"),
    "iscsi": RecognisedKind("iscsi", "a SCSI disk over iSCSI"),
    "fc": RecognisedKind("fibre-channel", "a SCSI disk over Fibre Channel"),
    "virtio": RecognisedKind("virtio", f"a virtio disk: {_HIDDEN}"),
    "virtio-scsi": RecognisedKind("virtio", f"a disk on virtio-scsi: {_HIDDEN}"),
    "xen": RecognisedKind("xen", f"a Xen disk: {_HIDDEN}"),
    "hyper-v": RecognisedKind("virtual", f"a disk of Hyper-V: {_HIDDEN}"),
}
"""The kind of a disk that no pattern matches, by its transport."""

_UNKNOWN_DISK = RecognisedKind(
    UNKNOWN, "a block device of a model and a connection that iobench does not know"
)

# Each list has, in this order, options of all file systems; of ext4, xfs, btrfs and f2fs; of nfs,
# lustre, cifs, 9p and ceph; of overlay and FUSE.
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
_FLAGS = frozenset(_FLAG_NAMES.split())
"""Mount options without a value that are kept."""

_VALUED = frozenset(_VALUED_NAMES.split())
"""Mount options with a value that are kept."""

# The form of values that are kept. Paths and addresses do not have it: an address of IPv4 has four
# numbers, and an address of IPv6 has two colons.
_VALUE = re.compile(r"(?!\d+\.\d+\.\d+\.\d+)[A-Za-z0-9][A-Za-z0-9.+-]{0,15}(?::[A-Za-z0-9+-]+)?")


def kind_name(kind: str) -> str:
    """Return the name of a kind; a kind of a newer version is its own name."""
    return KINDS[kind].name if kind in KINDS else kind


def reach(kind: str) -> Reach:
    """Return where the bytes of a kind come from; ``unknown`` for a kind of a newer version."""
    return KINDS[kind].reach if kind in KINDS else "unknown"


def has_server(file_system: str) -> bool:
    """Return whether a file system has a server, or a FUSE program, with a cache of its own."""
    recognised = kind_of_mount(file_system, "")
    is_remote = recognised is not None and reach(recognised.kind) == "network"
    return is_remote or file_system.startswith("fuse")


def kind_of_mount(file_system: str, source: str) -> RecognisedKind | None:
    """Return the kind of a mount by its type and source; None if no pattern matches.

    For FUSE programs that iobench does not know, a pattern gives the kind ``UNKNOWN``.
    """
    for pattern in _MOUNTS:
        has_type = re.fullmatch(pattern.types, file_system)
        if has_type and re.fullmatch(pattern.sources, source, re.I | re.S):
            kind = pattern.kind or file_system.removeprefix("fuse.")
            return RecognisedKind(kind, pattern.why.format(file_system))
    return None


def kind_of_disk(disk: Disk) -> RecognisedKind:
    """Return the kind of a disk by its name, vendor and model, or else by its transport.

    The kind is ``UNKNOWN`` if neither is known.
    """
    for pattern in _DISKS:
        if (
            re.fullmatch(pattern.names, disk.name)
            and re.fullmatch(pattern.vendors, disk.vendor)
            and re.fullmatch(pattern.models, disk.model)
        ):
            return RecognisedKind(pattern.kind, pattern.why.format(disk.model))
    return _TRANSPORTS.get(disk.transport, _UNKNOWN_DISK)


def kept_options(options: Iterable[str]) -> str:
    """Return the mount options that affect figures, each once: ``rw,noatime,rsize=1048576``.

    ``addr=``, ``username=``, ``cfgFile=``, ``lowerdir=`` and others contain addresses, paths and
    names of people, which results must not contain. So only options are kept that this module
    lists.
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
