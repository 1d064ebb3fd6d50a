"""PURE. Every key of a config as Markdown, from the JSON schema of its models.

Types, bounds and defaults come from the schema, meanings from the docstrings of the fields.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dataprep.counted import size_words

Schema = Mapping[str, Any]


def config_page(head: str, schema: Schema, sections: Sequence[tuple[str, str]]) -> str:
    """A table a section.

    Args:
        head: what the page begins with.
        schema: the JSON schema of the outermost model, all others in its ``$defs``.
        sections: title and name of the model, in the order in which they come.
    """
    models = {schema["title"]: schema, **schema["$defs"]}
    lines = (line for title, name in sections for line in _section(title, models[name]))
    return "\n".join([head, *lines])


def _section(title: str, model: Schema) -> Iterator[str]:
    yield f"## {title}\n"
    yield "| key | takes | default | meaning |"
    yield "| --- | --- | --- | --- |"
    for key, found in model["properties"].items():
        default = "needed" if key in model.get("required", ()) else _default(key, found)
        meaning = " ".join(found["description"].replace("``", "`").split())
        yield f"| `{key}` | {_takes(key, found)} | {default} | {meaning} |"
    yield ""


def _takes(key: str, schema: Schema) -> str:
    if "anyOf" in schema:
        schema = _several_or_one(schema)
    if "anyOf" in schema:
        kinds = [_takes(key, one) for one in schema["anyOf"] if one.get("type") != "null"]
        return " or ".join(dict.fromkeys(kinds))
    if "$ref" in schema:
        return "keys, see below"
    if "enum" in schema or "const" in schema:
        return ", ".join(f"`{value}`" for value in schema.get("enum", [schema.get("const")]))
    kind = schema.get("type")
    if kind == "array":
        return _several(key, schema)
    if kind == "object":
        values = schema["additionalProperties"]
        return f"names, each with {_takes(key, values if isinstance(values, Mapping) else {})}"
    if kind == "boolean":
        return "`true`, `false`"
    if _is_size(key):
        return "a size"
    if kind is None:
        return "anything"
    return "text" if kind == "string" else _number(schema)


def _several_or_one(schema: Schema) -> Schema:
    """Where one value or a list of them is taken, the list: the page's head says the rest."""
    match schema["anyOf"]:
        case [one, {"type": "array", "items": items} as several] if items == one:
            found: Schema = several
            return found
    return schema


def _several(key: str, schema: Schema) -> str:
    if "prefixItems" in schema:
        kinds = [_takes(key, one) for one in schema["prefixItems"]]
        return f"{len(kinds)} of: {kinds[0]}" if len(set(kinds)) == 1 else " and ".join(kinds)
    inner = schema["items"]
    return "a list of keys, see below" if "$ref" in inner else f"several: {_takes(key, inner)}"


def _number(schema: Schema) -> str:
    what = "a whole number" if schema["type"] == "integer" else "a number"
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is None:
        above = schema.get("exclusiveMinimum")
        return what if above is None else f"{what} above {above:,}"
    # A bound that keeps nonsense out is not worth a word.
    if low < -1e6:
        return what
    return f"{what}, {low:,} to {high:,}" if high and high <= 1e6 else f"{what} from {low:,} on"


def _default(key: str, schema: Schema) -> str:
    value = schema.get("default")
    values = value if isinstance(value, list) else [value]
    return ", ".join(
        f"`{_said(key, one)}`"
        for one in values
        if one not in (None, "") and not isinstance(one, dict)
    )


def _said(key: str, value: Any) -> str:
    if _is_size(key):
        return size_words(int(value)).replace(" ", "")
    return value if isinstance(value, str) else f"{json.dumps(value)}"


def _is_size(key: str) -> bool:
    return key.endswith("_bytes") or key == "shard_size"
