"""One trial of the disk probe: its test files, and the engines that read and write them.

An engine is processes of this program, or fio. fio's options and the JSON that it writes are
described at https://fio.readthedocs.io.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import json
import mmap
import os
import secrets
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dataprep.schema import malformed_as, typed
from iobench.clock import Clock
from iobench.errors import TrialFailed, Unavailable
from iobench.machine.coldness import IN_MEMORY
from iobench.machine.mounts import file_system
from iobench.machine.page_cache import physical_read_bytes, prepared
from iobench.machine.processes import find_program, starting
from iobench.numbers import size
from iobench.probes.processes import Moved, Progress, drive
from iobench.probes.settings import DiskOperation, DiskTrial
from iobench.stats import QUANTILES, enough
from iobench.trial import Context, Metrics, Outcome, TrialSpec

FOLDER = ".iobench-probe-"
"""Begins the name of the folder that a run makes in a target; the rest is the run's own name."""

_PIECE_BYTES = 2**23
# A file takes a little more room than its bytes.
_SPARE_BYTES = 2**24
_OPERATIONS_PER_S = 400_000  # more than Python can do; bounds the number of prepared offsets
_MALLOC_HEADER = 16  # in front of a large block of glibc
_LAST_WORDS = 300


def run(spec: TrialSpec, context: Context) -> Outcome:
    """Read or write blocks of a test file in parallel for some seconds.

    Cold and direct trials touch each byte at most once and end with the file; warm ones start over.
    The place of the target is the run's own folder in it (``folder_of_run``).

    Raises:
        Unavailable: the target does not exist, O_DIRECT does not work there, or the engine is
            missing.
        TrialFailed: the target is full, cannot be written to, or moved part of a block.
    """
    trial = typed(DiskTrial, {**spec.params, "repeat": spec.repeat})
    folder = Path(context.places[f"disk/{trial.target}"].uri).expanduser()
    move = by_fio if trial.engine == "fio" else by_processes
    if trial.operation == "read":
        path = file_to_read(folder, trial.file_bytes, trial.target)
        cache = prepared(trial.cache, [path], trial.drop_caches)
        context.begin()
        moved = move(path, trial, context.clock, context.progress)
        cold = cache.judged(moved.physical_ratio, sequential=trial.pattern == "sequential")
        return Outcome(_metrics(moved), cold)
    with file_to_write(folder, trial.file_bytes, trial.target) as path:
        context.begin()
        moved = move(path, trial, context.clock, context.progress)
        if trial.cache == "direct":
            return Outcome(_metrics(moved))
        # A buffered write is complete when its data are on the disk.
        written_s = context.clock.now_s()
        with path.open("rb") as file:
            os.fsync(file.fileno())
        fsync_s = context.clock.now_s() - written_s
        whole = moved._replace(seconds=moved.seconds + fsync_s)
        return Outcome({**_metrics(whole), "fsync_s": fsync_s})


def _metrics(moved: Moved) -> Metrics:
    iops = sum(moved.operations) / max(moved.seconds, 1e-9)
    engine = {"engine": moved.engine} if moved.engine else {}
    return {**moved.metrics(), "iops": iops, **engine}


def folder_of_run(target: Path, run: str) -> Path:
    """The folder in a target that holds the test files of one run, and nothing else."""
    return target / f"{FOLDER}{run}"


def clean(target: Path, run: str) -> None:
    """Remove the test files of one run, also those that a killed trial left; no other files.

    Raises:
        OSError: they cannot be removed.
    """
    folder = folder_of_run(target, run)
    if os.path.lexists(folder):
        shutil.rmtree(folder)


