"""``tf.train.Example`` to bytes and back, without protobuf.

Source: TensorFlow, ``tensorflow/core/example/{example,feature}.proto``, in the protobuf wire
format (https://protobuf.dev/programming-guides/encoding). What is written equals TensorFlow's
``SerializeToString(deterministic=True)`` byte for byte, except where one key begins another:
protobuf for Python then puts the longer first (upb, ``_upb_mapsorter_cmpstr``). What is read
may come from any writer.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, TypeAlias, TypeVar

from dataprep.errors import CorruptRecord, RecordError
from dataprep.formats.protocol import Buffer

_Item = TypeVar("_Item")


@dataclass(frozen=True)
class _Values(Generic[_Item]):
    values: Sequence[_Item]

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(self.values))


class BytesList(_Values[Buffer]):
    """A feature of byte strings; long ones of a decoded example are views of its buffer."""


class FloatList(_Values[float]):
    """A feature of numbers stored as float32."""


class Int64List(_Values[int]):
    """A feature of whole numbers stored as int64."""


Feature: TypeAlias = BytesList | FloatList | Int64List
_Entry: TypeAlias = tuple[str, Feature | None]

_VARINT, _FIXED64, _DELIMITED, _, _, _FIXED32 = range(6)  # protobuf's wire types
# Tags, field << 3 | wire type. The lists of a Feature are its fields 1, 2 and 3; the one field
# of Example, of Features and of each list is 1; a map entry has its key in 1, its value in 2.
_BYTES, _FLOATS, _INTS = (field << 3 | _DELIMITED for field in (1, 2, 3))
_FIRST, _SECOND = (field << 3 | _DELIMITED for field in (1, 2))
_ONE_INT, _ONE_FLOAT = 1 << 3 | _VARINT, 1 << 3 | _FIXED32
_LIMIT_BYTES = 2**31 - 1
_SHORT_BYTES = 128


def example_head(size: int) -> bytes:
    """The first bytes of an example whose entries have ``size`` bytes in all.

    Raises ``RecordError`` from 2 GiB on, which protobuf does not read.
    """
    head = _delimited(_FIRST, size)
    if len(head) + size > _LIMIT_BYTES:
        raise RecordError(f"an example of {size} bytes; store less than 2 GiB in each")
    return head


def encode_feature(key: str, feature: Feature) -> bytes:
    """One encoded entry of an example; those of an example follow in the order of their keys.

    Raises ``RecordError`` for a number that the list cannot hold.
    """
    if isinstance(feature, BytesList):
        values: list[Buffer] = []
        for value in feature.values:
            values += (_delimited(_FIRST, memoryview(value).nbytes), value)
        kind, content = _BYTES, b"".join(values)
    else:
        kind, packed = _FLOATS if isinstance(feature, FloatList) else _INTS, _packed(key, feature)
        content = _delimited(_FIRST, len(packed)) + packed if packed else b""
    return _head(key, kind, len(content)) + content


@lru_cache(maxsize=4096)
def bytes_head(key: str, size: int) -> bytes:
    """The part of an encoded entry before its only byte string, of ``size`` bytes."""
    value = _delimited(_FIRST, size)
    return _head(key, _BYTES, len(value) + size) + value


def _head(key: str, kind: int, size: int) -> bytes:
    name = key.encode()
    head = _delimited(kind, size)
    head = _delimited(_FIRST, len(name)) + name + _delimited(_SECOND, len(head) + size) + head
    return _delimited(_FIRST, len(head) + size) + head


def _delimited(tag: int, size: int) -> bytes:
    """The tag of a field and the length of its content."""
    if size <= 0x7F:  # mostly
        return bytes((tag, size))
    return bytes((tag, *_varint(size)))


def _varint(value: int) -> list[int]:
    low = []
    while value > 0x7F:
        low.append(value & 0x7F | 0x80)
        value >>= 7
    low.append(value)
    return low


def _packed(key: str, feature: FloatList | Int64List) -> bytes:
    count = len(feature.values)
    try:
        if isinstance(feature, FloatList):
            return struct.pack(f"<{count}f", *feature.values)
        signed = struct.pack(f"<{count}q", *feature.values)
    except (struct.error, OverflowError) as error:
        kind = type(feature).__name__
        raise RecordError(f"feature {key!r} as {kind}: {error}; give numbers that fit") from error
    packed: list[int] = []
    for value in struct.unpack(f"<{count}Q", signed):
        packed += _varint(value)
    return bytes(packed)


def decode_example(data: Buffer) -> dict[str, Feature]:
    """The features of a serialised example, byte strings as views of ``data``, short ones copied.

    As in protobuf, numbers may be packed or not, fields come in any order, unknown ones are
    skipped, and of a repeated key the last entry counts. A feature without a list is left out.
    Raises ``CorruptRecord``, naming the byte, for any other content.
    """
    view = memoryview(data).cast("B")
    features: dict[str, Feature | None] = {}
    for outer, first, last in _fields(view, 0, len(view)):
        if outer == _FIRST:
            for tag, start, stop in _fields(view, first, last):
                if tag == _FIRST:
                    key, features[key] = _entry(view, start, stop)
    return {key: feature for key, feature in features.items() if feature is not None}


def _entry(view: memoryview, start: int, stop: int) -> _Entry:
    if stop - start > _SHORT_BYTES:
        return _decode_entry(view, start, stop)
    try:
        return _short_entry(bytes(view[start:stop]))
    except CorruptRecord:
        return _decode_entry(view, start, stop)  # raises with the place in the example


@lru_cache(maxsize=4096)
def _short_entry(entry: bytes) -> _Entry:
    """Sizes, classes and encodings are the same in sample after sample: decoded once."""
    return _decode_entry(memoryview(entry), 0, len(entry))


def _decode_entry(view: memoryview, start: int, stop: int) -> _Entry:
    # As protobuf merges fields that repeat: lists of one kind are joined, and a list of another
    # kind replaces them.
    key, kind, values = "", 0, list[Any]()
    for tag, first, last in _fields(view, start, stop):
        if tag == _FIRST:
            try:
                key = str(view[first:last], "utf-8")
            except UnicodeDecodeError as error:
                raise _malformed(first, "the key is not UTF-8") from error
        elif tag == _SECOND:
            for list_kind, begin, end in _fields(view, first, last):
                if list_kind in _LISTS:
                    if list_kind != kind:
                        kind, values = list_kind, []
                    _decode_list(view, kind, begin, end, values)
    return key, _LISTS[kind](values) if kind else None


def _decode_list(view: memoryview, kind: int, start: int, stop: int, values: list[Any]) -> None:
    """Append the values of one list, packed or not."""
    for tag, first, last in _fields(view, start, stop):
        if kind == _BYTES and tag == _FIRST:
            values.append(view[first:last])
        elif kind == _FLOATS and tag in (_FIRST, _ONE_FLOAT):
            count, odd = divmod(last - first, 4)
            if odd:
                raise _malformed(first, "packed floats are not a multiple of 4 bytes")
            values += struct.unpack_from(f"<{count}f", view, first)
        elif kind == _INTS and tag in (_FIRST, _ONE_INT):
            while first < last:
                value, first = _read_varint(view, first, last)
                values.append(value - (value >> 63 << 64))


_LISTS: Mapping[int, type[Feature]] = {
    _BYTES: BytesList,
    _FLOATS: FloatList,
    _INTS: Int64List,
}


def _fields(view: memoryview, at: int, end: int) -> Iterator[tuple[int, int, int]]:
    """The tag of each field of a message, and where its content begins and ends."""
    while at < end:
        begin = at
        tag, at = _read_varint(view, at, end)
        if not 0 < tag >> 3 < 2**29:
            raise _malformed(begin, f"{tag >> 3} is no field number")
        start, at = _content(view, tag & 7, at, end)
        yield tag, start, at


def _content(view: memoryview, wire_type: int, at: int, end: int) -> tuple[int, int]:
    if wire_type == _VARINT:
        return at, _read_varint(view, at, end)[1]
    if wire_type == _DELIMITED:
        size, at = _read_varint(view, at, end)
    elif wire_type in (_FIXED64, _FIXED32):
        size = 8 if wire_type == _FIXED64 else 4
    else:
        raise _malformed(at, f"{wire_type} is no wire type")
    if size > end - at:
        raise _malformed(at, f"{size} bytes are announced and {end - at} are left")
    return at, at + size


def _read_varint(view: memoryview, at: int, end: int) -> tuple[int, int]:
    if at < end and (value := view[at]) < 0x80:
        return value, at + 1
    value = 0
    for position in range(at, min(at + 10, end)):
        byte = view[position]
        value |= (byte & 0x7F) << 7 * (position - at)
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, position + 1
    raise _malformed(at, "a number does not end")


def _malformed(at: int, problem: str) -> CorruptRecord:
    return CorruptRecord(f"not a tf.train.Example: at its byte {at}, {problem}; write it again")
