"""The page cache over files: how much of them it holds, how to empty and how to fill it.

Residency comes from cachestat(2) where the kernel has it, else from mincore(2).
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

from iobench.machine.coldness import IN_MEMORY, LEFT, RESIDENT_AT_MOST, judge
from iobench.machine.hardware import memory_bytes
from iobench.machine.host import container
from iobench.machine.mounts import file_system
from iobench.trial import Cold

DropCaches: TypeAlias = Literal["never", "when-needed", "always"]
WHEN_NEEDED: DropCaches = "when-needed"

DROP_CACHES = Path("/proc/sys/vm/drop_caches")
_PIECE_BYTES = 2**20
_PAGES, _PAGES_NAMES_INODES = 1, 3  # see proc_sys_vm(5)
_FSYNC_EACH = 64  # beyond that one sync for all is quicker: each fsync may flush the drive
_CACHESTAT = 451  # the same number on every architecture but Alpha; Linux 6.5
# The page cache of an overlay belongs to the layer below, which cachestat does not count.
_ONLY_MINCORE = frozenset({"overlay"})


def residency(paths: Sequence[Path]) -> float | None:
    """Share of the files' pages that are in memory, 0 to 1.

    None if the kernel does not report it, a file may not be read, or there are no pages.
    """
    kind = file_system(paths[0]) if paths else ""
    try:
        resident = sum(_resident_pages(path, kind) for path in paths)
        total = sum(_pages(path.stat().st_size) for path in paths)
    except OSError:
        return None
    return resident / total if total else None


def evict(paths: Sequence[Path], drop_caches: DropCaches = WHEN_NEEDED) -> None:
    """Ask the kernel to drop the files' pages; mapped pages and those of a tmpfs stay.

    Dirty pages are written first. With ``drop_caches: always`` all clean pages, names and inodes of
    the machine are dropped, with ``when-needed`` all clean pages if more than 1 % of the files'
    pages stay; both only if permitted. ``residency`` shows whether it worked.

    Raises:
        OSError: a file cannot be opened or written back.
    """
    if len(paths) > _FSYNC_EACH:
        os.sync()
    for path in paths:
        with path.open("rb", buffering=0) as file:
            if len(paths) <= _FSYNC_EACH:
                os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    if not paths or file_system(paths[0]) in IN_MEMORY:
        return
    # If it is not permitted, the limits of the trial say so.
    with contextlib.suppress(OSError):
        if drop_caches == "always":
            DROP_CACHES.write_text(f"{_PAGES_NAMES_INODES}\n")
        elif drop_caches == WHEN_NEEDED and (residency(paths) or 0.0) > RESIDENT_AT_MOST:
            DROP_CACHES.write_text(f"{_PAGES}\n")


def warm(paths: Sequence[Path]) -> None:
    """Read all of the files once.

    Raises:
        OSError: a file cannot be read.
    """
    buffer = bytearray(_PIECE_BYTES)
    for path in paths:
        with path.open("rb", buffering=0) as file:
            while file.readinto(buffer):
                pass


def physical_read_bytes() -> int | None:
    """Bytes that storage gave to this process, its threads and its reaped children so far.

    ``read_bytes`` of proc_pid_io(5), which leaves out network and FUSE file systems. None if the
    kernel does not count it.
    """
    try:
        return int(psutil.Process().io_counters().read_bytes)
    except (AttributeError, OSError, RuntimeError, ValueError, psutil.Error):
        return None


@dataclass(frozen=True, slots=True)
class CacheState:
    """The state that a trial asked for, and the share of its files that was resident before it.

    ``resident_before`` is None if the kernel does not report it.
    """

    asked: str
    files: Sequence[Path]
    resident_before: float | None

    def judged(self, physical_ratio: float | None, *, sequential: bool) -> Cold:
        """The label of the trial, see ``coldness.judge``.

        An epoch that was not prepared is judged as a cold one.
        """
        kind = file_system(self.files[0])
        judged = judge(
            asked="cold" if self.asked == LEFT else self.asked,
            resident_before=self.resident_before,
            physical_ratio=physical_ratio,
            sequential=sequential,
            data_bytes=sum(file.stat().st_size for file in self.files),
            memory_bytes=memory_bytes(),
            file_system=kind,
            limits=limits(kind, self.resident_before) if self.asked == "cold" else (),
        )
        return replace(judged, asked=self.asked)


def prepared(
    asked: str, files: Sequence[Path], drop_caches: DropCaches = WHEN_NEEDED
) -> CacheState:
    """Fill the page cache with ``files`` for ``warm``, else drop them from it."""
    if asked == "warm":
        warm(files)
    else:
        evict(files, drop_caches if asked == "cold" else WHEN_NEEDED)
    return observed(asked, files)


def observed(asked: str, files: Sequence[Path]) -> CacheState:
    """The present state; nothing is filled or dropped."""
    return CacheState(asked, files, residency(files))


def limits(kind: str, resident: float | None) -> tuple[str, ...]:
    """Limits on emptying or seeing the page cache here, as sentences without a full stop.

    Args:
        kind: the type of the files' file system.
        resident: their residency; None if the kernel does not report it.
    """
    signs, in_memory = container(), kind in IN_MEMORY
    sentences = (
        (in_memory, f"{kind}: files are in memory and cannot be evicted"),
        (
            resident is None and not in_memory,
            "the residency is unknown: the kernel reports it only for files that the user owns or "
            "may write (mincore since Linux 5.2, cachestat since 6.14)",
        ),
        (
            not os.access(DROP_CACHES, os.W_OK),
            "drop_caches is not permitted (no root, or a container): names and inodes of the files "
            "stay in memory, and so do pages that another process has mapped",
        ),
        (
            physical_read_bytes() is None,
            "no /proc/PID/io: physical bytes are not counted, reads of whole files not proved",
        ),
        (
            bool(signs),
            f"{signs}: the page cache is the host's, and others on it may read or map the same "
            "files",
        ),
    )
    return tuple(sentence for holds, sentence in sentences if holds)


def _resident_pages(path: Path, kind: str) -> int:
    """Pages of a file that are in memory; ``kind`` is the type of its file system.

    Raises:
        OSError: the file may not be read, or the kernel does not report it.
    """
    with path.open("rb", buffering=0) as file:
        size_bytes = os.fstat(file.fileno()).st_size
        if not size_bytes:
            return 0
        cached = None if kind in _ONLY_MINCORE else _cachestat(file.fileno())
        # Since Linux 5.2 files that we could not write are always reported as resident.
        is_ours = path.stat().st_uid == os.geteuid()
        if cached is None and (is_ours or os.access(path, os.W_OK, effective_ids=True)):
            cached = _mincore(file.fileno(), size_bytes)
    if cached is None:
        raise OSError(f"{path}: no residency")
    # The last folio may reach beyond the end of the file.
    return min(cached, _pages(size_bytes))


def _pages(file_bytes: int) -> int:
    return -(-file_bytes // mmap.PAGESIZE)


def _cachestat(descriptor: int) -> int | None:
    counts = (ctypes.c_uint64 * 5)()  # cached, dirty, writeback, evicted, recently evicted
    whole = (ctypes.c_uint64 * 2)()  # offset and length; length 0: up to the end
    number, file = ctypes.c_long(_CACHESTAT), ctypes.c_uint(descriptor)
    return None if ctypes.CDLL(None).syscall(number, file, whole, counts, 0) else int(counts[0])


def _mincore(descriptor: int, size_bytes: int) -> int | None:
    found = np.zeros(_pages(size_bytes), np.uint8)
    with mmap.mmap(descriptor, size_bytes, prot=mmap.PROT_READ) as mapped:
        address = ctypes.c_void_p(np.frombuffer(mapped, np.uint8).ctypes.data)
        vector = ctypes.c_void_p(found.ctypes.data)
        failed = ctypes.CDLL(None).mincore(address, ctypes.c_size_t(size_bytes), vector)
    # Only the lowest bit has a meaning.
    return None if failed else int(np.count_nonzero(found & 1))
