"""``tf.train.Example`` to bytes and back, without protobuf.

Source: TensorFlow, ``tensorflow/core/example/{example,feature}.proto``, in the protobuf wire
format (https://protobuf.dev/programming-guides/encoding). What is written equals TensorFlow's
``SerializeToString(deterministic=True)`` byte for byte, except where one key begins another:
protobuf for Python then puts the longer first (upb, ``_upb_mapsorter_cmpstr``). What is read
may come from any writer.
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, TypeAlias, TypeVar

from dataprep.errors import CorruptRecord, RecordError
from dataprep.formats.records import Buffer

_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class _Values(Generic[_Item]):
    values: Sequence[_Item]

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(self.values))


class BytesList(_Values[Buffer]):
    """A feature of byte strings; long ones of a decoded example are views of its buffer."""

    __slots__ = ()


class FloatList(_Values[float]):
    """A feature of numbers stored as float32."""

    __slots__ = ()


class Int64List(_Values[int]):
    """A feature of whole numbers stored as int64."""

    __slots__ = ()


Feature: TypeAlias = BytesList | FloatList | Int64List

_VARINT, _FIXED64, _DELIMITED, _GROUP, _END_GROUP, _FIXED32 = range(6)  # protobuf's wire types
# Tags, field << 3 | wire type. The lists of a Feature are its fields 1, 2 and 3; the one field
# of Example, of Features and of each list is 1; a map entry has its key in 1, its value in 2.
_BYTES, _FLOATS, _INTS = (field << 3 | _DELIMITED for field in (1, 2, 3))
FIRST, _SECOND = (field << 3 | _DELIMITED for field in (1, 2))
_ONE_INT, _ONE_FLOAT = 1 << 3 | _VARINT, 1 << 3 | _FIXED32
_LIMIT_BYTES = 2**31 - 1
_SHORT_BYTES = 128


def encode_example(features: Mapping[str, Feature]) -> bytes:
    """The serialised example, keys sorted by their UTF-8 bytes.

    Raises ``RecordError`` for a number that its list cannot hold, and from 2 GiB on.
    """
    # Python compares text by code point, which is the order of the UTF-8 bytes.
    entries = [part for key in sorted(features) for part in feature_parts(key, features[key])]
    return b"".join(assemble(entries))


def assemble(entries: Sequence[Buffer]) -> list[Buffer]:
    """The parts of an example made of encoded entries, nothing joined or copied.

    ``entries`` are results of ``encode_feature`` or of ``feature_parts``, in the order of their
    keys. Raises ``RecordError`` from 2 GiB on, which protobuf does not read.
    """
    return [example_head(_nbytes(entries)), *entries]


def example_head(size: int) -> bytes:
    """What begins an example whose entries have ``size`` bytes in all.

    Raises ``RecordError`` from 2 GiB on, which protobuf does not read.
    """
    head = delimited(FIRST, size)
    if len(head) + size > _LIMIT_BYTES:
        raise RecordError(f"an example of {size} bytes; store less than 2 GiB in each")
    return head


def encode_feature(key: str, feature: Feature) -> bytes:
    """One encoded entry of an example, which a caller may keep and use again.

    Raises ``RecordError`` for a number that the list cannot hold.
    """
    return b"".join(feature_parts(key, feature))


def feature_parts(key: str, feature: Feature) -> list[Buffer]:
    """``encode_feature`` in parts, byte strings being the caller's own buffers, not copied."""
    values: list[Buffer] = []
    if isinstance(feature, BytesList):
        kind = _BYTES
        for value in feature.values:
            values += (delimited(FIRST, memoryview(value).nbytes), value)
    else:
        if isinstance(feature, FloatList):
            kind, packed = _FLOATS, _pack_floats(key, feature.values)
        else:
            kind, packed = _INTS, _pack_ints(key, feature.values)
        if packed:
            values = [delimited(FIRST, len(packed)), packed]
    return [_head(key, kind, _nbytes(values)), *values]


def bytes_head(key: str, size: int) -> bytes:
    """What stands before the only byte string, of ``size`` bytes, of an encoded entry."""
    value = delimited(FIRST, size)
    return _head(key, _BYTES, len(value) + size) + value


def _head(key: str, kind: int, size: int) -> bytes:
    name = key.encode()
    head = delimited(kind, size)
    head = delimited(FIRST, len(name)) + name + delimited(_SECOND, len(head) + size) + head
    return delimited(FIRST, len(head) + size) + head


def delimited(tag: int, size: int) -> bytes:
    """The tag of a field and the length of its content."""
    if size < 0x80:
        return bytes((tag, size))
    if size < 0x4000:
        return bytes((tag, size & 0x7F | 0x80, size >> 7))
    if size < 0x200000:
        return bytes((tag, size & 0x7F | 0x80, size >> 7 & 0x7F | 0x80, size >> 14))
    return bytes((tag, *_varint(size)))


def _varint(value: int) -> list[int]:
    low = []
    while value > 0x7F:
        low.append(value & 0x7F | 0x80)
        value >>= 7
    low.append(value)
    return low


