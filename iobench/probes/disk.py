"""One trial of the disk probe, and its test files.

The engine that reads and writes blocks is built in (``blocks``), or it is fio (``fio``).
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from dataprep.schema import typed
from iobench.errors import TrialFailed, Unavailable
from iobench.machine.mounts import file_system
from iobench.machine.page_cache import prepare_cache
from iobench.probes.blocks import move_by_processes
from iobench.probes.fio import move_by_fio
from iobench.probes.parallel import Moved
from iobench.probes.settings import DiskTrial
from iobench.results.numbers import size
from iobench.results.trial import Context, Metrics, Outcome, TrialSpec

FOLDER = ".iobench-probe-"
"""The beginning of the name of the folder that a run makes in a target. The run id follows."""

_PIECE_BYTES = 2**23
"""The number of random bytes that are made and written at a time."""
_SPARE_BYTES = 2**24
"""Space that must remain free, because a file takes a little more space than it has bytes. For a
smaller file, its own size must remain free."""


def run(spec: TrialSpec, context: Context) -> Outcome:
    """Read or write blocks of a test file in parallel for some seconds.

    Warm reads start again after the last block. Other trials touch each byte at most once, and end
    early if all blocks have been moved. The test files are in the run's own folder
    (``folder_of_run``).

    Raises:
        Unavailable: the target does not exist, O_DIRECT does not work there, or the engine is
            missing.
        TrialFailed: the target is full or cannot be written to, an operation moved only a part of a
            block, or a process of the probe has failed.
    """
    trial = typed(DiskTrial, {**spec.params, "repeat": spec.repeat})
    folder = Path(context.locations[f"disk/{trial.target}"].uri).expanduser()
    move = move_by_fio if trial.engine == "fio" else move_by_processes
    if trial.operation == "read":
        path = file_to_read(folder, trial.file_bytes, trial.target)
        cache = prepare_cache(trial.cache, [path], trial.drop_caches)
        context.begin()
        moved = move(path, trial, context.clock, context.progress)
        cold = cache.judged(moved.physical_ratio, sequential=trial.pattern == "sequential")
        return Outcome(_metrics(moved), cold)
    with file_to_write(folder, trial.file_bytes, trial.target) as path:
        context.begin()
        moved = move(path, trial, context.clock, context.progress)
        if trial.cache == "direct":
            return Outcome(_metrics(moved))
        # Buffered writes are complete only when their data are on the disk, so the time of fsync
        # counts.
        written_s = context.clock.now_s()
        with path.open("rb") as file:
            os.fsync(file.fileno())
        fsync_s = context.clock.now_s() - written_s
        with_fsync = moved._replace(seconds=moved.seconds + fsync_s)
        return Outcome({**_metrics(with_fsync), "fsync_s": fsync_s})


def _metrics(moved: Moved) -> Metrics:
    """Return the figures of a trial; with the engine if it is not the built-in one."""
    iops = sum(moved.operations) / max(moved.seconds, 1e-9)
    engine = {"engine": moved.engine} if moved.engine else {}
    return {**moved.metrics(), "iops": iops, **engine}


def folder_of_run(target: Path, run: str) -> Path:
    """Return the folder in a target that holds the test files of one run, and nothing else."""
    return target / f"{FOLDER}{run}"


def clean(target: Path, run: str) -> None:
    """Remove the test files of one run, also files that a killed trial has left.

    Files of other runs are not removed.

    Raises:
        OSError: the files cannot be removed.
    """
    folder = folder_of_run(target, run)
    if os.path.lexists(folder):
        shutil.rmtree(folder)


def file_to_read(folder: Path, size_bytes: int, target: str) -> Path:
    """Return a file of random bytes on the disk. It is made if it does not exist yet.

    The file is made under another name, so that a file with the name is always complete.

    Args:
        folder: the run's own folder; it is made if it does not exist.
        size_bytes: the size of the file.
        target: the label of the target, for messages.

    Raises:
        Unavailable: the folder of the target does not exist.
        TrialFailed: the target cannot be written to, or is full.
    """
    path = folder / f"read-{size_bytes}"
    with _explained_errors(target, folder.parent):
        if path.exists() and path.stat().st_size == size_bytes:
            return path
        # The bytes are random, so that no layer below can compress the file.
        generator = np.random.Generator(np.random.SFC64(size_bytes))
        with file_to_write(folder, size_bytes, target) as new_path, new_path.open("r+b") as file:
            for start in range(0, size_bytes, _PIECE_BYTES):
                file.write(generator.bytes(min(size_bytes - start, _PIECE_BYTES)))
            file.flush()
            os.fsync(file.fileno())
            new_path.replace(path)
    return path


@contextlib.contextmanager
def file_to_write(folder: Path, size_bytes: int, target: str) -> Iterator[Path]:
    """Make a file, allocate its space as fio does, and remove the file after the ``with`` block.

    The block may rename the file to keep it.

    Args:
        folder: the run's own folder; it is made if it does not exist.
        size_bytes: the size of the file.
        target: the label of the target, for messages.

    Raises:
        Unavailable: the folder of the target does not exist.
        TrialFailed: the target cannot be written to, or is full. An ``OSError`` of the ``with``
            block is also raised as ``TrialFailed``.
    """
    path = folder / f"write-{secrets.token_hex(8)}"
    with _explained_errors(target, folder.parent):
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
                # The space is allocated in one piece, or refused at once.
                os.posix_fallocate(file.fileno(), 0, size_bytes)
                os.fsync(file.fileno())
            yield path
        finally:
            path.unlink(missing_ok=True)


@contextlib.contextmanager
def _explained_errors(target: str, folder: Path) -> Iterator[None]:
    """Check that the folder of a target exists, and turn ``OSError`` into ``TrialFailed``.

    Args:
        target: the label of the target, for messages.
        folder: the folder.

    Raises:
        Unavailable: the folder does not exist.
        TrialFailed: it is no folder, or the block raised ``OSError``.
    """
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
                f"target {target!r}: {folder} cannot be written to: {error.strerror}. The probe "
                "reads and writes its own files: give a folder on that disk that you may write to"
            )
        raise TrialFailed(reason) from None
