"""The page cache: what of some files is in it, how to empty it and how to fill it."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from iobench.coldness import IN_MEMORY, RESIDENT_AT_MOST
from iobench.mounts import file_system
from iobench.residency import pages, resident_pages

DropCaches: TypeAlias = Literal["never", "when-needed", "always"]
WHEN_NEEDED: DropCaches = "when-needed"

_PIECE_BYTES = 2**20
_DROP_CACHES = Path("/proc/sys/vm/drop_caches")
_PAGES, _PAGES_NAMES_INODES = 1, 3  # see proc_sys_vm(5)
_FSYNC_EACH = 64  # beyond that one sync for all is quicker: each fsync may flush the drive


def residency(paths: Sequence[Path]) -> float | None:
    """Share of the files' pages that are in memory, 0 to 1.

    None where it cannot be told: the kernel does not say, a file may not be read, no pages.
    """
    resident = total = 0
    kind = file_system(paths[0]) if paths else ""
    for path in paths:
        try:
            with _opened(path) as descriptor:
                found = resident_pages(descriptor, kind)
                total += pages(os.fstat(descriptor).st_size)
        except OSError:
            return None
        if found is None:
            return None
        resident += found
    return resident / total if total else None


def evict(paths: Sequence[Path], drop_caches: DropCaches = WHEN_NEEDED) -> None:
    """Have the kernel forget the files. What is mapped somewhere stays; so does tmpfs.

    Dirty pages are written first. ``drop_caches``, where we may: ``always`` drops all clean pages
    of the machine, names and inodes too; ``when-needed`` all clean pages where more than 1 % of
    the files' stay. Whether it worked is what ``residency`` says.

    Raises:
        OSError: a file cannot be opened or written back.
    """
    if len(paths) > _FSYNC_EACH:
        os.sync()
    for path in paths:
        with _opened(path) as descriptor:
            if len(paths) <= _FSYNC_EACH:
                os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    if not paths or file_system(paths[0]) in IN_MEMORY:
        return
    if drop_caches == "always":
        _drop(_PAGES_NAMES_INODES)
    elif drop_caches == WHEN_NEEDED and (residency(paths) or 0.0) > RESIDENT_AT_MOST:
        _drop(_PAGES)


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

    ``read_bytes`` of proc_pid_io(5); network and FUSE file systems do not count there. None
    where the kernel does not keep it.
    """
    try:
        counts = Path("/proc/self/io").read_text()
    except OSError:
        return None
    match = re.search(r"^read_bytes: (\d+)$", counts, re.M)
    return int(match[1]) if match else None


def total_bytes(paths: Sequence[Path]) -> int:
    """Sizes added up."""
    return sum(path.stat().st_size for path in paths)


def _drop(what: int) -> None:
    """Of the whole machine; in silence where we may not: ``cache_limits`` says so."""
    with contextlib.suppress(OSError):
        _DROP_CACHES.write_text(f"{what}\n")


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
