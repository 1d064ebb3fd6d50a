"""Files of a data set's own records, written and read in passes that are timed.

Each pass over all records goes to a new file. MB are of payload.
"""

from __future__ import annotations

import mmap
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import dataprep
from dataprep.formats.recordio import mxnet_index
from iobench.sidebyside.contest import Measured

PASSES = 8
RAM = Path("/dev/shm")  # noqa: S108
_MB = 1e6


class Framing(NamedTuple):
    """Where the shards of one format lie, and how their records are read and written."""

    pattern: str
    read: Callable[..., Any]
    writer: Callable[..., Any]

    def payloads(self, shards: str) -> list[bytes]:
        """Of all shards, in order."""
        files = sorted(Path(shards).glob(self.pattern))
        return [bytes(one.payload) for path in files for one in self.read(path.read_bytes())]

    def write(self, payloads: list[bytes], path: Path) -> list[int]:
        """Write a file of them by ``RecordFile``; their offsets."""
        with dataprep.RecordFile(path) as file:
            writer = self.writer(file)
            return [writer.write(payload)[0] for payload in payloads]

    def size(self, path: Path) -> int:
        """The bytes of payload of a file, each record read as a view of it."""
        with mapped(path) as view:
            return sum([len(one.payload) for one in self.read(view)])


TFRECORDS = Framing("tfrecord/*-of-?????", dataprep.read_tfrecords, dataprep.TFRecordWriter)
RECORDIO = Framing("recordio/*.rec", dataprep.read_recordio, dataprep.RecordIOWriter)


def writing(
    shards: str,
    write: Callable[[list[bytes], Path], object],
    framing: Framing,
    folder: str | None = None,
) -> Measured:
    """The payloads of all shards, written; in memory, or below ``folder``."""
    payloads = framing.payloads(shards)
    seconds = 0.0
    with _folder(folder) as place:
        write(payloads, place / "warm")  # also so that the system has this much memory at hand
        (place / "warm").unlink()
        for number in range(PASSES):
            path = place / f"{number}.records"
            started_s = time.perf_counter()
            write(payloads, path)
            seconds += time.perf_counter() - started_s
            path.unlink()
    return Measured(PASSES * sum(map(len, payloads)) / _MB, seconds)


def reading(shards: str, read: Callable[[Path], int], framing: Framing) -> Measured:
    """The payloads of all shards, read from one file in memory, which has an MXNet index.

    ``read`` gives the bytes of payload that it found.
    """
    payloads = framing.payloads(shards)
    total = sum(map(len, payloads))
    with _folder() as place:
        path = place / "all.records"
        offsets = framing.write(payloads, path)
        path.with_suffix(".idx").write_bytes(mxnet_index(enumerate(offsets)))
        del payloads
        assert read(path) == total  # noqa: S101  and so it is warm
        started_s = time.perf_counter()
        for _ in range(PASSES):
            read(path)
        seconds = time.perf_counter() - started_s
    return Measured(PASSES * total / _MB, seconds)


@contextmanager
def mapped(path: Path) -> Iterator[memoryview]:
    """The bytes of a file, where the page cache has them."""
    with (
        path.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as whole,
        memoryview(whole) as view,
    ):
        yield view


@contextmanager
def _folder(below: str | None = None) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(dir=below or (RAM if RAM.is_dir() else None)))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)
