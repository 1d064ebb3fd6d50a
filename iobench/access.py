"""How a loader reaches data on a store: the access modes of training services.

Modes are ``file`` (downloaded first), ``pipe`` (a stream), ``lazy`` (one range request for each
sample) and ``mount``.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import shutil
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

import numpy as np
from pydantic import Field

from dataprep.stores import s3
from iobench.data.copying import Part, copy
from iobench.data.settings import split_name
from iobench.errors import Unavailable
from iobench.loaders.own import SYNTHETIC
from iobench.loaders.protocol import Batch, BuffersSamples, CountsBatches, Framework, Loader
from iobench.machine.hardware import memory_bytes
from iobench.machine.processes import peak_memory
from iobench.numbers import size
from iobench.stored import Stored, stored
from iobench.trial import Params, Place

Access: TypeAlias = Literal["direct", "file", "pipe", "lazy", "mount"]
Connections: TypeAlias = Annotated[int, Field(ge=1, le=256)]
ShuffleBuffer: TypeAlias = Annotated[int, Field(ge=1, le=100_000_000)]

DIRECT = "direct"
"""The loader reads in its own way; disk and memory are not measured."""

MODES: Mapping[str, str] = {
    "file": "everything is downloaded to a local folder, then read there",
    "pipe": "whole objects in sequence, shuffled by key and by a buffer of samples",
    "lazy": "one range request for each sample",
    "mount": "files at a path: a FUSE mount, NFS, or any folder",
}
"""What each mode does."""

SETTINGS: Mapping[str, str] = {"file": "connections", "pipe": "shuffle_buffer"}
"""The config key that only this mode uses."""

# How loaders of other packages use a store is not known here.
_LOADERS = {"pipe": frozenset({"torch-iterable", "tf-data"}), "lazy": frozenset({"torch-map"})}
_ENTRY = struct.Struct("3d")  # bytes, seconds to the first, seconds to the last
_REFUSED = -1.0  # in place of bytes


def suits(access: str, loader: str) -> bool:
    """Whether a loader can read in that mode.

    ``pipe`` needs a loader with a shuffle buffer, ``lazy`` one that requests single samples. Every
    loader that reads can read files on a disk.
    """
    if access == DIRECT:
        return True
    return loader not in SYNTHETIC and loader in _LOADERS.get(access, {loader})


def suiting(access: str) -> str:
    """The names of the loaders of a mode, for a message."""
    return " or ".join(sorted(_LOADERS.get(access, ["any that reads"])))


def data_of(access: str, name: str) -> str | None:
    """The data that a trial reads; None if the mode has nothing to read.

    ``mount`` reads files on a disk, the other modes read only what is on a store.
    """
    if access == "mount":
        return f"{name.rpartition('@')[0]}@disk"
    return name if access == DIRECT or split_name(name)[2] else None


def downloaded(place: Place, reads: str, folder: Path, connections: int) -> Place:
    """Copy the data of a place to ``folder``, which exists.

    Shards of the format ``reads`` and their tables are copied, or all files.

    Raises:
        Unavailable: there is too little room for them; nothing is copied.
        DatasetChanged: the shards were made anew meanwhile.
        StoreError: an object cannot be read.
        OSError: it cannot be written.
    """

    def require_room(needed_bytes: int) -> None:
        free = shutil.disk_usage(folder).free
        if needed_bytes > free:
            raise Unavailable(
                f"access file needs {size(needed_bytes)} on the disk of the run's folder, "
                f"which has {size(free)} free: choose an --output on a larger one, or "
                "another access"
            )

    local = replace(place, uri=str(folder))
    part = Part({reads}, indexes=False)
    copy(place, local, part, at_once=connections, require_room=require_room)
    return local


class DownloadedLoader:
    """The loader that ``build`` makes, over a copy of ``place`` in ``folder`` / ``download``.

    The copy begins when the first epoch begins, and ``close`` removes it. Before that the
    loader is built over ``place`` itself, so that frameworks are imported before any clock runs.
    """

    def __init__(
        self,
        place: Place,
        build: Callable[[Place], Loader],
        folder: Path,
        *,
        batch_size: int,
        connections: int,
    ) -> None:
        self._place, self._build = place, build
        self._folder = folder / "download"
        self._batch_size, self._connections = batch_size, connections
        self._inner = build(place)
        self.notes: Sequence[str] = self._inner.notes
        self.framework: Framework = self._inner.framework
        self.reads: str | None = self._inner.reads
        self._copied = "files" if self.reads is None else self.reads
        self.disk_bytes = 0

    def whole_batches(self) -> int:
        """The number of whole batches in epoch 0."""
        if isinstance(self._inner, CountsBatches):
            return self._inner.whole_batches()
        return stored(self._place, self._copied).samples // self._batch_size

    def epoch(self, number: int) -> Iterator[Batch]:
        """The loader's epoch; the first time after the download."""
        if not self.disk_bytes:
            self._folder.mkdir(parents=True)
            local = downloaded(self._place, self._copied, self._folder, self._connections)
            files = [path for path in self._folder.rglob("*") if path.is_file()]
            self.disk_bytes = sum(path.stat().st_blocks * 512 for path in files)
            self._inner.close()
            self._inner = self._build(local)
            self.notes = self._inner.notes
        yield from self._inner.epoch(number)

    def close(self) -> None:
        """End the loader and remove the copy."""
        self.notes = self._inner.notes  # it may have noted more meanwhile
        try:
            self._inner.close()
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)


