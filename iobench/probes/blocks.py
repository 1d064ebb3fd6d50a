"""The built-in engine of the disk probe: processes that read and write blocks of a file."""

from __future__ import annotations

import contextlib
import errno
import itertools
import mmap
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from iobench.clock import Clock
from iobench.errors import TrialFailed, Unavailable
from iobench.machine.coldness import IN_MEMORY
from iobench.machine.mounts import file_system
from iobench.probes.parallel import Moved, Progress, run_in_processes
from iobench.probes.settings import DiskOperation, DiskTrial

_MAX_OPERATIONS_PER_S = 400_000
"""More operations than a process can do in a second. It limits the number of prepared offsets."""

_MALLOC_HEADER_BYTES = 16
"""The size of the header that malloc of glibc puts in front of a large block of memory."""


def move_by_processes(path: Path, trial: DiskTrial, clock: Clock, progress: Progress) -> Moved:
    """Read or write blocks in several processes of this program.

    With the sequential pattern, each process has a contiguous region of the file. With the random
    pattern, the blocks of the whole file are divided among the processes. Warm reads start again
    after the last block. All other trials touch each block at most once.

    Args:
        path: the test file.
        trial: the parameters of the trial.
        clock: measures the operations.
        progress: is called with the bytes so far when a process has ended.

    Raises:
        Unavailable: O_DIRECT is requested, and it is refused or the file is in memory.
        TrialFailed: an operation moved only a part of a block, or a process has failed.
        OSError: the file cannot be read or written.
    """
    max_operations = max(trial.parallelism, int(trial.seconds * _MAX_OPERATIONS_PER_S))
    shares: list[Iterable[int]] = []
    if trial.pattern == "random":
        shares += random_offsets(
            trial.file_bytes,
            trial.block_bytes,
            trial.parallelism,
            max_blocks=max_operations,
            seed=trial.repeat,
        )
    else:
        shares += sequential_offsets(trial.file_bytes, trial.block_bytes, trial.parallelism)
    if trial.cache == "warm":
        shares = [itertools.islice(itertools.cycle(share), max_operations) for share in shares]
    open_operation = partial(
        open_blocks, path, trial.operation, trial.block_bytes, direct=trial.cache == "direct"
    )
    return run_in_processes(open_operation, shares, clock, trial.seconds, progress)


def sequential_offsets(file_bytes: int, block_bytes: int, processes: int) -> list[Sequence[int]]:
    """PURE. Return, for each process, the offsets of the blocks in a contiguous region of its own.

    All regions have the same length. If the blocks cannot be divided evenly, the last blocks of the
    file are left out.
    """
    region_bytes = file_bytes // block_bytes // processes * block_bytes
    starts = [number * region_bytes for number in range(processes)]
    return [range(start, start + region_bytes, block_bytes) for start in starts]


def random_offsets(
    file_bytes: int, block_bytes: int, processes: int, *, max_blocks: int, seed: int = 0
) -> list[Sequence[int]]:
    """PURE. Return, for each process, the offsets of some blocks of the file, in random order.

    All processes have the same number of blocks, and no block occurs twice. Together they have as
    many blocks of the file as can be divided evenly, but at most ``max_blocks``.

    Args:
        file_bytes: the size of the file.
        block_bytes: the size of a block.
        processes: the number of processes.
        max_blocks: the largest number of blocks of all processes together.
        seed: the seed of the order.
    """
    file_blocks = file_bytes // block_bytes
    blocks_per_process = min(file_blocks, max_blocks) // processes
    generator = np.random.default_rng(seed)
    blocks = generator.choice(file_blocks, blocks_per_process * processes, replace=False)
    offsets = blocks.astype(np.int64) * block_bytes
    return [offsets[process::processes].tolist() for process in range(processes)]


@contextlib.contextmanager
def open_blocks(
    path: Path, operation: DiskOperation, block_bytes: int, *, direct: bool
) -> Iterator[Callable[[int], int]]:
    """Open a file, and yield a function that reads or writes the block at an offset.

    The function returns the number of bytes that it moved. A written block has random bytes, with
    its offset in the first eight bytes. The kernel gets no advice on the access pattern
    (posix_fadvise), since loaders give no advice either. fio gives none with ``--fadvise_hint=0``.

    Args:
        path: the file.
        operation: ``read`` or ``write``.
        block_bytes: the size of a block.
        direct: whether to bypass the page cache (O_DIRECT).

    Raises:
        Unavailable: with ``direct``, O_DIRECT is refused, or the file is in memory.
        TrialFailed: the function moved only a part of a block.
        OSError: the file cannot be opened, read or written.
    """
    is_read = operation == "read"
    flags = os.O_CLOEXEC | (os.O_RDONLY if is_read else os.O_WRONLY)
    file_system_type = file_system(path)
    if direct:
        flags |= os.O_DIRECT
        if file_system_type in IN_MEMORY:
            raise Unavailable(
                f"O_DIRECT: {path.parent} is {file_system_type}, memory with no device below it"
            )
    move_at = os.preadv if is_read else os.pwritev
    # The buffer should be like the buffers of most programs:
    # - It is private memory. The device would fill shared memory in smaller pieces.
    # - It has ordinary pages. A device reads into huge pages 1.3 to 1.7 times as fast, but programs
    #   seldom have them.
    # - If blocks are copied from the page cache, the buffer does not begin at the start of a page,
    #   but after the header of malloc. Some processors copy to the start of a page 10 % slower.
    header_bytes = 0 if direct else _MALLOC_HEADER_BYTES
    memory_flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    with (
        mmap.mmap(-1, header_bytes + block_bytes, flags=memory_flags) as pages,
        memoryview(pages) as all_memory,
        all_memory[header_bytes:] as block,
    ):
        # The memory is touched here, so that the first operation is not slower than the others. Its
        # bytes are random, so that no layer below can compress them.
        block[:] = os.urandom(block_bytes)
        buffers = [block]

        def move(offset: int) -> int:
            if not is_read:
                block[:8] = offset.to_bytes(8, "little")
            moved_bytes = move_at(descriptor, buffers, offset)
            if moved_bytes != block_bytes:
                raise TrialFailed(
                    f"{moved_bytes:,} of {block_bytes:,} bytes at offset {offset:,}: the file "
                    "changed"
                )
            return moved_bytes

        try:
            descriptor = os.open(path, flags)
            try:
                if direct and is_read:
                    move(0)  # Some file systems refuse O_DIRECT only at the first read.
                yield move
            finally:
                os.close(descriptor)
        except OSError as error:
            if not direct or error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
                raise
            raise Unavailable(
                f"O_DIRECT is refused by {file_system_type or 'the file system'} at "
                f"{path.parent}: give a path on the file system of a disk, or leave direct out of "
                "cache"
            ) from None
