"""Shards of records with given contents, for the tests of their readers."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from dataprep.formats.example import BytesList, Feature, FloatList, Int64List
from dataprep.formats.recordio import RecordIOWriter, pack_image_header
from dataprep.formats.tfrecord import TFRecordWriter
from tests.dataprep.formats.examples import encode_example


def image(number: int, size: int = 600) -> bytes:
    """Bytes that differ from those of other numbers, and contain no magic of RecordIO."""
    return b"\xff\xd8" + hashlib.sha256(b"%d" % number).digest() * (size // 32)


def customary(number: int, **more: bytes | int) -> dict[str, bytes | int]:
    """The customary keys of image ``number``, and further ones."""
    return {
        "image/encoded": image(number),
        "image/class/label": number + 1,
        "image/class/synset": b"n%08d" % number,
        "image/filename": b"n%08d_1.JPEG" % number,
        **{key.replace("__", "/"): value for key, value in more.items()},
    }


def examples(rows: Sequence[Mapping[str, Any]]) -> tuple[bytes, list[tuple[int, int]]]:
    """A TFRecord shard of Examples, and the offset and length of each record."""
    shard = _Shard()
    writer = TFRecordWriter(shard)
    spans = [
        writer.write(encode_example({key: _feature(value) for key, value in row.items()}))
        for row in rows
    ]
    return bytes(shard.data), spans


def image_records(
    rows: Sequence[tuple[Sequence[float], bytes]],
) -> tuple[bytes, list[tuple[int, int]]]:
    """A RecordIO file of labels and images, and the offset and length of each record."""
    shard = _Shard()
    writer = RecordIOWriter(shard)
    spans = [
        writer.write_parts([pack_image_header(labels, number), data])
        for number, (labels, data) in enumerate(rows)
    ]
    return bytes(shard.data), spans


def flipped(data: bytes, offset: int, bits: int = 1) -> bytes:
    """``data`` with some bits of one byte inverted."""
    damaged = bytearray(data)
    damaged[offset] ^= bits
    return bytes(damaged)


def _feature(value: bytes | int | list[float]) -> Feature:
    """The feature of a value, by its type."""
    if isinstance(value, list):
        return FloatList(value)
    return BytesList([value]) if isinstance(value, bytes) else Int64List([value])


class _Shard:
    """Collects the bytes of a shard."""

    def __init__(self) -> None:
        self.data = bytearray()

    def write(self, data: bytes | bytearray | memoryview, /) -> None:
        self.data += data