def file_to_read(folder: Path, size_bytes: int, target: str) -> Path:
    """Return a file of random bytes that is on the disk; make it if an earlier trial did not.

    ``folder`` is the run's own; it is made if it does not exist.

    Raises:
        Unavailable: the folder of the target does not exist.
        TrialFailed: it cannot be written to, or is full.
    """
    path = folder / f"read-{size_bytes}"
    with _translated(target, folder.parent):
        if path.exists() and path.stat().st_size == size_bytes:
            return path
        # Random, so that no layer below can compress the file.
        generator = np.random.Generator(np.random.SFC64(size_bytes))
        with file_to_write(folder, size_bytes, target) as made, made.open("r+b") as file:
            for start in range(0, size_bytes, _PIECE_BYTES):
                file.write(generator.bytes(min(size_bytes - start, _PIECE_BYTES)))
            file.flush()
            os.fsync(file.fileno())
            made.replace(path)
    return path


@contextlib.contextmanager
def file_to_write(folder: Path, size_bytes: int, target: str) -> Iterator[Path]:
    """Make an empty file with all its room allocated, as fio does; remove it after the block.

    ``folder`` is the run's own; it is made if it does not exist.

    Raises:
        Unavailable: the folder of the target does not exist.
        TrialFailed: it cannot be written to, or is full, also by the block.
    """
    path = folder / f"write-{secrets.token_hex(8)}"
    with _translated(target, folder.parent):
        folder.mkdir(exist_ok=True)
        free_bytes = shutil.disk_usage(folder).free
        if free_bytes < size_bytes + min(_SPARE_BYTES, size_bytes):
            raise TrialFailed(
                f"target {target!r} is full: {size(free_bytes)} are free in "
                f"{folder.parent} ({file_system(folder)}), the test file takes "
                f"{size(size_bytes)}"
            )
        try:
            with path.open("xb") as file:
                os.posix_fallocate(file.fileno(), 0, size_bytes)  # in one piece, or refused at once
                os.fsync(file.fileno())
            yield path
        finally:
            path.unlink(missing_ok=True)


@contextlib.contextmanager
def _translated(target: str, folder: Path) -> Iterator[None]:
    """Require a folder, and turn errors of the operating system into failed trials."""
    if not folder.exists():
        raise Unavailable(f"target {target!r}: {folder} does not exist")
    if not folder.is_dir():
        raise TrialFailed(f"target {target!r}: {folder} is not a directory")
    try:
        yield
    except OSError as error:
        reason = f"target {target!r}: {folder}: {error.strerror or error}"
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            reason = f"target {target!r} is full: {folder}: {error.strerror}"
        elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            reason = (
                f"target {target!r}: {folder} may not be written to: {error.strerror}; the probe "
                "reads and writes its own files: give a folder on that disk that you may write to"
            )
        raise TrialFailed(reason) from None


def by_processes(path: Path, trial: DiskTrial, clock: Clock, progress: Progress) -> Moved:
    """Move blocks in several processes of this program.

    Each sequential process has a contiguous region; random processes share the whole file. Warm
    reads start over at the end of the file; all others touch each block at most once.
    """
    shape = (trial.file_bytes, trial.block_bytes, trial.parallelism)
    at_most = max(trial.parallelism, int(trial.seconds * _OPERATIONS_PER_S))
    shares: list[Iterable[int]] = [*sequential_offsets(*shape)]
    if trial.pattern == "random":
        shares = [*random_offsets(*shape, at_most=at_most, seed=trial.repeat)]
    if trial.cache == "warm":
        shares = [itertools.islice(itertools.cycle(share), at_most) for share in shares]
    opened = partial(
        opened_blocks, path, trial.operation, trial.block_bytes, direct=trial.cache == "direct"
    )
    return drive(opened, shares, clock, trial.seconds, progress)


def sequential_offsets(file_bytes: int, block_bytes: int, processes: int) -> list[Sequence[int]]:
    """PURE. Give each process the offsets of the blocks in a contiguous region of its own.

    Regions are equally long; blocks that do not divide evenly are left out at the end.
    """
    region_bytes = file_bytes // block_bytes // processes * block_bytes
    starts = [number * region_bytes for number in range(processes)]
    return [range(start, start + region_bytes, block_bytes) for start in starts]


