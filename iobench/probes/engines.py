"""The two engines of the disk probe: processes of this program, and fio.

fio's options and the JSON that it writes: https://fio.readthedocs.io.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import json
import math
import mmap
import os
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dataprep.schema import malformed_as
from iobench.clock import Clock
from iobench.errors import TrialFailed, Unavailable
from iobench.machine.coldness import IN_MEMORY
from iobench.machine.mounts import file_system
from iobench.machine.page_cache import physical_read_bytes
from iobench.machine.processes import find_program
from iobench.probes.processes import Lane, Progress, drive
from iobench.probes.settings import DiskOperation, DiskTrial
from iobench.stats import QUANTILES, enough, quantiles

_OPERATIONS_PER_S = 400_000  # more than Python can do: bounds what is prepared
_MALLOC_HEADER = 16  # glibc's, of a block that is mapped by itself
_LAST_WORDS = 300
_MOST_ERRNO = 4096


class Moved(NamedTuple):
    """Bytes and operations, and the seconds from the first start to the last end.

    ``latency_s``: quantiles of an operation by name (``p50``), those that enough operations stand
    behind. ``physical_ratio``: bytes that storage gave / bytes moved, None where the kernel does
    not count them. ``engine``: name and version of another program.
    """

    bytes: int
    seconds: float
    operations: int
    latency_s: Mapping[str, float]
    physical_ratio: float | None
    engine: str = ""


def move(path: Path, trial: DiskTrial, clock: Clock, progress: Progress) -> Moved:
    """Read or write blocks of ``path`` with the trial's engine, for a while.

    Raises:
        Unavailable: O_DIRECT is refused there, or fio is not installed.
        TrialFailed: other than whole blocks were moved, or a process or fio failed.
        OSError: an error of the disk.
    """
    engine = by_fio if trial.engine == "fio" else by_processes
    return engine(path, trial, clock, progress)


def by_processes(path: Path, trial: DiskTrial, clock: Clock, progress: Progress) -> Moved:
    """Move blocks in several processes of this program.

    Sequential processes have a contiguous region each; random ones share the whole file. What is
    not warm is touched once, and ends with the file; warm reads start over at the end.
    """
    shape = (trial.file_bytes, trial.block_bytes, trial.parallelism)
    at_most = max(trial.parallelism, int(trial.seconds * _OPERATIONS_PER_S))
    if trial.pattern == "sequential":
        parts = sequential_offsets(*shape)
    else:
        parts = random_offsets(*shape, at_most=at_most, seed=trial.repeat)
    opened = partial(
        opened_blocks, path, trial.operation, trial.block_bytes, direct=trial.is_direct
    )
    lanes = []
    for part in parts:
        work: Iterable[int] = part
        if trial.cache == "warm":
            work = itertools.islice(itertools.cycle(part), at_most)
        lanes.append(Lane(opened, work))
    tally = drive(lanes, clock, trial.seconds, progress)
    operations = sum(tally.operations)
    latency_s = quantiles(tally.latencies_s)
    return Moved(tally.bytes, tally.seconds, operations, latency_s, tally.physical_ratio)


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
    with _refusal_of_direct(path, direct):
        descriptor = os.open(path, flags)
    try:
        with _block_memory(block_bytes, direct) as memory:
            buffers, preadv, pwritev = [memory], os.preadv, os.pwritev

            def read(offset: int) -> int:
                got = preadv(descriptor, buffers, offset)
                return got if got == block_bytes else _too_short(got, block_bytes, offset)

            def write(offset: int) -> int:
                memory[:8] = offset.to_bytes(8, "little")
                done = pwritev(descriptor, buffers, offset)
                return done if done == block_bytes else _too_short(done, block_bytes, offset)

            if direct and reads:
                with _refusal_of_direct(path, direct):
                    read(0)  # some file systems refuse the read, not the opening
            yield read if reads else write
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


def _too_short(done: int, wanted: int, offset: int) -> int:
    raise TrialFailed(f"{done:,} of {wanted:,} bytes at offset {offset:,}: the file changed")


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
    moved = fio_figures(_fio_report(done), trial.operation, physical)
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


def _fio_report(done: subprocess.CompletedProcess[str]) -> Mapping[str, Any]:
    """fio's JSON; warnings may come before it."""
    try:
        report: Mapping[str, Any] = json.loads(done.stdout[done.stdout.index("{") :])
        code = report["jobs"][0]["error"]
    except (ValueError, LookupError, TypeError, RecursionError):
        words = " ".join(f"{done.stderr} {done.stdout}".split())[-_LAST_WORDS:]
        raise TrialFailed(f"fio ended with exit code {done.returncode}: {words}") from None
    if type(code) is not int or not 0 <= code < _MOST_ERRNO:
        raise TrialFailed(f"fio reports an error number that is none: {str(code)[:40]!r}")
    if code:
        raise OSError(code, f"{os.strerror(code)} (fio)")
    return report


def fio_figures(report: Mapping[str, Any], operation: str, physical: int | None) -> Moved:
    """PURE. The figures of the one group of jobs.

    Raises:
        TrialFailed: it moved nothing, or its report has another form.
    """
    with malformed_as(TrialFailed, "fio's report lacks a figure, or has another"):
        job = report["jobs"][0][operation]
        total_bytes, operations = int(job["io_bytes"]), int(job["total_ios"])
        if operations <= 0:
            raise TrialFailed("fio moved nothing: give a longer time or smaller blocks")
        by_percent = {round(float(q), 6): ns for q, ns in job["clat_ns"]["percentile"].items()}
        latency_s = {
            name: by_percent[round(q * 100, 6)] / 1e9
            for name, q in QUANTILES.items()
            if enough(operations, q)
        }
        if total_bytes <= 0 or not all(0 <= each < math.inf for each in latency_s.values()):
            raise ValueError("a figure below 0, or none")
        return Moved(
            bytes=total_bytes,
            seconds=max(int(job["runtime"]), 1) / 1e3,
            operations=operations,
            latency_s=latency_s,
            physical_ratio=None if physical is None else physical / total_bytes,
            engine=str(report.get("fio version", "fio")),
        )
