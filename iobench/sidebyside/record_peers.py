"""Records by other programs, each called from Python as its own documentation has it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dataprep.adapters import import_framework
from iobench.sidebyside.contest import Measured
from iobench.sidebyside.passes import RECORDIO, TFRECORDS, reading, writing

BATCH = 64


def tf_write(shards: str, folder: str | None = None) -> Measured:
    """``tf.io.TFRecordWriter``, no compression."""
    tf: Any = import_framework("tensorflow")

    def write(payloads: list[bytes], path: Path) -> None:
        with tf.io.TFRecordWriter(str(path)) as writer:
            for payload in payloads:
                writer.write(payload)

    return writing(shards, write, TFRECORDS, folder)


def tf_read(shards: str) -> Measured:
    """``TFRecordDataset``, one record at a time to NumPy."""
    tf: Any = import_framework("tensorflow")

    def read(path: Path) -> int:
        records = tf.data.TFRecordDataset(str(path)).as_numpy_iterator()
        return sum([len(one) for one in records])

    return reading(shards, read, TFRECORDS)


def tf_read_batched(shards: str) -> Measured:
    """``TFRecordDataset``, a batch at a time to NumPy."""
    tf: Any = import_framework("tensorflow")

    def read(path: Path) -> int:
        batches = tf.data.TFRecordDataset(str(path)).batch(BATCH).as_numpy_iterator()
        return sum([len(one) for batch in batches for one in batch])

    return reading(shards, read, TFRECORDS)


def mxnet_write(shards: str) -> Measured:
    """``MXRecordIO``."""
    mxnet: Any = import_framework("mxnet")

    def write(payloads: list[bytes], path: Path) -> None:
        writer = mxnet.recordio.MXRecordIO(str(path), "w")
        for payload in payloads:
            writer.write(payload)
        writer.close()

    return writing(shards, write, RECORDIO)


def mxnet_write_indexed(shards: str) -> Measured:
    """``MXIndexedRecordIO``."""
    mxnet: Any = import_framework("mxnet")

    def write(payloads: list[bytes], path: Path) -> None:
        index = str(path.with_suffix(".idx"))
        writer = mxnet.recordio.MXIndexedRecordIO(index, str(path), "w")
        for key, payload in enumerate(payloads):
            writer.write_idx(key, payload)
        writer.close()

    return writing(shards, write, RECORDIO)


def mxnet_read(shards: str) -> Measured:
    """``MXRecordIO``."""
    mxnet: Any = import_framework("mxnet")

    def read(path: Path) -> int:
        reader = mxnet.recordio.MXRecordIO(str(path), "r")
        total = 0
        while (payload := reader.read()) is not None:
            total += len(payload)
        reader.close()
        return total

    return reading(shards, read, RECORDIO)


def mxnet_read_indexed(shards: str) -> Measured:
    """``MXIndexedRecordIO``, in the order of its keys."""
    mxnet: Any = import_framework("mxnet")

    def read(path: Path) -> int:
        index = str(path.with_suffix(".idx"))
        reader = mxnet.recordio.MXIndexedRecordIO(index, str(path), "r")
        total = sum([len(reader.read_idx(key)) for key in reader.keys])
        reader.close()
        return total

    return reading(shards, read, RECORDIO)
