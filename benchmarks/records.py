"""Compare writing and reading of records with TensorFlow and MXNet, on one core.

The records are those of a data set. They are written to new files in memory several times, or read
from a file in memory several times. MB count the payload only. The other libraries are called from
Python as their documentation shows.
"""

from __future__ import annotations

import mmap
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dataprep
from benchmarks.contest import Contender, Contest, Measured
from benchmarks.workplace import Workplace
from dataprep.formats.recordio import mxnet_index
from dataprep.reading.frameworks import import_framework

IMAGES = 3_000
PASSES = 8
RAM = Path("/dev/shm")
_MB = 1e6


def contests(workplace: Workplace) -> Iterator[Contest]:
    """Yield contests for TFRecord with TensorFlow, and for RecordIO with the C++ of MXNet."""
    arguments = {"shards": str(workplace.sharded(min(workplace.images, IMAGES)))}
    tensorflow, mxnet = ("tensorflow", "tf"), ("mxnet", "mxnet")
    for name, title, (needs, prefix) in (
        ("write-tfrecord", "TFRecord written", tensorflow),
        ("read-tfrecord", "TFRecord read, checksums checked", tensorflow),
        ("write-recordio", "RecordIO and its index written", mxnet),
        ("read-recordio", "RecordIO read from end to end", mxnet),
    ):
        ours, peer = name.replace("-", "_"), f"{prefix}_{name.partition('-')[0]}"
        contenders = (
            Contender("dataprep", f"{__name__}:{ours}", arguments),
            Contender(needs, f"{__name__}:{peer}", arguments, (needs,)),
        )
        yield Contest(name, title, "MB", contenders)


def write_tfrecord(shards: str) -> Measured:
    """Write TFRecord by ``dataprep.TFRecordWriter``."""

    def write(payloads: list[bytes], path: Path) -> None:
        with dataprep.TFRecordWriter(path) as writer:
            for payload in payloads:
                writer.write(payload)

    return _writing(_tfrecords(shards), write)


def tf_write(shards: str) -> Measured:
    """Write TFRecord by ``tf.io.TFRecordWriter``, without compression."""
    tf: Any = import_framework("tensorflow")

    def write(payloads: list[bytes], path: Path) -> None:
        with tf.io.TFRecordWriter(str(path)) as writer:
            for payload in payloads:
                writer.write(payload)

    return _writing(_tfrecords(shards), write)


def read_tfrecord(shards: str) -> Measured:
    """Read TFRecord by ``dataprep.read_tfrecords`` as views of a mapped file.

    Both checksums of each record are checked.
    """

    def read(path: Path) -> int:
        with _mapped(path) as view:
            return sum([len(record.payload) for record in dataprep.read_tfrecords(view)])

    return _reading(_tfrecords(shards), dataprep.TFRecordWriter, read)


def tf_read(shards: str) -> Measured:
    """Read TFRecord by ``tf.data.TFRecordDataset``, one record at a time to NumPy."""
    tf: Any = import_framework("tensorflow")

    def read(path: Path) -> int:
        records = tf.data.TFRecordDataset(str(path)).as_numpy_iterator()
        return sum([len(record) for record in records])

    return _reading(_tfrecords(shards), dataprep.TFRecordWriter, read)


def write_recordio(shards: str) -> Measured:
    """Write RecordIO by ``dataprep.RecordIOWriter``, and an index from the offsets it returns."""
    return _writing(_recordio(shards), _write_indexed)


def mxnet_write(shards: str) -> Measured:
    """Write RecordIO and its index by ``mxnet.recordio.MXIndexedRecordIO``."""
    mxnet: Any = import_framework("mxnet")

    def write(payloads: list[bytes], path: Path) -> None:
        index = str(path.with_suffix(".idx"))
        writer = mxnet.recordio.MXIndexedRecordIO(index, str(path), "w")
        for key, payload in enumerate(payloads):
            writer.write_idx(key, payload)
        writer.close()

    return _writing(_recordio(shards), write)


def read_recordio(shards: str) -> Measured:
    """Read RecordIO by ``dataprep.read_recordio`` as views of a mapped file."""

    def read(path: Path) -> int:
        with _mapped(path) as view:
            return sum([len(record.payload) for record in dataprep.read_recordio(view)])

    return _reading(_recordio(shards), dataprep.RecordIOWriter, read)


def mxnet_read(shards: str) -> Measured:
    """Read RecordIO by ``mxnet.recordio.MXRecordIO``."""
    mxnet: Any = import_framework("mxnet")

    def read(path: Path) -> int:
        reader = mxnet.recordio.MXRecordIO(str(path), "r")
        total = 0
        while (payload := reader.read()) is not None:
            total += len(payload)
        reader.close()
        return total

    return _reading(_recordio(shards), dataprep.RecordIOWriter, read)


def _tfrecords(shards: str) -> list[bytes]:
    files = sorted(Path(shards).glob("tfrecord/*-of-?????"))
    return [
        bytes(record.payload)
        for path in files
        for record in dataprep.read_tfrecords(path.read_bytes())
    ]


def _recordio(shards: str) -> list[bytes]:
    files = sorted(Path(shards).glob("recordio/*.rec"))
    return [
        bytes(record.payload)
        for path in files
        for record in dataprep.read_recordio(path.read_bytes())
    ]


def _write_indexed(payloads: list[bytes], path: Path, kind: Any = dataprep.RecordIOWriter) -> None:
    with kind(path) as writer:
        offsets = [writer.write(payload)[0] for payload in payloads]
    path.with_suffix(".idx").write_bytes(mxnet_index(enumerate(offsets)))


def _writing(payloads: list[bytes], write: Callable[[list[bytes], Path], object]) -> Measured:
    """Measure ``PASSES`` calls of a function that writes all payloads to a new file in memory."""
    seconds = 0.0
    with _folder() as folder:
        write(payloads, folder / "warm")  # After this call, the system has enough free memory.
        (folder / "warm").unlink()
        for number in range(PASSES):
            path = folder / f"{number}.records"
            started_s = time.perf_counter()
            write(payloads, path)
            seconds += time.perf_counter() - started_s
            path.unlink()
    return Measured(PASSES * sum(map(len, payloads)) / _MB, seconds)


def _reading(payloads: list[bytes], writer: Any, read: Callable[[Path], int]) -> Measured:
    """Measure ``PASSES`` calls of a function that reads all payloads from a file in memory.

    Args:
        payloads: the payloads.
        writer: the class that writes the file.
        read: reads a file, and returns the number of bytes of all payloads.

    Raises:
        RuntimeError: the function does not read all payloads.
    """
    total = sum(map(len, payloads))
    with _folder() as folder:
        path = folder / "all.records"
        _write_indexed(payloads, path, writer)
        if read(path) != total:
            raise RuntimeError("not every record was read")
        started_s = time.perf_counter()
        for _ in range(PASSES):
            read(path)
        seconds = time.perf_counter() - started_s
    return Measured(PASSES * total / _MB, seconds)


@contextmanager
def _mapped(path: Path) -> Iterator[memoryview]:
    with (
        path.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped,
        memoryview(mapped) as view,
    ):
        yield view


@contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(dir=RAM if RAM.is_dir() else None))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)
