"""PURE. Encode and decode ``tf.train.Example`` messages without the protobuf library.

An Example maps the names of features to lists of byte strings, floats or integers. It is defined in
TensorFlow, ``tensorflow/core/example/{example,feature}.proto``.

The encoder writes the same bytes as TensorFlow's ``SerializeToString(deterministic=True)``, with
one exception. If one key begins with another key, protobuf for Python writes the longer key first
(upb, ``_upb_mapsorter_cmpstr``), and this package the shorter one. The decoder reads the Examples
of any writer.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, TypeAlias, TypeVar

from dataprep.errors import CorruptRecord, RecordError
from dataprep.formats.protobuf import (
    FIXED32,
    VARINT,
    delimited_head,
    encode_varint,
    fields,
    malformed,
    read_varint,
    tag_of,
)
from dataprep.formats.protocol import Buffer

_Value = TypeVar("_Value")


@dataclass(frozen=True)
class _Values(Generic[_Value]):
    """A list of values of one type, kept as a tuple."""

    values: Sequence[_Value]

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(self.values))


class BytesList(_Values[Buffer]):
    """A list of byte strings. After decoding, long strings are views of the Example's buffer."""


class FloatList(_Values[float]):
    """A list of numbers that are stored as float32."""


class Int64List(_Values[int]):
    """A list of whole numbers that are stored as int64."""


Feature: TypeAlias = BytesList | FloatList | Int64List

# The tags of the nested messages: Example, Features, map entry, Feature, and the three lists.
_FEATURES = tag_of(1)  # of an Example
_ENTRY = tag_of(1)  # of Features, which is a map
_KEY = tag_of(1)  # of an entry
_FEATURE = tag_of(2)  # of an entry
_BYTES_LIST = tag_of(1)  # of a Feature
_FLOAT_LIST = tag_of(2)
_INT64_LIST = tag_of(3)
_BYTES = tag_of(1)  # of a list of byte strings, which has one field for each string
_PACKED_NUMBERS = tag_of(1)  # of a list of numbers, all numbers in one field
_SINGLE_INT = tag_of(1, VARINT)  # of a list of integers that is not packed
_SINGLE_FLOAT = tag_of(1, FIXED32)  # of a list of floats that is not packed

_LIST_TYPES: Mapping[int, type[Feature]] = {
    _BYTES_LIST: BytesList,
    _FLOAT_LIST: FloatList,
    _INT64_LIST: Int64List,
}

_EXAMPLE_LIMIT_BYTES = 2**31 - 1  # protobuf does not read larger messages
_CACHED_ENTRY_LIMIT_BYTES = 128  # larger entries rarely repeat
# ``first_byte_string`` copies this many bytes from the start of an Example, and searches in them.
_SEARCHED_BYTES = 4096


def example_head(entries_bytes: int) -> bytes:
    """The first bytes of an Example.

    Args:
        entries_bytes: the size of all encoded entries together, in bytes.

    Raises:
        RecordError: the Example would have 2 GiB or more, which protobuf does not read.
    """
    head = delimited_head(_FEATURES, entries_bytes)
    if len(head) + entries_bytes > _EXAMPLE_LIMIT_BYTES:
        raise RecordError(
            f"an Example of {entries_bytes} bytes is too large: an Example must be below 2 GiB"
        )
    return head


def encode_feature(key: str, feature: Feature) -> bytes:
    """Encode one entry of an Example. The caller joins the entries in the order of their keys.

    Raises:
        RecordError: the list cannot store one of the numbers.
    """
    if isinstance(feature, BytesList):
        list_tag = _BYTES_LIST
        pieces: list[Buffer] = []
        for value in feature.values:
            pieces.append(delimited_head(_BYTES, memoryview(value).nbytes))
            pieces.append(value)
        content = b"".join(pieces)
    else:
        list_tag = _FLOAT_LIST if isinstance(feature, FloatList) else _INT64_LIST
        packed = _packed(key, feature)
        content = delimited_head(_PACKED_NUMBERS, len(packed)) + packed if packed else b""
    return _entry_head(key, list_tag, len(content)) + content


