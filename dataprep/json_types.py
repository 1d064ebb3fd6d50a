"""PURE. JSON values as the dataclasses that they were written from, or their key and what is wrong.

Python's own constructors take anything: a size that is text would be found out far from its file.
"""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Collection, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, TypeVar

Part = TypeVar("Part")

_LEAST, _MOST = -(2**63), 2**63 - 1
_WORDS: Mapping[type, str] = {
    int: "a whole number of 64 bits",
    float: "a number",
    str: "a text",
    bool: "true or false",
    types.NoneType: "null",
}


def typed(kind: type[Part], value: Any, key: str = "") -> Part:
    """A JSON value as ``kind``: a dataclass, or what its fields may be annotated with.

    Keys that a dataclass does not have are left aside. ``key`` is where the value stands.

    Raises:
        TypeError, KeyError: a value of another type, or a key that is missing; it is named.
        ValueError: a text with half of a surrogate pair, which no file can hold.
    """
    found: Part = _typed(kind, value, key)
    return found


def same_type(values: Any, kind: type, key: str) -> list[Any]:
    """A JSON list of plain values of one type, looked at all at once.

    Raises:
        TypeError: it is none, or a value in it is of another type.
        ValueError: as ``typed``.
    """
    if type(values) is not list:
        raise TypeError(f"{key!r} is {_shown(values)}, not a list")
    if not set(map(type, values)) <= {kind}:
        odd = next(number for number, value in enumerate(values) if type(value) is not kind)
        return [_typed(kind, value, f"{key}.{odd}") for value in values[odd:]]
    if kind is int and values and not _LEAST <= min(values) <= max(values) <= _MOST:
        raise TypeError(f"{key!r} has a number of more than 64 bits")
    if kind is str:
        "".join(values).encode()
    return values


def require(whether: bool, what: str) -> None:
    """Raise ValueError with ``what`` is wrong unless it holds."""
    if not whether:
        raise ValueError(what)


def _typed(kind: Any, value: Any, key: str) -> Any:
    if kind is Any:
        return value
    if kind in _WORDS:
        return _plain(kind, value, key)
    if is_dataclass(kind):
        return _part(kind, value, key)
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        kinds = [one for one in inner if one is not types.NoneType]
        return None if value is None and len(kinds) < len(inner) else _typed(kinds[0], value, key)
    if issubclass(origin, Mapping):
        _require_type(dict, value, key, "keys with values")
        return {name: _typed(inner[1], one, _within(key, name)) for name, one in value.items()}
    _require_type(list, value, key, "a list")
    assert issubclass(origin, Collection)  # noqa: S101  no other is annotated
    if inner[-1] is not Ellipsis and origin is tuple:
        if len(value) != len(inner):
            raise TypeError(f"{key!r} has {len(value)} values, not {len(inner)}")
        pairs = zip(inner, value, strict=True)
        return tuple(_typed(one, each, f"{key}.{n}") for n, (one, each) in enumerate(pairs))
    return tuple(_typed(inner[0], one, f"{key}.{number}") for number, one in enumerate(value))


def _plain(kind: Any, value: Any, key: str) -> Any:
    if type(value) is not kind and not (kind is float and type(value) is int):
        raise TypeError(f"{key!r} is {_shown(value)}, not {_WORDS[kind]}")
    if type(value) is int and not _LEAST <= value <= _MOST:
        raise TypeError(f"{key!r} is a number of more than 64 bits")
    if kind is float and not math.isfinite(value):
        raise TypeError(f"{key!r} is {value}, not a number")
    if kind is str:
        value.encode()
    return value


def _part(kind: Any, value: Any, key: str) -> Any:
    _require_type(dict, value, key, "keys with values")
    found = {}
    for name, annotation, optional in _fields_of(kind):
        if name in value:
            found[name] = _typed(annotation, value[name], _within(key, name))
        elif not optional:
            raise TypeError(f"{_within(key, name)!r} is missing")
    return kind(**found)


@cache
def _fields_of(kind: Any) -> list[tuple[str, Any, bool]]:
    hints = typing.get_type_hints(kind)
    return [
        (
            one.name,
            hints[one.name],
            one.default is not MISSING or one.default_factory is not MISSING,
        )
        for one in fields(kind)
    ]


def _require_type(kind: type, value: Any, key: str, what: str) -> None:
    if type(value) is not kind:
        raise TypeError(f"{key!r} is {_shown(value)}, not {what}" if key else f"it is not {what}")


def _within(key: str, name: str) -> str:
    return f"{key}.{name}" if key else name


def _shown(value: Any) -> str:
    if isinstance(value, (dict, list)):
        return "a list" if isinstance(value, list) else "keys with values"
    return (
        "null" if value is None else ascii(value)[:40] if isinstance(value, str) else _number(value)
    )


def _number(value: Any) -> str:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return "a huge number" if whole and not _LEAST <= value <= _MOST else str(value).lower()
