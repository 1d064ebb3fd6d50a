"""Types of config keys: the base class of all settings, and keys that take one value or a list."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    GetJsonSchemaHandler,
)
from pydantic_core import CoreSchema

Item = TypeVar("Item")


class Settings(BaseModel):
    """Base class of a part of a config.

    It is frozen and refuses unknown keys. The string below a field describes the field.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, use_attribute_docstrings=True
    )


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


def _not_empty(values: Any) -> Any:
    if not values:
        raise ValueError("give at least 1")
    return values


def _without_duplicates(values: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(values))


class _ValueOrListSchema:
    """Adds to the JSON schema of a list that a single value needs no list around it."""

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        list_schema = handler(schema)
        return {"anyOf": [list_schema["items"], list_schema]}


class AlsoNull:
    """Adds to the JSON schema of a name that YAML's null is accepted as well."""

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"anyOf": [handler(schema), {"type": "null"}]}


ZeroOrMore = Annotated[
    tuple[Item, ...],
    AfterValidator(_without_duplicates),
    BeforeValidator(_as_tuple),
    _ValueOrListSchema(),
]
"""A key that takes one value or a list, which may be empty. Duplicates are removed."""

# Pydantic runs the last validator first. An empty list is refused before its items are checked, so
# that an invalid item does not also count as a missing one.
OneOrMore = Annotated[
    tuple[Item, ...],
    AfterValidator(_without_duplicates),
    BeforeValidator(_not_empty),
    BeforeValidator(_as_tuple),
    _ValueOrListSchema(),
]
"""A key that takes one value or a list, which must not be empty. Duplicates are removed."""


def null_as_name(value: Any) -> Any:
    """Replace YAML's null by "null", which is the name of a loader and of a consumer."""
    return "null" if value is None else value


def grid(axes: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    """Yield every combination of the values of all axes. The last axis changes fastest."""
    for values in itertools.product(*axes.values()):
        yield dict(zip(axes, values, strict=True))