@lru_cache(maxsize=4096)
def bytes_head(key: str, size_bytes: int) -> bytes:
    """The encoded entry of a feature with one byte string, without the byte string itself.

    The caller writes the byte string after it. So a large image is written without copying it.

    Args:
        key: the name of the feature.
        size_bytes: the size of the byte string.
    """
    string_head = delimited_head(_BYTES, size_bytes)
    return _entry_head(key, _BYTES_LIST, len(string_head) + size_bytes) + string_head


def _entry_head(key: str, list_tag: int, list_bytes: int) -> bytes:
    """The encoded entry of a feature, without the content of its list."""
    list_head = delimited_head(list_tag, list_bytes)
    feature_head = delimited_head(_FEATURE, len(list_head) + list_bytes) + list_head
    head = _key_field(key) + feature_head
    return delimited_head(_ENTRY, len(head) + list_bytes) + head


def _packed(key: str, feature: FloatList | Int64List) -> bytes:
    """Encode all numbers of a list as one byte string. The error message contains ``key``."""
    count = len(feature.values)
    try:
        if isinstance(feature, FloatList):
            return struct.pack(f"<{count}f", *feature.values)
        signed = struct.pack(f"<{count}q", *feature.values)
    except (struct.error, OverflowError) as error:
        type_name = type(feature).__name__
        raise RecordError(
            f"feature {key!r} cannot be stored as {type_name}: {error}; use numbers that fit"
        ) from error
    # protobuf encodes a negative number as the unsigned number with the same 64 bits.
    unsigned = struct.unpack(f"<{count}Q", signed)
    return b"".join([encode_varint(value) for value in unsigned])


def decode_example(data: Buffer) -> dict[str, Feature]:
    """Decode the features of a serialised Example.

    The rules are those of protobuf. Lists of numbers may be packed or not. Fields may have any
    order. Unknown fields are skipped. If a key is repeated, its last entry is used.

    A feature without a list is left out. Long byte strings are views of ``data``; short byte
    strings are copies.

    Raises:
        CorruptRecord: ``data`` is not an Example. The message names the byte.
    """
    view = memoryview(data).cast("B")
    features: dict[str, Feature] = {}
    for tag, start, stop in fields(view, 0, len(view)):
        if tag != _FEATURES:
            continue
        for entry_tag, entry_start, entry_stop in fields(view, start, stop):
            if entry_tag != _ENTRY:
                continue
            key, feature = _entry(view, entry_start, entry_stop)
            if feature is None:
                features.pop(key, None)
            else:
                features[key] = feature
    return features


def first_byte_string(data: Buffer, key: str) -> memoryview | None:
    """The byte string of one feature, as a view, without decoding the features before it.

    This is much faster than ``decode_example``, but handles only Examples in the usual form. It
    takes the first entry with this key, and does not notice that the key is repeated.

    Returns:
        None if the feature is not near the start of the Example, or if the Example has an unusual
        form. In this case, call ``decode_example``.
    """
    view = memoryview(data).cast("B")
    beginning = bytes(view[:_SEARCHED_BYTES])
    key_field = _key_field(key)
    try:
        position, _ = _content_at(beginning, 0, _FEATURES)
        entry_start, entry_bytes = _content_at(beginning, position, _ENTRY)
        while not beginning.startswith(key_field, entry_start):
            position = entry_start + entry_bytes
            entry_start, entry_bytes = _content_at(beginning, position, _ENTRY)
        feature_start, _ = _content_at(beginning, entry_start + len(key_field), _FEATURE)
        list_start, list_bytes = _content_at(beginning, feature_start, _BYTES_LIST)
        start, size_bytes = _content_at(beginning, list_start, _BYTES)
    except CorruptRecord:
        return None
    stop = start + size_bytes
    if stop > list_start + list_bytes or stop > len(view):
        return None
    return view[start:stop]


