"""The two engines of the disk probe: processes of this program, and fio.

fio's options and the JSON that it writes: https://fio.readthedocs.io.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import json
import mmap
import os
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dataprep.schema import malformed_as
from iobench.clock import Clock
from iobench.errors import TrialFailed, Unavailable
from iobench.machine.coldness import IN_MEMORY
from iobench.machine.mounts import file_system
from iobench.machine.page_cache import physical_read_bytes
from iobench.machine.processes import find_program
from iobench.probes.processes import Moved, Progress, drive
from iobench.probes.settings import DiskOperation, DiskTrial
from iobench.stats import QUANTILES, enough

_OPERATIONS_PER_S = 400_000  # more than Python can do: bounds what is prepared
_MALLOC_HEADER = 16  # glibc's, of a block that is mapped by itself
_LAST_WORDS = 300


def by_processes(path: Path, trial: DiskTrial, clock: Clock, progress: Progress) -> Moved:
    """Move blocks in several processes of this program.

    Sequential processes have a contiguous region each; random ones share the whole file. What is
    not warm is touched once, and ends with the file; warm reads start over at the end.
    """
    shape = (trial.file_bytes, trial.block_bytes, trial.parallelism)
    at_most = max(trial.parallelism, int(trial.seconds * _OPERATIONS_PER_S))
    shares: list[Iterable[int]]
    if trial.pattern == "sequential":
        shares = [*sequential_offsets(*shape)]
    else:
        shares = [*random_offsets(*shape, at_most=at_most, seed=trial.repeat)]
    if trial.cache == "warm":
        shares = [itertools.islice(itertools.cycle(share), at_most) for share in shares]
    opened = partial(
        opened_blocks, path, trial.operation, trial.block_bytes, direct=trial.is_direct
    )
    return drive(opened, shares, clock, trial.seconds, progress)


def sequential_offsets(file_bytes: int, block_bytes: int, processes: int) -> list[Sequence[int]]:
    """PURE. For each process the offsets of the blocks in a contiguous region of its own.

    Regions are equally long; blocks that do not divide evenly are left out at the end.
    """
    region_bytes = file_bytes // block_bytes // processes * block_bytes
    starts = [number * region_bytes for number in range(processes)]
    return [range(start, start + region_bytes, block_bytes) for start in starts]


def random_offsets(
    file_bytes: int, block_bytes: int, processes: int, *, at_most: int, seed: int = 0
) -> list[Sequence[int]]:
    """PURE. For each process offsets of whole blocks, shuffled; no block occurs twice.

    They have equally many: the whole file, or ``at_most`` in all where that is less.
    """
    blocks = file_bytes // block_bytes
    each = min(blocks, at_most) // processes
    chosen = np.random.default_rng(seed).choice(blocks, each * processes, replace=False)
    offsets = chosen.astype(np.int64) * block_bytes
    return [offsets[process::processes].tolist() for process in range(processes)]


@contextlib.contextmanager
def opened_blocks(
    path: Path, operation: DiskOperation, block_bytes: int, *, direct: bool
) -> Iterator[Callable[[int], int]]:
    """Open a file, and give what reads or writes its block at an offset and returns the bytes.

    A block that is written is random, with its offset in the first eight bytes. The kernel is
    given no advice on the pattern, as loaders give none (fio does, unless told
    ``--fadvise_hint=0``).

    Raises:
        Unavailable: O_DIRECT is refused, or would mean nothing.
        TrialFailed: fewer bytes were moved, by the callable.
    """
    reads = operation == "read"
    flags = os.O_CLOEXEC | (os.O_RDONLY if reads else os.O_WRONLY)
    if direct:
        flags |= os.O_DIRECT
        if file_system(path) in IN_MEMORY:
            raise Unavailable(
                f"O_DIRECT: {path.parent} is {file_system(path)}, memory with no device below it"
            )
    call = os.preadv if reads else os.pwritev
    with _refusal_of_direct(path, direct), _block_memory(block_bytes, direct) as memory:
        descriptor = os.open(path, flags)
        buffers = [memory]

        def move(offset: int) -> int:
            if not reads:
                memory[:8] = offset.to_bytes(8, "little")
            moved = call(descriptor, buffers, offset)
            if moved != block_bytes:
                raise TrialFailed(
                    f"{moved:,} of {block_bytes:,} bytes at offset {offset:,}: the file changed"
                )
            return moved

        try:
            if direct and reads:
                move(0)  # some file systems refuse the read, not the opening
            yield move
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def _block_memory(block_bytes: int, direct: bool) -> Iterator[memoryview]:
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
def _refusal_of_direct(path: Path, direct: bool) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if not direct or error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
            raise
        kind = file_system(path) or "the file system"
        raise Unavailable(
            f"O_DIRECT is refused by {kind} at {path.parent}: give a path on a file system of "
            "a disk's own, or leave direct out of cache"
        ) from None


def by_fio(path: Path, trial: DiskTrial, clock: Clock, progress: Progress) -> Moved:
    """Have fio move blocks, on its own clock.

    Each of its jobs has a contiguous region of its own, also in random order.
    """
    program = find_program("fio")
    if program is None:
        raise Unavailable("fio is not installed: Debian's and Ubuntu's package is called fio")
    if trial.is_direct:
        with opened_blocks(path, trial.operation, trial.block_bytes, direct=True):
            """A refusal of O_DIRECT is raised here, in the words of the own engine."""
    before = physical_read_bytes()
    done = subprocess.run(
        [program, *fio_options(path, trial)], capture_output=True, text=True, check=False
    )
    after = physical_read_bytes()  # of children that have ended, too
    physical = None if before is None or after is None else after - before
    moved = fio_figures(done, trial.operation, physical)
    progress(moved.bytes, "bytes")
    return moved


def fio_options(path: Path, trial: DiskTrial) -> list[str]:
    """PURE. The command line of fio.

    Jobs are threads, so that nothing of it outlives a trial that is killed. No advice on the
    pattern, no eviction of its own, and each block once unless the page cache is read.
    """
    region_bytes = trial.file_bytes // trial.block_bytes // trial.parallelism * trial.block_bytes
    order = "rand" if trial.pattern == "random" else ""
    options = {
        "name": "iobench",
        "filename": os.fspath(path).replace(":", r"\:"),  # else it separates files
        "rw": order + trial.operation,
        "bs": trial.block_bytes,
        "numjobs": trial.parallelism,
        "size": region_bytes,
        "offset_increment": region_bytes,
        "runtime": f"{round(trial.seconds * 1e6)}us",
        "time_based": int(trial.cache == "warm"),
        "direct": int(trial.is_direct),
        "ioengine": "psync",
        "randseed": trial.repeat + 1,
        "fadvise_hint": 0,
        "invalidate": 0,
        "allow_file_create": 0,
        "percentile_list": ":".join(f"{q * 100:g}" for q in QUANTILES.values()),
        "output-format": "json",
    }
    flags = [f"--{name}={value}" for name, value in options.items()]
    return ["--thread", "--group_reporting", *flags]


def fio_figures(
    done: subprocess.CompletedProcess[str], operation: str, physical: int | None
) -> Moved:
    """PURE. The figures of the one group of jobs in fio's JSON; warnings may come before it.

    Raises:
        TrialFailed: fio failed or moved nothing, or its report has another form.
        OSError: an error of the disk.
    """
    try:
        report: Mapping[str, Any] = json.loads(done.stdout[done.stdout.index("{") :])
        code = int(report["jobs"][0]["error"])
    except (ValueError, LookupError, TypeError):
        words = " ".join(f"{done.stderr} {done.stdout}".split())[-_LAST_WORDS:]
        raise TrialFailed(f"fio ended with exit code {done.returncode}: {words}") from None
    if code:
        raise OSError(code, f"{os.strerror(code)} (fio)")
    with malformed_as(TrialFailed, "fio's report lacks a figure, or has another"):
        job = report["jobs"][0][operation]
        total_bytes, operations = int(job["io_bytes"]), int(job["total_ios"])
        if operations <= 0:
            raise TrialFailed("fio moved nothing: give a longer time or smaller blocks")
        by_percent = {round(float(q), 6): ns for q, ns in job["clat_ns"]["percentile"].items()}
        return Moved(
            bytes=total_bytes,
            seconds=max(int(job["runtime"]), 1) / 1e3,
            operations=[operations],
            latency_s={
                name: by_percent[round(q * 100, 6)] / 1e9
                for name, q in QUANTILES.items()
                if enough(operations, q)
            },
            physical_ratio=None if physical is None else physical / total_bytes,
            engine=str(report.get("fio version", "fio")),
        )
