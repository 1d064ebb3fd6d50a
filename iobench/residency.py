"""How much of a file the kernel keeps in memory: cachestat(2) where it has it, else mincore(2)."""

from __future__ import annotations

import ctypes
import functools
import mmap
import os

_CACHESTAT = 451  # the same number on every architecture but Alpha; Linux 6.5
_MAP_FAILED = ctypes.c_void_p(-1).value
# The page cache of an overlay belongs to the layer below, of which cachestat sees nothing.
_ONLY_MINCORE = frozenset({"overlay"})


class _Range(ctypes.Structure):
    _fields_ = (("offset", ctypes.c_uint64), ("length", ctypes.c_uint64))


class _Counts(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_uint64)
        for name in ("cached", "dirty", "writeback", "evicted", "recently_evicted")
    )


def pages(file_bytes: int) -> int:
    """How many pages hold ``file_bytes``."""
    return -(-file_bytes // mmap.PAGESIZE)


def resident_pages(descriptor: int, file_system: str = "") -> int | None:
    """Pages of an open file that are in memory; None where the kernel does not tell us.

    Raises:
        OSError: the descriptor is not that of a file.
    """
    size_bytes = os.fstat(descriptor).st_size
    if not size_bytes:
        return 0
    cached = None if file_system in _ONLY_MINCORE else _cachestat(descriptor)
    if cached is None:
        cached = _mincore(descriptor, size_bytes)
    # The last folio may reach beyond the end of the file.
    return None if cached is None else min(cached, pages(size_bytes))


@functools.cache
def cachestat_works() -> bool:
    """Whether this kernel has it, asked of a file of our own without a name."""
    descriptor = os.memfd_create("iobench-cachestat")
    try:
        return _cachestat(descriptor) is not None
    finally:
        os.close(descriptor)


def _cachestat(descriptor: int) -> int | None:
    counts = _Counts()
    whole = _Range(0, 0)  # length 0: up to the end
    failed = _libc().syscall(
        _CACHESTAT, ctypes.c_uint(descriptor), ctypes.byref(whole), ctypes.byref(counts), 0
    )
    return None if failed else int(counts.cached)


def _mincore(descriptor: int, size_bytes: int) -> int | None:
    # Since Linux 5.2 files that we could not write are always said to be resident.
    if not _may_write(descriptor):
        return None
    libc = _libc()
    address = libc.mmap(None, size_bytes, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, 0)
    if address == _MAP_FAILED:
        return None
    try:
        vector = (ctypes.c_ubyte * pages(size_bytes))()
        if libc.mincore(address, size_bytes, vector):
            return None
        # Only the lowest bit has a meaning.
        return sum(bytes(vector).count(value) for value in set(bytes(vector)) if value & 1)
    finally:
        libc.munmap(address, size_bytes)


def _may_write(descriptor: int) -> bool:
    if os.fstat(descriptor).st_uid == os.geteuid():
        return True
    return os.access(f"/proc/self/fd/{descriptor}", os.W_OK)


@functools.cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = (
        *(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int),
        ctypes.c_longlong,
    )
    libc.mincore.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
    libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    return libc
