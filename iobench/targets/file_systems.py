"""PURE. Kinds that a mount's type and source tell alone, where no block device is behind it.

How each stands in the mount table:

- EFS by its DNS name, ``fs-ID.efs.REGION.amazonaws.com:/`` of type ``nfs4``
  (https://docs.aws.amazon.com/efs/latest/ug/mounting-fs-mount-cmd-dns-name.html). Its mount
  helper puts a proxy of this machine in between, so that ``127.0.0.1:/`` stands there instead
  (the end-to-end tests of kubernetes-sigs/aws-efs-csi-driver say so): whose that proxy is, only
  the helper's own files tell, see ``efs_helper``.
- FSx for Lustre as ``lustre``. ``mount.lustre`` resolves names (``convert_hostnames``), and
  ``ADDRESS@tcp:/NAME`` stands there for it as for any other Lustre; only where the name survives is
  it told apart.
- Mountpoint for Amazon S3: source ``mountpoint-s3``, type ``fuse`` (``FSName`` in
  awslabs/mountpoint-s3). s3fs, gcsfuse, rclone, JuiceFS, GeeseFS and others: a type ``fuse.NAME``.
- goofys: the bucket as source and a plain ``fuse`` (``FSName: bucketName`` without a subtype in
  kahing/goofys): any program may look so, and it is not told from others.
- BeeGFS: ``beegfs_nodev`` of type ``beegfs``.
"""

from __future__ import annotations

import re

from iobench.targets.description import Mounted, Told

_BY_TYPE = {
    "tmpfs": ("tmpfs", "a tmpfs lies in memory"),
    "ramfs": ("ramfs", "a ramfs lies in memory"),
    "hugetlbfs": ("hugetlbfs", "it lies in memory"),
    "beegfs": ("beegfs", "its type is beegfs"),
    "gpfs": ("gpfs", "its type is gpfs"),
    "wekafs": ("wekafs", "its type is wekafs"),
    "ceph": ("ceph", "its type is ceph"),
    "afs": ("afs", "its type is afs"),
    "9p": ("9p", "its type is 9p; what the host keeps it on cannot be seen from here"),
    "virtiofs": (
        "virtiofs",
        "its type is virtiofs; what the host keeps it on cannot be seen from here",
    ),
    "zfs": ("zfs", "its type is zfs; the kernel does not tell a pool's devices here"),
}
_BY_SUBTYPE = {
    "mountpoint-s3": "mountpoint-s3",
    "s3fs": "s3fs",
    "goofys": "goofys",
    "geesefs": "geesefs",
    "gcsfuse": "gcsfuse",
    "rclone": "rclone",
    "blobfuse": "blobfuse2",
    "blobfuse2": "blobfuse2",
    "juicefs": "juicefs",
    "alluxio": "alluxio",
    "alluxio-fuse": "alluxio",
    "sshfs": "sshfs",
    "ceph-fuse": "ceph",
    "glusterfs": "glusterfs",
}
_AWS = r"\.amazonaws\.com(?:\.cn)?"
_EFS = re.compile(rf"(?:[a-z0-9-]+\.)?fs-[0-9a-f]+\.efs\.[a-z0-9-]+{_AWS}", re.I)
_FSX = re.compile(rf"(?:[a-z0-9-]+\.)*fs-[0-9a-f]+\.fsx\.[a-z0-9-]+{_AWS}", re.I)
_HERE = {"127.0.0.1", "localhost", "[::1]", "::1"}
_FUSE = ("fuse", "fuseblk")


def of_mount(mounted: Mounted) -> Told | None:
    """What type and source tell; None where what lies below decides."""
    kind = mounted.file_system
    if kind in _BY_TYPE:
        return Told(*_BY_TYPE[kind])
    if kind in ("nfs", "nfs4"):
        return _nfs(mounted)
    if kind == "lustre":
        return _lustre(mounted.source)
    if kind in ("cifs", "smb3", "smbfs"):
        return _smb(mounted.source)
    base, _, subtype = kind.partition(".")
    if base in _FUSE and not mounted.devices:
        return _fuse(subtype, mounted.source)
    return None


def _nfs(mounted: Mounted) -> Told:
    server = mounted.source.rpartition(":/")[0]
    if _EFS.fullmatch(server):
        return Told("efs", "NFS from an address of EFS")
    if _FSX.fullmatch(server):
        return Told("fsx-nfs", "NFS from an address of FSx")
    if server in _HERE and mounted.by_efs_helper:
        return Told("efs", "NFS by the proxy of EFS's mount helper on this machine")
    if server in _HERE:
        return Told(
            "nfs",
            "NFS by a proxy on this machine, as EFS's mount helper sets one up: whose server "
            "that reaches cannot be told without root's view of /var/run/efs",
        )
    return Told("nfs", "its type is NFS; whose server that is cannot be told")


def _lustre(source: str) -> Told:
    servers = source.rpartition(":/")[0]
    if any(_FSX.fullmatch(part.partition("@")[0]) for part in re.split("[:,]", servers)):
        return Told("fsx-lustre", "Lustre from an address of FSx")
    return Told(
        "lustre",
        "its type is lustre; servers stand there by number, those of FSx like any others",
    )


def _smb(source: str) -> Told:
    server = source.removeprefix("//").partition("/")[0]
    if server.lower().endswith(".file.core.windows.net"):
        return Told("azure-files", "SMB from an address of Azure Files")
    if _FSX.fullmatch(server):
        return Told("cifs", "SMB from an address of FSx")
    return Told("cifs", "its type is SMB")


def _fuse(subtype: str, source: str) -> Told:
    if subtype in _BY_SUBTYPE:
        return Told(_BY_SUBTYPE[subtype], f"its type is fuse.{subtype}")
    if source == "mountpoint-s3":
        return Told("mountpoint-s3", "FUSE with the source mountpoint-s3")
    if subtype:
        return Told("unknown", "FUSE of a program that iobench does not know")
    return Told(
        "fuse", "FUSE without the name of a program: goofys and others cannot be told apart"
    )
