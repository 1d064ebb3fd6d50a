"""Every key of a config as Markdown: ``python -m iobench.config_reference``.

Types, bounds and defaults come from the JSON schema of ``BenchConfig``, meanings from the
docstrings of its fields.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from iobench.config import BenchConfig
from iobench.words import size_words

Schema = Mapping[str, Any]

_HEAD = """\
# Keys of a benchmark config

Parts that are left out are not measured. A key that takes several values takes one of them or a
list. Sizes are written as `64MiB`, `8MB` or bytes. `--set` overrides a key, as in
`--set data.images=5000`, and in lists by number: `--set training.0.steps=50`.
`iobench run CONFIG --print-config` prints a config with all its defaults.

This page is made by `python -m iobench.config_reference`.
"""
_SECTIONS = (
    ("The run", "BenchConfig"),
    ("data", "DataSettings"),
    ("data.bucket", "BucketSettings"),
    ("disk", "DiskSettings"),
    ("disk.targets", "DiskTarget"),
    ("object_store", "ObjectStoreSettings"),
    ("object_store.targets", "StoreTarget"),
    ("loaders", "LoaderGrid"),
    ("training", "Training"),
    ("data.store, data.bucket.store, object_store.targets.store", "StoreOptions"),
)


def reference() -> str:
    """The whole page, Markdown."""
    schema = BenchConfig.model_json_schema()
    models = {"BenchConfig": schema, **schema["$defs"]}
    sections = (line for title, name in _SECTIONS for line in _section(title, models[name]))
    return "\n".join([_HEAD, *sections])


def _section(title: str, model: Schema) -> Iterator[str]:
    yield f"## {title}\n"
    yield "| key | takes | default | meaning |"
    yield "| --- | --- | --- | --- |"
    for key, found in model["properties"].items():
        default = "needed" if key in model.get("required", ()) else _default(key, found)
        meaning = " ".join(found["description"].split())
        yield f"| `{key}` | {_takes(key, found)} | {default} | {meaning} |"
    yield ""


def _takes(key: str, schema: Schema) -> str:
    if "anyOf" in schema:
        schema = next(one for one in schema["anyOf"] if one.get("type") != "null")
    if "$ref" in schema:
        return "keys, see below"
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    kind = schema["type"]
    if kind == "array":
        inner = schema["items"]
        return "a list of keys, see below" if "$ref" in inner else f"several: {_takes(key, inner)}"
    if kind == "boolean":
        return "`true`, `false`"
    if _is_size(key):
        return "a size"
    return "text" if kind == "string" else _number(schema)


def _number(schema: Schema) -> str:
    what = "a whole number" if schema["type"] == "integer" else "a number"
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is None:
        return f"{what} above {schema['exclusiveMinimum']:,}"
    # A bound that keeps nonsense out is not worth a word.
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


if __name__ == "__main__":
    sys.stdout.write(reference())
