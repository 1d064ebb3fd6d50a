"""One trial of the disk probe, and the test files that it reads and writes."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from dataprep.schema import typed
from iobench.errors import TrialFailed, Unavailable
from iobench.machine.mounts import file_system
from iobench.machine.page_cache import prepared
from iobench.probes.engines import by_fio, by_processes
from iobench.probes.processes import Moved
from iobench.probes.settings import DiskTrial
from iobench.trial import Context, Metrics, Outcome, TrialSpec

# 64 random bits make a name ours; that of a file to read is the same each time, and its content
# is checked.
_PASSING = re.compile(r"\.iobench-(write|partial)-[0-9a-f]{16}")
_TO_READ = re.compile(r"\.iobench-read-(\d+)")
_CHECKED_BYTES = 4096
_PIECE_BYTES = 2**23
# Written in whole and synced, a file still takes a little more than its bytes.
_SPARE_BYTES = 2**24
_FULL = (errno.ENOSPC, errno.EDQUOT)
_REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS)


def run(spec: TrialSpec, context: Context) -> Outcome:
    """Read or write blocks of a test file, side by side, for a while.

    Cold and direct trials touch no byte twice and end with the file; warm ones start over.

    Raises:
        Unavailable: the target does not exist, or not O_DIRECT there, or not the engine.
        TrialFailed: it is full, may not be written to, or gave other than whole blocks.
    """
    trial = typed(DiskTrial, {**spec.params, "repeat": spec.repeat})
    folder = Path(context.places[f"disk/{trial.target}"].uri).expanduser()
    move = by_fio if trial.engine == "fio" else by_processes
    if trial.operation == "read":
        path = file_to_read(folder, trial.file_bytes, trial.target)
        cache = prepared(trial.cache, [path], trial.drop_caches)
        moved = move(path, trial, context.clock, context.progress)
        cold = cache.judged(moved.physical_ratio, sequential=trial.pattern == "sequential")
        return Outcome(_metrics(moved), cold)
    with file_to_write(folder, trial.file_bytes, trial.target) as path:
        moved = move(path, trial, context.clock, context.progress)
        if trial.is_direct:
            return Outcome(_metrics(moved))
        # A buffered write is done when the disk has it.
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


def clean(folder: Path) -> None:
    """Remove every test file from ``folder``, also what a killed trial left there.

    A file of the same name that somebody else made stays.
    """
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            if _PASSING.fullmatch(path.name) or _is_ours_to_read(path):
                path.unlink(missing_ok=True)


def file_to_read(folder: Path, size_bytes: int, target: str) -> Path:
    """A file of random bytes that is on the disk; one that an earlier trial made is used again.

    Raises:
        Unavailable: there is no such folder.
        TrialFailed: it cannot be written to, or is full, or holds another file of that name.
    """
    path = folder / f".iobench-read-{size_bytes}"
    partial = folder / f".iobench-partial-{secrets.token_hex(8)}"
    with _translated(target, folder):
        if os.path.lexists(path):
            if not _is_ours_to_read(path):
                raise TrialFailed(
                    f"target {target!r}: {path} is there, and iobench did not make it: move it "
                    "away, or choose another file_bytes"
                )
            if path.stat().st_size == size_bytes:
                return path
        _require_room(folder, size_bytes, target)
        generator = _content(size_bytes)
        try:
            with partial.open("xb") as file:
                os.posix_fallocate(file.fileno(), 0, size_bytes)  # in one piece, or refused at once
                for start in range(0, size_bytes, _PIECE_BYTES):
                    file.write(generator.bytes(min(size_bytes - start, _PIECE_BYTES)))
                file.flush()
                os.fsync(file.fileno())
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    return path


@contextlib.contextmanager
def file_to_write(folder: Path, size_bytes: int, target: str) -> Iterator[Path]:
    """An empty file with all its room allocated, as fio's default is; gone after the block.

    Raises:
        Unavailable: there is no such folder.
        TrialFailed: it cannot be written to, or is full, also by the block.
    """
    path = folder / f".iobench-write-{secrets.token_hex(8)}"
    with _translated(target, folder):
        _require_room(folder, size_bytes, target)
        try:
            with path.open("xb") as file:
                os.posix_fallocate(file.fileno(), 0, size_bytes)
                os.fsync(file.fileno())
            yield path
        finally:
            path.unlink(missing_ok=True)


def _is_ours_to_read(path: Path) -> bool:
    """Whether it begins as a file that we made of the size in its name; a link never is."""
    match = _TO_READ.fullmatch(path.name)
    if not match or path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        begin = file.read(_CHECKED_BYTES)
    return begin == _content(int(match[1])).bytes(_CHECKED_BYTES)[: len(begin)]


def _content(size_bytes: int) -> np.random.Generator:
    """Random, so that no layer below can compress it; always the same, so that it is known."""
    return np.random.Generator(np.random.SFC64(size_bytes))


def _require_room(folder: Path, size_bytes: int, target: str) -> None:
    free_bytes = shutil.disk_usage(folder).free
    if free_bytes < size_bytes + min(_SPARE_BYTES, size_bytes):
        raise TrialFailed(
            f"target {target!r} is full: {free_bytes / 1e6:,.0f} MB are free in {folder} "
            f"({file_system(folder)}), the test file takes {size_bytes / 1e6:,.0f} MB"
        )


@contextlib.contextmanager
def _translated(target: str, folder: Path) -> Iterator[None]:
    """Refuse what is no folder, and turn errors of the operating system into failed trials."""
    if not folder.exists():
        raise Unavailable(f"target {target!r}: {folder} does not exist")
    if not folder.is_dir():
        raise TrialFailed(f"target {target!r}: {folder} is not a directory")
    try:
        yield
    except OSError as error:
        reason = f"target {target!r}: {folder}: {error.strerror or error}"
        if error.errno in _FULL:
            reason = f"target {target!r} is full: {folder}: {error.strerror}"
        elif error.errno in _REFUSED:
            reason = (
                f"target {target!r}: {folder} may not be written to: {error.strerror}; the probe "
                "reads and writes files of its own, so give a folder on that disk that may be"
            )
        raise TrialFailed(reason) from None
