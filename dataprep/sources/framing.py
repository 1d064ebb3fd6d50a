"""PURE. One record of a shard that is read by ranges, and where the next one begins.

The framings are those of ``dataprep.formats.tfrecord`` and ``dataprep.formats.recordio``; here
a record may be damaged, and what follows it is still wanted.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from crc32c import crc32c

from dataprep.formats.recordio import (
    FIRST,
    LAST,
    LENGTH_LIMIT_BYTES,
    MAGIC,
    MIDDLE,
    WHOLE,
    resynchronise,
)
from dataprep.formats.tfrecord import mask, masked_crc32c
from dataprep.sources.ranges import Readable

_TF_HEADER = struct.Struct("<QI")
_TF_FOOTER_BYTES = 4
_TF_LIMIT_BYTES = 2**31
_IO_HEADER = struct.Struct("<II")
_IMAGE_HEADER_BYTES = 24
_SEARCH_BYTES = 2**20
_SWALLOWED = "another record begins inside it"


class Framed(NamedTuple):
    """A record, or damage.

    ``end`` is where the next record begins, None where that cannot be told. ``payload`` is what
    the record holds: all of it, or its beginning where only that was asked for; ``size`` its
    whole length in bytes. With a ``problem`` there is no payload.
    """

    end: int | None
    payload: bytes | memoryview = b""
    size: int = 0
    problem: str = ""


def tfrecord_at(data: Readable, offset: int) -> Framed:
    """The TFRecord at ``offset``, both checksums checked."""
    header = data.at(offset, _TF_HEADER.size)
    if len(header) < _TF_HEADER.size:
        return Framed(None, problem="the file ends inside a record's header")
    size, size_crc = _TF_HEADER.unpack(header)
    if masked_crc32c(header[:8]) != size_crc:
        return Framed(
            None, problem="the checksum of a length does not match; what follows cannot be found"
        )
    if size >= _TF_LIMIT_BYTES:
        return Framed(None, problem=f"a record of {size:,} bytes, of which 2 GiB are read at most")
    start = offset + _TF_HEADER.size
    rest = data.at(start, size + _TF_FOOTER_BYTES)
    if len(rest) < size + _TF_FOOTER_BYTES:
        return Framed(None, problem="the file ends inside the record")
    payload, end = rest[:size], start + size + _TF_FOOTER_BYTES
    if mask(crc32c(payload)) != int.from_bytes(rest[size:], "little"):
        return Framed(end, problem="the checksum of the record does not match")
    return Framed(end, payload, size)


def recordio_at(
    data: Readable, offset: int, size: int | None = None, limit: int = LENGTH_LIMIT_BYTES
) -> Framed:
    """The record of a RecordIO file at ``offset``, the parts of a split one joined.

    Given the ``size`` of the file, an unsplit record is not read beyond its labels: ``payload``
    is its beginning. RecordIO has no checksums; a part longer than ``limit`` is damage.
    """
    parts: list[bytes | memoryview] = []
    at = offset
    while True:
        header = data.at(at, _IO_HEADER.size)
        if len(header) < _IO_HEADER.size:
            return Framed(None, problem="the file ends inside a record")
        word = _IO_HEADER.unpack(header)[1]
        cflag, length = word >> 29, word & LENGTH_LIMIT_BYTES - 1
        expected = (MIDDLE, LAST) if parts else (WHOLE, FIRST)
        if header[:4] != MAGIC or cflag not in expected or length > limit:
            return _searched(data, offset, "no record begins where the one before it ends")
        start, at = at + _IO_HEADER.size, at + _IO_HEADER.size + length + -length % 4
        if cflag == WHOLE and size is not None:
            return _head_of(data, offset, start, length, size)
        part = data.at(start, length)
        if len(part) < length:
            return _searched(data, offset, "the file ends inside the record")
        parts.append(part)
        if cflag in (WHOLE, LAST):
            payload = parts[0] if len(parts) == 1 else MAGIC.join(parts)
            if any(resynchronise(_aligned(each), 0) is not None for each in parts):
                return _searched(data, offset, _SWALLOWED)
            return Framed(at, payload, len(payload))


def _head_of(data: Readable, offset: int, start: int, length: int, size: int) -> Framed:
    """An unsplit record whose payload of ``length`` bytes begins at ``start``, by its head."""
    end = start + length + -length % 4
    if end > size:
        return _searched(data, offset, "the file ends inside the record")
    head = _beginning(data, start, length)
    if end < size and data.at(end, len(MAGIC)) != MAGIC:
        # One of two lengths is damaged: this one, if a record begins before its end.
        found = _searched(data, offset, _SWALLOWED)
        if found.end is not None and found.end < end:
            return found
    return Framed(end, head, length)


def _beginning(data: Readable, start: int, length: int) -> memoryview:
    """An image record's header and labels."""
    head = data.at(start, min(length, _IMAGE_HEADER_BYTES))
    labels = int.from_bytes(head[:4], "little") if len(head) == _IMAGE_HEADER_BYTES else 0
    if not labels:
        return head
    return data.at(start, min(length, _IMAGE_HEADER_BYTES + 4 * labels))


def _aligned(part: bytes | memoryview) -> bytes | memoryview:
    return part[: len(part) - len(part) % 4]


def _searched(data: Readable, offset: int, problem: str) -> Framed:
    """Damage at ``offset``, and where the next record may begin."""
    at = offset + 4
    while True:
        window = data.at(at, _SEARCH_BYTES)
        found = resynchronise(window, 0)
        if found is not None:
            return Framed(at + found, problem=problem)
        if len(window) < _SEARCH_BYTES:
            return Framed(None, problem=problem)
        at += _SEARCH_BYTES - 4  # a magic may stand at the end of this window
