"""Records of a data set's own shards, written and read by one core, in memory unless said."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import dataprep
from dataprep.formats.recordio import mxnet_index
from iobench.sidebyside.contest import Contender, Contest, Goal, Measured
from iobench.sidebyside.passes import RECORDIO, TFRECORDS, mapped, reading, writing
from iobench.sidebyside.record_peers import BATCH
from iobench.sidebyside.workplace import Workplace

IMAGES = 3_000
TF_WRITER = "tf.io.TFRecordWriter"
TF_DATA = "tf.data to NumPy"
MXNET = "MXRecordIO"
INDEXED = "MXIndexedRecordIO"


def contests(place: Workplace) -> Iterator[Contest]:
    """TFRecord beside TensorFlow, RecordIO beside MXNet's C++; both called from Python."""
    shards = str(place.sharded(min(place.images, IMAGES)))

    def contest(
        name: str, title: str, goal: Goal, *contenders: Contender, note: str = "", folder: str = ""
    ) -> Contest:
        arguments = {"shards": shards, "folder": folder} if folder else {"shards": shards}
        return Contest(
            name=name,
            title=title,
            unit="MB",
            contenders=tuple(replace(one, arguments=arguments) for one in contenders),
            goals=(goal,),
            notes=(note,) if note else (),
        )

    tfrecords = _ours("TFRecordWriter", "write_tfrecord"), _tensorflow(TF_WRITER, "tf_write")
    fast = Goal(1.5, TF_WRITER)
    yield contest("write-tfrecord", "TFRecord written, in memory", fast, *tfrecords)
    yield contest(
        "write-tfrecord-disk",
        "TFRecord written to a file on disk",
        fast,
        *tfrecords,
        note="Into the page cache of the disk: nothing waits for the disk itself.",
        folder=str(place.root),
    )
    yield contest(
        "read-tfrecord",
        "TFRecord read, both checksums checked",
        Goal(5, TF_DATA),
        _ours("read_tfrecords", "read_tfrecord"),
        _tensorflow(TF_DATA, "tf_read"),
        _tensorflow(f"tf.data in batches of {BATCH}", "tf_read_batched"),
        note="dataprep gives views of a mapped file, tf.data bytes in arrays of objects.",
    )
    yield contest(
        "write-recordio",
        "RecordIO written, in memory",
        Goal(1.0, MXNET),
        _ours("RecordIOWriter", "write_recordio"),
        _mxnet(MXNET, "mxnet_write"),
    )
    yield contest(
        "write-recordio-indexed",
        "RecordIO and its index written, in memory",
        Goal(1.0, INDEXED),
        _ours("RecordIOWriter", "write_indexed"),
        _mxnet(INDEXED, "mxnet_write_indexed"),
    )
    yield contest(
        "read-recordio",
        "RecordIO read from end to end",
        Goal(1.0, MXNET),
        _ours("read_recordio", "read_recordio"),
        _mxnet(MXNET, "mxnet_read"),
    )
    yield contest(
        "read-recordio-indexed",
        "RecordIO read by its index",
        Goal(1.0, INDEXED),
        _ours("read_recordio", "read_indexed"),
        _mxnet(INDEXED, "mxnet_read_indexed"),
    )


def _ours(name: str, function: str) -> Contender:
    return Contender(f"dataprep.{name}", f"{__name__}:{function}")


def _tensorflow(name: str, function: str) -> Contender:
    return _peer(name, function, "tensorflow")


def _mxnet(name: str, function: str) -> Contender:
    return _peer(name, function, "mxnet")


def _peer(name: str, function: str, needs: str) -> Contender:
    return Contender(name, f"iobench.sidebyside.record_peers:{function}", needs=(needs,))


def write_tfrecord(shards: str, folder: str | None = None) -> Measured:
    """``TFRecordWriter`` over a ``RecordFile``."""
    return writing(shards, TFRECORDS.write, TFRECORDS, folder)


def read_tfrecord(shards: str) -> Measured:
    """``read_tfrecords`` over a mapped file: views, both checksums checked."""
    return reading(shards, TFRECORDS.size, TFRECORDS)


def write_recordio(shards: str) -> Measured:
    """``RecordIOWriter`` over a ``RecordFile``."""
    return writing(shards, RECORDIO.write, RECORDIO)


def write_indexed(shards: str) -> Measured:
    """``RecordIOWriter``, and the index made of the offsets that it gives."""

    def write(payloads: list[bytes], path: Path) -> None:
        offsets = RECORDIO.write(payloads, path)
        path.with_suffix(".idx").write_bytes(mxnet_index(enumerate(offsets)))

    return writing(shards, write, RECORDIO)


def read_recordio(shards: str) -> Measured:
    """``read_recordio`` over a mapped file: views."""
    return reading(shards, RECORDIO.size, RECORDIO)


def read_indexed(shards: str) -> Measured:
    """Each record of the index by itself, out of a mapped file."""

    def read(path: Path) -> int:
        offsets = [
            int(line.split()[1]) for line in path.with_suffix(".idx").read_text().splitlines()
        ]
        with mapped(path) as view:
            return sum([len(next(dataprep.read_recordio(view[at:])).payload) for at in offsets])

    return reading(shards, read, RECORDIO)