@lru_cache(maxsize=64)
def _key_field(key: str) -> bytes:
    """The encoded key of an entry."""
    name = key.encode()
    return delimited_head(_KEY, len(name)) + name


def _content_at(data: bytes, position: int, tag: int) -> tuple[int, int]:
    """The start and the size of the content of the delimited field at ``position``.

    Raises:
        CorruptRecord: no field with this tag begins there.
    """
    if position >= len(data) or data[position] != tag:
        raise malformed(position, f"the tag {tag} is missing")
    if position + 1 < len(data) and data[position + 1] < 0x80:  # a size of one byte, mostly
        return position + 2, data[position + 1]
    size_bytes, start = read_varint(data, position + 1, len(data))
    return start, size_bytes


def _entry(view: memoryview, start: int, stop: int) -> tuple[str, Feature | None]:
    """The key and the feature of an entry. Decoded short entries are cached.

    The entries of image sizes, classes and encodings are the same in many samples.
    """
    if stop - start > _CACHED_ENTRY_LIMIT_BYTES:
        return _decode_entry(view, start, stop)
    try:
        return _decode_short_entry(bytes(view[start:stop]))
    except CorruptRecord:
        # Decode the entry again, so that the error names the byte in the Example.
        return _decode_entry(view, start, stop)


@lru_cache(maxsize=4096)
def _decode_short_entry(entry: bytes) -> tuple[str, Feature | None]:
    return _decode_entry(memoryview(entry), 0, len(entry))


def _decode_entry(view: memoryview, start: int, stop: int) -> tuple[str, Feature | None]:
    """The key and the feature of an entry; None for a feature without a list.

    Fields that repeat are merged as protobuf merges them: lists of the same type are joined, and
    a list of another type replaces the lists before it.
    """
    key = ""
    list_tag: int | None = None
    values: list[Any] = []
    for tag, field_start, field_stop in fields(view, start, stop):
        if tag == _KEY:
            key = _text(view, field_start, field_stop)
        elif tag == _FEATURE:
            for value_tag, list_start, list_stop in fields(view, field_start, field_stop):
                if value_tag not in _LIST_TYPES:
                    continue
                if value_tag != list_tag:
                    list_tag = value_tag
                    values = []
                values += _decode_list(view, list_tag, list_start, list_stop)
    if list_tag is None:
        return key, None
    return key, _LIST_TYPES[list_tag](values)


def _text(view: memoryview, start: int, stop: int) -> str:
    try:
        return str(view[start:stop], "utf-8")
    except UnicodeDecodeError as error:
        raise malformed(start, "the key is not UTF-8") from error


def _decode_list(view: memoryview, list_tag: int, start: int, stop: int) -> list[Any]:
    """The values of one list. Its numbers are packed into one field, or each has its own field."""
    values: list[Any] = []
    for tag, position, field_stop in fields(view, start, stop):
        if list_tag == _BYTES_LIST and tag == _BYTES:
            values.append(view[position:field_stop])
        elif list_tag == _FLOAT_LIST and tag in (_PACKED_NUMBERS, _SINGLE_FLOAT):
            count, remainder = divmod(field_stop - position, 4)
            if remainder:
                raise malformed(position, "packed floats are not a multiple of 4 bytes")
            values += struct.unpack_from(f"<{count}f", view, position)
        elif list_tag == _INT64_LIST and tag in (_PACKED_NUMBERS, _SINGLE_INT):
            while position < field_stop:
                value, position = read_varint(view, position, field_stop)
                values.append(_signed(value))
    return values


def _signed(value: int) -> int:
    """Interpret an unsigned 64-bit number as an int64."""
    return value - 2**64 if value >= 2**63 else value