def _nbytes(parts: Sequence[Buffer]) -> int:
    return sum([memoryview(part).nbytes for part in parts])


def _pack_floats(key: str, values: Sequence[float]) -> bytes:
    try:
        return struct.pack(f"<{len(values)}f", *values)
    except (struct.error, OverflowError) as error:
        raise RecordError(f"feature {key!r}: {error}; give numbers a float32 can hold") from error


def _pack_ints(key: str, values: Sequence[int]) -> bytes:
    packed: list[int] = []
    for value in map(operator.index, values):
        if not -(2**63) <= value < 2**63:
            raise RecordError(f"feature {key!r}: {value}; give numbers an int64 can hold")
        packed += _varint(value & 0xFFFFFFFFFFFFFFFF)
    return bytes(packed)


def decode_example(data: Buffer) -> dict[str, Feature]:
    """The features of a serialised example, byte strings as views of ``data``, short ones copied.

    As in protobuf, numbers may be packed or not, fields come in any order, unknown ones are
    skipped, and of a repeated key the last entry holds. A feature without a list is left out.
    Raises ``CorruptRecord``, naming the byte, for what is not such a message.
    """
    view = memoryview(data).cast("B")
    features: dict[str, Feature] = {}
    for outer, first, last in _fields(view, 0, len(view)):
        if outer == FIRST:
            for tag, start, stop in _fields(view, first, last):
                if tag == FIRST:
                    key, feature = _entry(view, start, stop)
                    if feature is None:
                        features.pop(key, None)
                    else:
                        features[key] = feature
    return features


def _entry(view: memoryview, start: int, stop: int) -> tuple[str, Feature | None]:
    if stop - start > _SHORT_BYTES:
        return _decode_entry(view, start, stop)
    try:
        return _short_entry(bytes(view[start:stop]))
    except CorruptRecord:
        return _decode_entry(view, start, stop)  # raises with the place in the example


@lru_cache(maxsize=4096)
def _short_entry(entry: bytes) -> tuple[str, Feature | None]:
    """Sizes, classes and encodings are the same in sample after sample: decoded once."""
    return _decode_entry(memoryview(entry), 0, len(entry))


def _decode_entry(view: memoryview, start: int, stop: int) -> tuple[str, Feature | None]:
    # A field met twice is merged, as protobuf has it: lists of one kind are joined, and a list
    # of another kind replaces what was there.
    key, kind, values = "", 0, list[Any]()
    for tag, first, last in _fields(view, start, stop):
        if tag == FIRST:
            key = _decode_key(view, first, last)
        elif tag == _SECOND:
            for list_kind, begin, end in _fields(view, first, last):
                if list_kind in _LISTS:
                    if list_kind != kind:
                        kind, values = list_kind, []
                    _LISTS[list_kind][1](view, begin, end, values)
    return key, _LISTS[kind][0](values) if kind else None


def _decode_key(view: memoryview, start: int, stop: int) -> str:
    try:
        return str(view[start:stop], "utf-8")
    except UnicodeDecodeError as error:
        raise _malformed(start, "the key is not UTF-8") from error


def _decode_bytes(view: memoryview, start: int, stop: int, values: list[Any]) -> None:
    values += [view[first:last] for tag, first, last in _fields(view, start, stop) if tag == FIRST]


def _decode_floats(view: memoryview, start: int, stop: int, values: list[Any]) -> None:
    for tag, first, last in _fields(view, start, stop):
        if tag in (FIRST, _ONE_FLOAT):
            count, odd = divmod(last - first, 4)
            if odd:
                raise _malformed(first, "packed floats are not a multiple of 4 bytes")
            values += struct.unpack_from(f"<{count}f", view, first)


def _decode_ints(view: memoryview, start: int, stop: int, values: list[Any]) -> None:
    for tag, first, last in _fields(view, start, stop):
        if tag in (FIRST, _ONE_INT):
            while first < last:
                value, first = _read_varint(view, first, last)
                values.append(value - (value >> 63 << 64))


_List: TypeAlias = type[BytesList] | type[FloatList] | type[Int64List]
_LISTS: dict[int, tuple[_List, Callable[[memoryview, int, int, list[Any]], None]]] = {
    _BYTES: (BytesList, _decode_bytes),
    _FLOATS: (FloatList, _decode_floats),
    _INTS: (Int64List, _decode_ints),
}


def _fields(view: memoryview, at: int, end: int) -> Iterator[tuple[int, int, int]]:
    """The tag of each field of a message, and where its content begins and ends."""
    groups: list[int] = []  # deprecated in protobuf, and skipped, but a parser must know them
    while at < end:
        begin = at
        tag, at = _read_varint(view, at, end)
        wire_type, field = tag & 7, tag >> 3
        if not 0 < field < 2**29:
            raise _malformed(begin, f"{field} is no field number")
        if wire_type == _GROUP:
            groups.append(field)
        elif wire_type == _END_GROUP:
            if not groups or groups.pop() != field:
                raise _malformed(begin, "a group ends that did not begin")
        else:
            start, at = _content(view, wire_type, at, end)
            if not groups:
                yield tag, start, at
    if groups:
        raise _malformed(at, "a group does not end")


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
