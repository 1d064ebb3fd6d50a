"""PURE. The JSON schema of a config, as editors take it.

Draft 7, which every editor reads: YAML's language server has read no later one for most of its
life. Names of ``$defs`` are reached by their pointers, whatever the draft calls that place.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

DRAFT = "http://json-schema.org/draft-07/schema#"
FILE = "schema.json"
"""What it is called, beside the configs that it describes."""

_NO_KEYWORDS = frozenset({"le", "lt", "ge", "gt"})
"""Bounds that pydantic leaves as they are where a number may also be text."""


def editor_schema(model: type[BaseModel], title: str) -> str:
    """The schema of a model as JSON: every key with its type, bounds, default and meaning."""
    found = _cleaned(model.model_json_schema(), named=False)
    return json.dumps({"$schema": DRAFT, "title": title, **found}, indent=1) + "\n"


def modeline(file: str = FILE) -> str:
    """The comment that has an editor hold a YAML file against a schema beside it."""
    return f"# yaml-language-server: $schema={file}"


def _cleaned(value: Any, *, named: bool) -> Any:
    """Without the titles that repeat a key's name; ``named``: keys are names, not keywords."""
    if isinstance(value, list):
        return [_cleaned(one, named=False) for one in value]
    if not isinstance(value, Mapping):
        return value
    if named:
        return {key: _cleaned(inner, named=False) for key, inner in value.items()}
    kept = {key: inner for key, inner in value.items() if key not in _NO_KEYWORDS | {"title"}}
    if "prefixItems" in kept:  # what draft 7 calls items
        kept["items"] = kept.pop("prefixItems")
    if isinstance(kept.get("description"), str):
        kept["description"] = " ".join(kept["description"].replace("``", "`").split())
    if "$ref" in kept and len(kept) > 1:  # beside it draft 7 reads nothing
        kept["allOf"] = [{"$ref": kept.pop("$ref")}]
    return {key: _part(key, inner) for key, inner in kept.items()}


def _part(key: str, value: Any) -> Any:
    if key in ("default", "const", "enum"):
        return value
    return _cleaned(value, named=key in ("properties", "$defs"))
