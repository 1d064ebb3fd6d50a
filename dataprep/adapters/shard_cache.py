"""Remote shards copied ahead into local files, a bounded number of bytes at a time.

The files have no names: they are gone when this process ends, however it ends. What wants a
path is given that of a link to the one that Linux has for an open file. It is not given
``/proc/self/fd`` itself, since ImageRecordIter asks for the size of each entry of the folder
that its file lies in, and descriptors of other threads come and go there.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import threading
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import IO, NamedTuple, Protocol

from dataprep.manifest import ShardEntry

_MOST_FILES = 64  # a group: two groups are open at a time, and descriptors are few


class Reads(Protocol):
    """Where shards come from: a data set that is open."""

    def get(self, key: str) -> bytes:
        """All of an object."""
        ...


class _Copy(NamedTuple):
    file: IO[bytes]
    shard: ShardEntry


def copied_ahead(
    shards_of: Reads,
    shards: Sequence[ShardEntry],
    directory: str | os.PathLike[str] | None,
    limit_bytes: int,
) -> Generator[list[tuple[Path, ShardEntry]], None, None]:
    """Groups of shards as local files, the next group being copied meanwhile.

    The first group is one shard, so that reading begins soon, and each has twice as many as the
    one before, so that none is waited for long; up to 64, and half of ``limit_bytes``. Files are
    there until the next group is asked for or the iterator closed; a process that is killed
    leaves a folder of dead links.

    Raises:
        StoreError: a shard cannot be had.
        DatasetChanged: the split was made anew.
        OSError: no space, or no such directory.
    """
    groups = _groups(shards, limit_bytes // 2)
    if not groups:
        return
    stop = threading.Event()
    copy = partial(_copies, shards_of, directory, stop)
    with contextlib.ExitStack() as held, ThreadPoolExecutor(1) as thread:
        coming = thread.submit(copy, groups[0])
        # After the thread has ended: what it copied last is closed too.
        held.callback(lambda: _close(coming.result()) if coming.exception() is None else None)
        for following in [*groups[1:], []]:
            group = coming.result()
            coming = thread.submit(copy, following)
            try:
                with _linked(group, directory) as paths:
                    yield [(path, shard) for path, (_, shard) in zip(paths, group, strict=True)]
            except GeneratorExit:
                stop.set()
                raise
            finally:
                _close(group)


def _groups(shards: Sequence[ShardEntry], limit_bytes: int) -> list[list[ShardEntry]]:
    groups: list[list[ShardEntry]] = []
    size = most = 0
    for shard in shards:
        if not groups or size + shard.bytes > limit_bytes or len(groups[-1]) >= most:
            groups.append([])
            size, most = 0, min(_MOST_FILES, 2 ** (len(groups) - 1))
        groups[-1].append(shard)
        size += shard.bytes
    return groups


def _copies(
    shards_of: Reads,
    directory: str | os.PathLike[str] | None,
    stop: threading.Event,
    shards: Sequence[ShardEntry],
) -> list[_Copy]:
    copies: list[_Copy] = []
    try:
        for shard in shards:
            if stop.is_set():
                break
            file = tempfile.TemporaryFile(dir=directory)  # noqa: SIM115  closed by who takes it
            copies.append(_Copy(file, shard))
            file.write(shards_of.get(shard.key))
            file.flush()
    except BaseException:
        _close(copies)
        raise
    return copies


@contextlib.contextmanager
def _linked(
    copies: Sequence[_Copy], directory: str | os.PathLike[str] | None
) -> Generator[list[Path], None, None]:
    # Not a TemporaryDirectory: the garbage collector would warn of an iterator that was dropped.
    folder = Path(tempfile.mkdtemp(prefix="dataprep-", dir=directory))
    try:
        paths = [folder / f"{number}.rec" for number in range(len(copies))]
        for path, copy in zip(paths, copies, strict=True):
            path.symlink_to(f"/proc/self/fd/{copy.file.fileno()}")
        yield paths
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _close(copies: Sequence[_Copy]) -> None:
    for copy in copies:
        copy.file.close()
