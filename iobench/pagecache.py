"""The page cache: what of some files is in it, how to empty it and how to fill it."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from iobench.coldness import IN_MEMORY, RESIDENT_AT_MOST
from iobench.mounts import file_system
from iobench.residency import pages, resident_pages

_PIECE_BYTES = 2**20
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


def evict(paths: Sequence[Path]) -> None:
    """Have the kernel forget the files. What is mapped somewhere stays; so does tmpfs.

    Dirty pages are written first. Where more than 1 % stays and we may, all clean pages of the
    machine are dropped (``drop_caches``). Whether it worked is what ``residency`` says.

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
    if (residency(paths) or 0.0) > RESIDENT_AT_MOST:
        with contextlib.suppress(OSError):
            Path("/proc/sys/vm/drop_caches").write_text("1\n")


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


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
