"""PURE. MATLAB 5 files as far as ``meta.mat`` needs them: a variable that is an array of structs.

Source: MathWorks, "MAT-File Format" (matfile_format.pdf), level 5. SciPy reads more of them, and
ends the process over some that are damaged (``scipy.io.matlab._mio5_utils``): a file from the net
must not do that.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

import numpy as np

Value: TypeAlias = tuple[float, ...] | str

_HEADER_BYTES, _TAG_BYTES = 128, 8
_MATRIX, _COMPRESSED = 14, 15
_STRUCT, _CHAR = 2, 4
_NUMERIC_CLASSES = range(6, 16)
_NUMBERS = {
    1: "i1",
    2: "u1",
    3: "i2",
    4: "u2",
    5: "i4",
    6: "u4",
    7: "f4",
    9: "f8",
    12: "i8",
    13: "u8",
}
_TEXTS = {1: "latin-1", 2: "latin-1", 4: "utf-16", 16: "utf-8", 17: "utf-16", 18: "utf-32"}
_LARGEST_BYTES = 64 * 2**20
_MOST_FIELDS = 1000


class _Element(NamedTuple):
    kind: int
    data: memoryview


def read_structs(data: bytes, variable: str) -> list[dict[str, Value]]:
    """The structs of a variable: of each, its fields that hold numbers or text.

    Raises:
        ValueError: no such file, or no such variable in it.
    """
    order = {b"IM": "<", b"MI": ">"}.get(data[126:128])
    if order is None or not data.startswith(b"MATLAB 5.0"):
        raise ValueError("it does not begin as a MATLAB 5 file does")
    for element in _elements(memoryview(data)[_HEADER_BYTES:], order):
        if element.kind == _COMPRESSED:
            element = next(_elements(memoryview(_inflated(element.data)), order), element)
        if element.kind == _MATRIX and element.data:
            parts = list(_elements(element.data, order))
            if len(parts) >= 3 and bytes(parts[2].data) == variable.encode():
                return _structs(parts, order)
    raise ValueError(f"it has no variable {variable!r}")


def _inflated(data: memoryview) -> bytes:
    try:
        inflate = zlib.decompressobj()
        found = inflate.decompress(data, _LARGEST_BYTES)
    except zlib.error as error:
        raise ValueError(f"a variable cannot be decompressed: {error}") from None
    if not inflate.eof:
        raise ValueError("a variable is cut short, or too large")
    return found


def _elements(data: memoryview, order: str) -> Iterator[_Element]:
    at = 0
    while at + _TAG_BYTES <= len(data):
        kind, size = struct.unpack_from(f"{order}II", data, at)
        if kind >> 16:  # a small one: its data stand in the tag
            kind, size, start = kind & 0xFFFF, kind >> 16, at + 4
            at += _TAG_BYTES
            if size > 4:
                raise ValueError(f"a small element of {size} bytes")
        else:
            start = at + _TAG_BYTES
            at = start + size + (0 if kind == _COMPRESSED else -size % 8)
            if start + size > len(data):
                raise ValueError(f"an element of {size} bytes runs past the end")
        yield _Element(kind, data[start : start + size])


def _structs(parts: list[_Element], order: str) -> list[dict[str, Value]]:
    if _class_of(parts, order) != _STRUCT or len(parts) < 5:
        raise ValueError("the variable is no array of structs")
    (width,) = _numbers(parts[3], order) or (0,)
    names = bytes(parts[4].data)
    if not 0 < width <= 64 or len(names) > _MOST_FIELDS * width:
        raise ValueError("the names of its fields are none")
    width = int(width)
    keys = [
        names[at : at + width].partition(b"\0")[0].decode("latin-1")
        for at in range(0, len(names), width)
    ]
    rows = int(math.prod(_numbers(parts[1], order)))
    values = parts[5:]
    if not keys or rows * len(keys) != len(values):
        raise ValueError(f"{len(values)} values where {rows} structs of {len(keys)} fields stand")
    found = [_value(value, order) for value in values]
    return [
        {key: value for key, value in zip(keys, found[at:], strict=False) if value is not None}
        for at in range(0, len(found), len(keys))
    ]


def _value(element: _Element, order: str) -> Value | None:
    """Numbers or text; None for what is neither."""
    if element.kind != _MATRIX:
        raise ValueError(f"an element of type {element.kind} where a value stands")
    parts = list(_elements(element.data, order))
    if not parts:
        return ()
    kind = _class_of(parts, order)
    if kind in _NUMERIC_CLASSES:
        return _numbers(parts[3], order) if len(parts) > 3 else ()
    if kind != _CHAR:
        return None
    if len(parts) < 4:
        return ""
    encoding = _TEXTS.get(parts[3].kind)
    if encoding is None:
        raise ValueError(f"text of type {parts[3].kind}")
    if encoding.startswith("utf-") and encoding != "utf-8":
        encoding += "-le" if order == "<" else "-be"
    return bytes(parts[3].data).decode(encoding)


def _class_of(parts: list[_Element], order: str) -> int:
    if len(parts) < 3 or parts[0].kind != 6 or len(parts[0].data) < 4:
        raise ValueError("a variable without flags, sizes and name")
    flags: int = struct.unpack_from(f"{order}I", parts[0].data)[0]
    return flags & 0xFF


def _numbers(element: _Element, order: str) -> tuple[float, ...]:
    kind = _NUMBERS.get(element.kind)
    if kind is None:
        raise ValueError(f"numbers of type {element.kind}")
    dtype = np.dtype(f"{order}{kind}")
    if len(element.data) % dtype.itemsize:
        raise ValueError("numbers that are cut short")
    return tuple(np.frombuffer(element.data, dtype).tolist())
