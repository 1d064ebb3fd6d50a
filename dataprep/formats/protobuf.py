"""PURE. Encode and decode the wire format of protobuf: numbers, tags, and the fields of a message.

A message is a sequence of fields. A field consists of a tag and a content. A tag is
``field number << 3 | wire type``. The messages of an Example are defined in ``example.py``.

Reference: https://protobuf.dev/programming-guides/encoding.
"""

from __future__ import annotations

from collections.abc import Iterator

from dataprep.errors import CorruptRecord

# Wire types. The wire type of a field determines where its content ends.
VARINT = 0
FIXED64 = 1
DELIMITED = 2
FIXED32 = 5

_ONE_BYTE_LIMIT = 0x80  # smaller numbers are encoded as one byte
_SHIFTS = (0, 7, 14, 21, 28, 35, 42, 49, 56, 63)  # of the bits in each byte of a varint
_FIELD_NUMBER_LIMIT = 2**29
_64_BITS = 0xFFFFFFFFFFFFFFFF


def tag_of(field_number: int, wire_type: int = DELIMITED) -> int:
    """The tag of a field. All tags of field numbers below 16 fit into one byte."""
    return field_number << 3 | wire_type


def encode_varint(value: int) -> bytes:
    """Encode a number from 0 to 2^64 - 1. Each byte holds 7 bits; the low bits come first."""
    encoded = bytearray()
    while value >= _ONE_BYTE_LIMIT:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def delimited_head(tag: int, size_bytes: int) -> bytes:
    """The encoded tag of a delimited field, and the size of its content.

    The field number must be below 16, so that the tag fits into one byte.
    """
    if size_bytes < _ONE_BYTE_LIMIT:  # a shortcut for most fields
        return bytes((tag, size_bytes))
    return bytes((tag,)) + encode_varint(size_bytes)


def fields(message: memoryview, start: int, stop: int) -> Iterator[tuple[int, int, int]]:
    """Yield the fields of the message in the bytes from ``start`` to ``stop``.

    A field is yielded as its tag, the start of its content, and the end of its content.

    Raises:
        CorruptRecord: these bytes are not a message. The error names the byte.
    """
    position = start
    while position < stop:
        tag_start = position
        tag = message[position]
        if tag < _ONE_BYTE_LIMIT:  # a shortcut for field numbers below 16
            position += 1
        else:
            tag, position = read_varint(message, position, stop)
        field_number = tag >> 3
        if not 0 < field_number < _FIELD_NUMBER_LIMIT:
            raise malformed(tag_start, f"{field_number} is not a field number")
        content_start, position = _content(message, tag & 7, position, stop)
        yield tag, content_start, position


def _content(message: memoryview, wire_type: int, position: int, stop: int) -> tuple[int, int]:
    """The start and the end of the content of a field whose tag ends at ``position``."""
    if wire_type == VARINT:
        _, end = read_varint(message, position, stop)
        return position, end
    if wire_type == DELIMITED:
        if position < stop and message[position] < _ONE_BYTE_LIMIT:  # a shortcut for short fields
            size_bytes = message[position]
            position += 1
        else:
            size_bytes, position = read_varint(message, position, stop)
    elif wire_type == FIXED64:
        size_bytes = 8
    elif wire_type == FIXED32:
        size_bytes = 4
    else:
        raise malformed(position, f"{wire_type} is not a wire type")
    remaining_bytes = stop - position
    if size_bytes > remaining_bytes:
        problem = f"a field has {size_bytes} bytes, but only {remaining_bytes} bytes follow"
        raise malformed(position, problem)
    return position, position + size_bytes


def read_varint(message: memoryview | bytes, position: int, stop: int) -> tuple[int, int]:
    """Decode the number at ``position``. Return it and the position after it.

    Raises:
        CorruptRecord: the number does not end before ``stop``, or is too long.
    """
    start = position
    value = 0
    for shift in _SHIFTS:
        if position >= stop:
            break
        byte = message[position]
        position += 1
        if byte < _ONE_BYTE_LIMIT:
            return (value | byte << shift) & _64_BITS, position
        value |= (byte & 0x7F) << shift
    raise malformed(start, "a number does not end")


def malformed(position: int, problem: str) -> CorruptRecord:
    """The error for bytes that are not an Example. ``position`` is the byte with the problem."""
    return CorruptRecord(
        f"not a tf.train.Example: at its byte {position}, {problem}; write the record again"
    )