class Fetched(NamedTuple):
    """Answered GETs, those of single ranges included, and their bytes.

    ``first_byte_s`` and ``whole_s`` are sums over all GETs of the seconds until the answer began
    and until it was complete. ``refused``: answers 503 and 429, to any request.
    """

    requests: int = 0
    bytes: int = 0
    first_byte_s: float = 0.0
    whole_s: float = 0.0
    refused: int = 0

    @property
    def metrics(self) -> dict[str, float]:
        """Metrics of a trial: sums, and means per GET if there was one."""
        found: dict[str, float] = {
            "store_requests": self.requests,
            "store_read_bytes": self.bytes,
            "store_refused": self.refused,
        }
        if self.requests:
            found["store_first_byte_s"] = self.first_byte_s / self.requests
            found["store_get_s"] = self.whole_s / self.requests
        return found


def added(several: Iterable[Fetched]) -> Fetched:
    """The sum over processes that read at the same time."""
    return Fetched(*map(sum, zip(*several, strict=True)))


class Counter(logging.Handler):
    """Counts requests during ``counting``; ``fetched`` may be called at any time in it."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(logging.DEBUG)
        self._descriptor = descriptor

    def emit(self, record: logging.LogRecord) -> None:
        """Write GETs and refusals; ignore other log lines."""
        if record.msg == s3.GOT and isinstance(record.args, tuple):
            os.write(self._descriptor, _ENTRY.pack(*record.args[1:]))
        elif record.msg == s3.REFUSED:
            os.write(self._descriptor, _ENTRY.pack(_REFUSED, 0.0, 0.0))

    def fetched(self) -> Fetched:
        """All requests so far."""
        data = os.pread(self._descriptor, os.fstat(self._descriptor).st_size, 0)
        entries = np.frombuffer(data).reshape(-1, 3)
        gets = entries[entries[:, 0] != _REFUSED]
        size, first_s, whole_s = gets.sum(axis=0).tolist()
        return Fetched(len(gets), int(size), first_s, whole_s, len(entries) - len(gets))


@contextlib.contextmanager
def counting() -> Iterator[Counter]:
    """Count requests to S3 while the block runs, also of processes that are forked meanwhile.

    The store logs each answered GET, and each answer that asks for fewer requests. The counter
    writes them, as 24 bytes each, to a file in memory that forked processes share. Writes are
    whole, since the file is opened for appending (open(2), O_APPEND), and need no lock that a
    killed worker might hold.
    """
    descriptor = os.memfd_create("fetched")
    flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
    fcntl.fcntl(descriptor, fcntl.F_SETFL, flags | os.O_APPEND)
    log = logging.getLogger(s3.__name__)
    level, propagates = log.level, log.propagate
    counter = Counter(descriptor)
    log.addHandler(counter)
    log.setLevel(logging.DEBUG)
    log.propagate = False  # these lines are for the counter alone
    try:
        yield counter
    finally:
        log.removeHandler(counter)
        log.setLevel(level)
        log.propagate = propagates
        os.close(descriptor)


@contextlib.contextmanager
def metered(
    params: Params, loader: Loader, place: Place | None, data: Stored | None
) -> Iterator[Mapping[str, Any]]:
    """Measure the requests and the resources of the block; the mapping is filled when it ends.

    For data on S3: GETs, their bytes and times, and answers that asked for fewer requests. For
    modes other than ``direct``: the bytes of disk and memory that are needed, and the sizes of data
    and memory. The loader must still be open at the end of the block.
    """
    found: dict[str, Any] = {}
    access = params.get("access", DIRECT)
    measured = access != DIRECT and place is not None and data is not None
    with counting() as requests:
        with peak_memory() if measured else contextlib.nullcontext() as memory:
            yield found
        fetched = requests.fetched()
    if memory is not None and data is not None:
        found["data_bytes"], found["memory_limit_bytes"] = data.bytes, memory_bytes()
        found["disk_needed_bytes"] = (
            loader.disk_bytes if isinstance(loader, DownloadedLoader) else 0
        )
        if memory.needed_bytes is not None:
            found["memory_needed_bytes"] = memory.needed_bytes
            found["memory_reading_share"] = memory.core_share
        if access == "pipe" and isinstance(loader, BuffersSamples):
            found["shuffle_buffer_bytes"] = loader.buffer_bytes()
    if place is not None and place.uri.startswith("s3://"):
        found |= fetched.metrics