def random_offsets(
    file_bytes: int, block_bytes: int, processes: int, *, at_most: int, seed: int = 0
) -> list[Sequence[int]]:
    """PURE. Give each process offsets of whole blocks, shuffled; no block occurs twice.

    All processes have the same number, and together the whole file or ``at_most`` blocks.
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
    """Open a file; yield a function that moves the block at an offset and returns its bytes.

    A written block is random, with its offset in the first eight bytes. The kernel gets no advice
    on the pattern, since loaders give none (fio does without ``--fadvise_hint=0``).

    Raises:
        Unavailable: O_DIRECT is refused, or the file is in memory.
        TrialFailed: the function moved part of a block.
    """
    reads = operation == "read"
    flags = os.O_CLOEXEC | (os.O_RDONLY if reads else os.O_WRONLY)
    kind = file_system(path)
    if direct:
        flags |= os.O_DIRECT
        if kind in IN_MEMORY:
            raise Unavailable(f"O_DIRECT: {path.parent} is {kind}, memory with no device below it")
    call = os.preadv if reads else os.pwritev
    # Private memory, since shared memory would reach the device in smaller pieces. Ordinary pages,
    # not huge ones: programs seldom use those, and a device reads into them 1.3 to 1.7 times as
    # fast. A block that is copied from the page cache starts behind malloc's header in its page,
    # as in most programs: some processors copy to the start of a page 10 % slower.
    first = 0 if direct else _MALLOC_HEADER
    flags_of_memory = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    with (
        mmap.mmap(-1, first + block_bytes, flags=flags_of_memory) as pages,
        memoryview(pages) as whole,
        whole[first:] as memory,
    ):
        # Touched now, not in the first operation; random, so that nothing can compress it.
        memory[:] = os.urandom(block_bytes)
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
            descriptor = os.open(path, flags)
            try:
                if direct and reads:
                    move(0)  # some file systems refuse the read, not the opening
                yield move
            finally:
                os.close(descriptor)
        except OSError as error:
            if not direct or error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
                raise
            raise Unavailable(
                f"O_DIRECT is refused by {kind or 'the file system'} at {path.parent}: give a "
                "path on the file system of a disk, or leave direct out of cache"
            ) from None


def by_fio(path: Path, trial: DiskTrial, clock: Clock, progress: Progress) -> Moved:
    """Let fio move blocks and measure the time.

    Each of its jobs has a contiguous region, also in random order.
    """
    program = find_program("fio")
    if program is None:
        raise Unavailable("fio is not installed: Debian's and Ubuntu's package is called fio")
    if trial.cache == "direct":
        with opened_blocks(path, trial.operation, trial.block_bytes, direct=True):
            """Raise a refusal of O_DIRECT with the message of the other engine."""
    before = physical_read_bytes()
    with starting("fio"):
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

    Jobs are threads, so that no process outlives a trial that is killed. fio gives the kernel no
    advice on the pattern, evicts nothing, and touches each block once unless the cache is warm.
    """
    region_bytes = trial.file_bytes // trial.block_bytes // trial.parallelism * trial.block_bytes
    order = "rand" if trial.pattern == "random" else ""
    options = {
        "name": "iobench",
        "filename": os.fspath(path).replace(":", r"\:"),  # a bare colon separates files
        "rw": order + trial.operation,
        "bs": trial.block_bytes,
        "numjobs": trial.parallelism,
        "size": region_bytes,
        "offset_increment": region_bytes,
        "runtime": f"{round(trial.seconds * 1e6)}us",
        "time_based": int(trial.cache == "warm"),
        "direct": int(trial.cache == "direct"),
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
    """PURE. Read the figures of all jobs together from fio's JSON, which may follow warnings.

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
    with malformed_as(TrialFailed, "fio's report does not have the expected figures"):
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
