"""The page cache: how much of some files it holds, and how to drop or read them.

Residency comes from cachestat(2) if the kernel has it, otherwise from mincore(2).
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
import psutil

from iobench.machine.coldness import IN_MEMORY, MAX_RESIDENT_SHARE, NOT_PREPARED, judge
from iobench.machine.hardware import memory_bytes
from iobench.machine.host import container
from iobench.machine.mounts import file_system
from iobench.results.trial import Cold

DropCaches: TypeAlias = Literal["never", "when-needed", "always"]
"""When to drop all clean pages of the machine (see ``evict``)."""

WHEN_NEEDED: DropCaches = "when-needed"

DROP_CACHES = Path("/proc/sys/vm/drop_caches")
"""Writing a number to this file drops clean pages of the whole machine."""
_PIECE_BYTES = 2**20
"""The number of bytes that ``warm`` reads at a time."""

_DROP_PAGES, _DROP_PAGES_AND_NAMES = 1, 3  # see proc_sys_vm(5)
_MAX_FSYNCS = 64
"""With more files, one sync of the machine replaces an fsync of each file. It is faster, because
each fsync may flush the drive."""

_CACHESTAT = 451
"""The number of the system call cachestat (Linux 6.5) on x86-64, Arm, POWER, RISC-V and s390."""
_ONLY_MINCORE = frozenset({"overlay"})
"""File systems for which cachestat is not used. The pages of an overlay belong to the file system
below it, and cachestat does not count them."""


def residency(paths: Sequence[Path]) -> float | None:
    """Return the share of the files' pages that are in memory, 0 to 1.

    It is None if the kernel does not report it, if a file cannot be read, or if the files have no
    pages. All files are assumed to be on the file system of the first one.
    """
    file_system_type = file_system(paths[0]) if paths else ""
    try:
        resident_pages = sum(_resident_pages(path, file_system_type) for path in paths)
        all_pages = sum(_pages(path.stat().st_size) for path in paths)
    except OSError:
        return None
    return resident_pages / all_pages if all_pages else None


def evict(paths: Sequence[Path], drop_caches: DropCaches = WHEN_NEEDED) -> None:
    """Ask the kernel to drop the files' pages. Mapped pages and pages of a tmpfs stay.

    Dirty pages are written first, since the kernel drops only clean pages. ``residency`` shows
    whether the pages were dropped.

    Args:
        paths: the files.
        drop_caches: with ``always``, all clean pages, names and inodes of the machine are dropped.
            With ``when-needed``, all clean pages are dropped if more than 1 % of the files' pages
            stay. Neither happens if it is not permitted.

    Raises:
        OSError: a file cannot be opened or written back.
    """
    if len(paths) > _MAX_FSYNCS:
        os.sync()
    for path in paths:
        with path.open("rb", buffering=0) as file:
            if len(paths) <= _MAX_FSYNCS:
                os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    if not paths or file_system(paths[0]) in IN_MEMORY:
        return
    # If this is not permitted, the label of the trial says so (see ``limits``).
    with contextlib.suppress(OSError):
        if drop_caches == "always":
            DROP_CACHES.write_text(f"{_DROP_PAGES_AND_NAMES}\n")
        elif drop_caches == WHEN_NEEDED and (residency(paths) or 0.0) > MAX_RESIDENT_SHARE:
            DROP_CACHES.write_text(f"{_DROP_PAGES}\n")


def warm(paths: Sequence[Path]) -> None:
    """Read all files once, so that they are in the page cache.

    Raises:
        OSError: a file cannot be read.
    """
    buffer = bytearray(_PIECE_BYTES)
    for path in paths:
        with path.open("rb", buffering=0) as file:
            while file.readinto(buffer):
                pass


def physical_read_bytes() -> int | None:
    """Return the bytes that this process has read from storage, with threads and ended children.

    This is ``read_bytes`` of proc_pid_io(5), which leaves out network and FUSE file systems. The
    result is None if the kernel does not count these bytes.
    """
    try:
        return int(psutil.Process().io_counters().read_bytes)
    except (AttributeError, OSError, RuntimeError, ValueError, psutil.Error):
        return None


@dataclass(frozen=True, slots=True)
class CacheState:
    """The state of the page cache before a trial.

    Attributes:
        requested: the requested state: ``cold``, ``warm``, ``direct`` or ``NOT_PREPARED``.
        files: the files that the trial reads.
        resident_before: the share of their pages that was in memory; None if the kernel does not
            report it.
    """

    requested: str
    files: Sequence[Path]
    resident_before: float | None

    def judged(self, physical_ratio: float | None, *, sequential: bool) -> Cold:
        """Return the label of the trial or epoch (see ``coldness.judge``).

        An epoch that was not prepared is judged like a cold epoch.

        Args:
            physical_ratio: bytes from storage, divided by the bytes read; None if unknown.
            sequential: whether whole files were read, not parts of them.
        """
        file_system_type = file_system(self.files[0])
        requested = "cold" if self.requested == NOT_PREPARED else self.requested
        limits_of_cold: tuple[str, ...] = ()
        if self.requested == "cold":
            limits_of_cold = limits(file_system_type, self.resident_before)
        label = judge(
            requested=requested,
            resident_before=self.resident_before,
            physical_ratio=physical_ratio,
            sequential=sequential,
            data_bytes=sum(file.stat().st_size for file in self.files),
            memory_bytes=memory_bytes(),
            file_system=file_system_type,
            limits=limits_of_cold,
        )
        return replace(label, asked=self.requested)


def prepare_cache(
    requested: str, files: Sequence[Path], drop_caches: DropCaches = WHEN_NEEDED
) -> CacheState:
    """Read the files into the page cache for ``warm``; otherwise drop them from it.

    ``drop_caches`` is for ``cold`` only. The caches of the machine are not dropped for ``direct``,
    because its reads do not use the page cache.

    Returns:
        The state of the page cache afterwards.
    """
    if requested == "warm":
        warm(files)
    elif requested == "cold":
        evict(files, drop_caches)
    else:
        evict(files, "never")
    return observe_cache(requested, files)


def observe_cache(requested: str, files: Sequence[Path]) -> CacheState:
    """Return the present state. This function reads no file and drops no page."""
    return CacheState(requested, files, residency(files))


def limits(file_system_type: str, resident: float | None) -> tuple[str, ...]:
    """Return what prevents this machine from emptying or observing the page cache.

    Each item is a sentence without a full stop.

    Args:
        file_system_type: the type of the file system of the files.
        resident: their residency; None if the kernel does not report it.
    """
    sentences = []
    if file_system_type in IN_MEMORY:
        sentences.append(f"{file_system_type}: files are in memory and cannot be evicted")
    elif resident is None:
        sentences.append(
            "the residency is unknown: the kernel reports it only for files that the user owns or "
            "may write (mincore since Linux 5.2, cachestat since 6.14)"
        )
    if not os.access(DROP_CACHES, os.W_OK):
        sentences.append(
            "drop_caches is not permitted (no root, or a container): names and inodes of the files "
            "stay in memory, and so do pages that another process has mapped"
        )
    if physical_read_bytes() is None:
        sentences.append(
            "no /proc/PID/io: physical bytes are not counted, so cold reads of whole files cannot "
            "be verified"
        )
    container_signs = container()
    if container_signs:
        sentences.append(
            f"{container_signs}: the page cache belongs to the host, and other processes of the "
            "host may read or map the same files"
        )
    return tuple(sentences)


def _resident_pages(path: Path, file_system_type: str) -> int:
    """Return the number of pages of a file that are in memory.

    Raises:
        OSError: the file may not be read, or the kernel does not report it.
    """
    with path.open("rb", buffering=0) as file:
        size_bytes = os.fstat(file.fileno()).st_size
        if not size_bytes:
            return 0
        cached = None if file_system_type in _ONLY_MINCORE else _cachestat(file.fileno())
        # Since Linux 5.2, mincore reports all pages as resident for a file of another user that
        # this user may not write.
        is_own_file = path.stat().st_uid == os.geteuid()
        if cached is None and (is_own_file or os.access(path, os.W_OK, effective_ids=True)):
            cached = _mincore(file.fileno(), size_bytes)
    if cached is None:
        raise OSError(f"{path}: the kernel does not report its residency")
    # The kernel caches files in folios of several pages. The last one may extend beyond the end.
    return min(cached, _pages(size_bytes))


def _pages(file_bytes: int) -> int:
    """Return the number of pages that a file of this size has."""
    return -(-file_bytes // mmap.PAGESIZE)


def _cachestat(descriptor: int) -> int | None:
    """Return the number of cached pages by cachestat(2); None if the call fails."""
    counts = (ctypes.c_uint64 * 5)()  # cached, dirty, writeback, evicted, recently evicted
    # Offset and length; the length 0 means up to the end.
    span = (ctypes.c_uint64 * 2)()
    number, file = ctypes.c_long(_CACHESTAT), ctypes.c_uint(descriptor)
    return_code = ctypes.CDLL(None).syscall(number, file, span, counts, 0)
    return int(counts[0]) if return_code == 0 else None


def _mincore(descriptor: int, size_bytes: int) -> int | None:
    """Return the number of cached pages by mincore(2); None if the call fails."""
    page_flags = np.zeros(_pages(size_bytes), np.uint8)
    with mmap.mmap(descriptor, size_bytes, prot=mmap.PROT_READ) as mapped:
        address = ctypes.c_void_p(np.frombuffer(mapped, np.uint8).ctypes.data)
        vector = ctypes.c_void_p(page_flags.ctypes.data)
        return_code = ctypes.CDLL(None).mincore(address, ctypes.c_size_t(size_bytes), vector)
    # The lowest bit says whether the page is in memory. The other bits have no meaning.
    return int(np.count_nonzero(page_flags & 1)) if return_code == 0 else None
