"""PURE. Mount options that bear on figures; all others are dropped, since they may name somebody.

``addr=``, ``clientaddr=``, ``username=``, ``cfgFile=``, ``lowerdir=``, ``mds=`` and whatever the
next file system invents hold addresses, paths and people: what is kept is listed, not what is
dropped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

# Of any file system; ext4, xfs, btrfs, f2fs; nfs, lustre, cifs, 9p, ceph; overlay, FUSE.
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
_VALUE = re.compile(r"[A-Za-z0-9][A-Za-z0-9.:+-]{0,15}")
_ADDRESS = re.compile(r"\d+\.\d+\.\d+\.\d+|.*:.*:")


def kept(options: Iterable[str]) -> str:
    """``rw,noatime,rsize=1048576``: those that matter, each once, in their order."""
    return ",".join(dict.fromkeys(_allowed(options)))


def _allowed(options: Iterable[str]) -> Iterator[str]:
    for option in options:
        name, equals, value = option.partition("=")
        if not equals:
            if name in _FLAGS:
                yield name
        elif name in _VALUED and _VALUE.fullmatch(value) and not _ADDRESS.match(value):
            yield option
