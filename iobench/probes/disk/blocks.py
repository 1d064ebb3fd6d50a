"""Reads and writes of whole blocks, for one process: its own descriptor, its own memory."""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from iobench.errors import TrialFailed, Unavailable
from iobench.machine.coldness import IN_MEMORY
from iobench.machine.mounts import file_system

_MALLOC_HEADER = 16  # glibc's, of a block that is mapped by itself


@contextlib.contextmanager
def reading(path: Path, block_bytes: int, *, direct: bool) -> Iterator[Callable[[int], int]]:
    """What reads the block at an offset into memory of its own, and returns its bytes.

    The kernel is given no advice on the pattern, as loaders give none (fio does, unless told
    ``--fadvise_hint=0``).

    Raises:
        Unavailable: O_DIRECT is refused, or would mean nothing.
        TrialFailed: fewer bytes came back, by the callable.
    """
    with _opened(path, os.O_RDONLY, direct) as descriptor, _memory(block_bytes, direct) as memory:
        buffers, preadv = [memory], os.preadv

        def read(offset: int) -> int:
            got = preadv(descriptor, buffers, offset)
            return got if got == block_bytes else _short(got, block_bytes, offset)

        if direct:
            with _refusal_said(path):
                read(0)  # some file systems refuse the read, not the opening
        yield read


@contextlib.contextmanager
def writing(path: Path, block_bytes: int, *, direct: bool) -> Iterator[Callable[[int], int]]:
    """What writes a block at an offset: random bytes, the offset in the first eight.

    Raises:
        Unavailable: O_DIRECT is refused, or would mean nothing.
        TrialFailed: fewer bytes went out, by the callable.
    """
    with _opened(path, os.O_WRONLY, direct) as descriptor, _memory(block_bytes, direct) as memory:
        buffers, pwritev = [memory], os.pwritev

        def write(offset: int) -> int:
            memory[:8] = offset.to_bytes(8, "little")
            done = pwritev(descriptor, buffers, offset)
            return done if done == block_bytes else _short(done, block_bytes, offset)

        yield write


@contextlib.contextmanager
def _opened(path: Path, flags: int, direct: bool) -> Iterator[int]:
    if direct and file_system(path) in IN_MEMORY:
        raise Unavailable(
            f"O_DIRECT: {path.parent} is {file_system(path)}, memory with no device below it"
        )
    with _refusal_said(path) if direct else contextlib.nullcontext():
        descriptor = os.open(path, flags | os.O_CLOEXEC | (os.O_DIRECT if direct else 0))
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _memory(block_bytes: int, direct: bool) -> Iterator[memoryview]:
    """Private memory for a block, where fio and other programs have theirs.

    A device writes into whole pages, not into huge ones, which programs seldom have: they read 1.3
    to 1.7 times as fast. A copy from the page cache goes where malloc would put a block of that
    size, its header behind the beginning of a page: to the beginning itself some processors copy a
    tenth slower.
    """
    first = 0 if direct else _MALLOC_HEADER
    size = first + block_bytes
    # Shared memory would come in smaller pieces to the device.
    with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as pages:
        # Touched now, not in the first operation; random, so that nothing can compress it.
        pages[:] = os.urandom(size)
        with memoryview(pages) as whole, whole[first:] as block:
            yield block


@contextlib.contextmanager
def _refusal_said(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
            raise
        kind = file_system(path) or "the file system"
        raise Unavailable(
            f"O_DIRECT is refused by {kind} at {path.parent}: give a path on a file system of "
            "a disk's own, or leave direct out of cache"
        ) from None


def _short(done: int, wanted: int, offset: int) -> int:
    raise TrialFailed(f"{done:,} of {wanted:,} bytes at offset {offset:,}: the file changed")
