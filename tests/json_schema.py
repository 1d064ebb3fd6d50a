"""Validates values against the part of JSON Schema (draft 7) that this repository's schemas use."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

_TYPES: dict[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}
KEYWORDS = frozenset(
    {
        *("$schema", "$defs", "$ref", "title", "description", "default", "type", "properties"),
        *("additionalProperties", "required", "items", "anyOf", "allOf", "enum", "const"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "pattern", "format"),
        *("minLength", "maxLength", "minItems", "maxItems", "propertyNames"),
    }
)


def keywords(schema: Any) -> Iterator[str]:
    """Every keyword that a schema uses."""
    if isinstance(schema, Mapping):
        for key, inner in schema.items():
            yield key
            if key in ("properties", "$defs"):
                for subschema in inner.values():
                    yield from keywords(subschema)
            elif key not in ("default", "enum", "const"):
                yield from keywords(inner)
    elif isinstance(schema, list):
        for subschema in schema:
            yield from keywords(subschema)


def problems(value: Any, schema: Mapping[str, Any], root: Mapping[str, Any]) -> list[str]:
    """The problems that an editor would underline, as paths with reasons.

    A valid value has none.
    """
    return list(_problems(value, schema, root, "config"))


def _problems(value: Any, schema: Any, root: Any, at: str) -> Iterator[str]:
    """Yield the problems of a value, as paths with reasons."""
    if schema is True or schema == {}:
        return
    if "$ref" in schema:
        yield from _problems(value, root["$defs"][schema["$ref"].rpartition("/")[2]], root, at)
    for subschema in schema.get("allOf", ()):
        yield from _problems(value, subschema, root, at)
    if "anyOf" in schema:
        alternatives = [
            list(_problems(value, subschema, root, at)) for subschema in schema["anyOf"]
        ]
        if all(alternatives):
            yield min(alternatives, key=len)[0]
    yield from _plain(value, schema, at)
    if isinstance(value, dict):
        yield from _of_object(value, schema, root, at)
    if isinstance(value, list):
        items = schema.get("items", {})
        for number, item in enumerate(value):
            subschema = items[number] if isinstance(items, list) else items
            yield from _problems(item, subschema, root, f"{at}.{number}")


def _plain(value: Any, schema: Mapping[str, Any], at: str) -> Iterator[str]:
    """Yield the problems of a value's own type and range."""
    kind = schema.get("type")
    odd = isinstance(value, bool) and kind in ("integer", "number")
    if kind and (odd or not isinstance(value, _TYPES[kind])):
        yield f"{at}: {value!r} is no {kind}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{at}: {value!r} is none of {schema['enum']}"
    if "const" in schema and value != schema["const"]:
        yield f"{at}: {value!r} is not {schema['const']!r}"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        low, above = schema.get("minimum"), schema.get("exclusiveMinimum")
        high, below = schema.get("maximum"), schema.get("exclusiveMaximum")
        if (low is not None and value < low) or (above is not None and value <= above):
            yield f"{at}: {value} is too small"
        if (high is not None and value > high) or (below is not None and value >= below):
            yield f"{at}: {value} is too large"
    if isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        yield f"{at}: {value!r} does not match"


def _of_object(value: Any, schema: Any, root: Any, at: str) -> Iterator[str]:
    """Yield the problems of an object's keys and values."""
    properties = schema.get("properties", {})
    for key in set(schema.get("required", ())) - set(value):
        yield f"{at}: {key} is missing"
    names = schema.get("propertyNames", {})
    shortest, longest = names.get("minLength", 0), names.get("maxLength", float("inf"))
    for key, inner in value.items():
        if not shortest <= len(key) <= longest:
            yield f"{at}: {key!r} is no name of {shortest} to {longest} characters"
        if key in properties:
            yield from _problems(inner, properties[key], root, f"{at}.{key}")
        elif schema.get("additionalProperties") is False:
            yield f"{at}: unknown key {key}"
        elif isinstance(schema.get("additionalProperties"), dict):
            yield from _problems(inner, schema["additionalProperties"], root, f"{at}.{key}")
