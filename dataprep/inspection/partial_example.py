"""PURE. A tf.train.Example read around its image: small features whole, of large ones the place.

The wire format is told in ``dataprep.formats.example``, which decodes what is read here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from dataprep.errors import CorruptRecord
from dataprep.formats.example import Feature, decode_example, example_head
from dataprep.inspection.framing import Readable

SMALL_BYTES = 2048
"""An entry up to this size is read whole."""

_FIRST, _SECOND = 0x0A, 0x12  # fields 1 and 2, each with a length
_VARINT, _FIXED64, _DELIMITED, _, _, _FIXED32 = range(6)


class Large(NamedTuple):
    """A byte string that was not read: where it begins, and its size."""

    offset: int
    bytes: int


class PartialExample(NamedTuple):
    """The small features, and by key the one byte string of each large feature."""

    features: Mapping[str, Feature]
    large: Mapping[str, Large]


def read_partial(data: Readable, offset: int, size: int) -> PartialExample:
    """The example of ``size`` bytes at ``offset``.

    Raises ``CorruptRecord`` for what is no such message.
    """
    entries: list[bytes] = []
    large: dict[str, Large] = {}
    for tag, start, stop in _fields(data, offset, offset + size):
        if tag != _FIRST:
            continue
        at = start
        for entry_tag, first, last in _fields(data, start, stop):
            if entry_tag == _FIRST and last - at <= SMALL_BYTES:
                entries.append(data.read(at, last - at))
            elif entry_tag == _FIRST:
                large.update(_large(data, first, last))
            at = last
    content = b"".join(entries)
    return PartialExample(decode_example(example_head(len(content)) + content), large)


def _large(data: Readable, start: int, stop: int) -> dict[str, Large]:
    """The key of an entry, and where the one byte string of its feature lies."""
    key = None
    for tag, first, last in _fields(data, start, stop):
        if tag == _FIRST:
            key = data.read(first, min(last - first, SMALL_BYTES)).decode("utf-8", "replace")
        elif tag == _SECOND and key is not None:
            for _ in range(2):  # Feature's bytes_list, then its value
                inner = next(_fields(data, first, last), None)
                if inner is None or inner[0] != _FIRST:
                    return {key: Large(start, 0)}
                _, first, last = inner
            return {key: Large(first, last - first)}
    return {}


def _fields(data: Readable, at: int, end: int) -> Iterator[tuple[int, int, int]]:
    """The tag of each field of a message, and where its content begins and ends."""
    while at < end:
        tag, at = _varint(data, at, end)
        wire = tag & 7
        if wire == _VARINT:
            start, (_, at) = at, _varint(data, at, end)
        elif wire == _DELIMITED:
            size, start = _varint(data, at, end)
            at = start + size
        elif wire in (_FIXED64, _FIXED32):
            start, at = at, at + (8 if wire == _FIXED64 else 4)
        else:
            raise CorruptRecord("not a tf.train.Example")
        if at > end or not tag >> 3:
            raise CorruptRecord("not a tf.train.Example")
        yield tag, start, at


def _varint(data: Readable, at: int, end: int) -> tuple[int, int]:
    value = 0
    for position, byte in enumerate(data.read(at, min(10, end - at))):
        value |= (byte & 0x7F) << 7 * position
        if byte < 0x80:
            return value, at + position + 1
    raise CorruptRecord("not a tf.train.Example")
