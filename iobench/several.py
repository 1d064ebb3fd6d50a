"""What all configs share: a base class, and values that may be one or a list (a grid)."""

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
    """A part of a config: frozen, no unknown keys, described by the strings below its fields."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, use_attribute_docstrings=True
    )


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


def _some(values: Any) -> Any:
    if not values:
        raise ValueError("give at least 1")
    return values


def _distinct(values: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(values))


class _OneOrSeveral:
    """Says in the JSON schema that one value needs no list around it."""

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        found = handler(schema)
        return {"anyOf": [found["items"], found]}


class AlsoNull:
    """Says in the JSON schema that YAML's null is accepted as a name."""

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"anyOf": [handler(schema), {"type": "null"}]}


AnyNumber = Annotated[
    tuple[Item, ...], AfterValidator(_distinct), BeforeValidator(_as_tuple), _OneOrSeveral()
]
# Checked before its items are: one that is refused is not missing as well.
Several = Annotated[
    tuple[Item, ...],
    AfterValidator(_distinct),
    BeforeValidator(_some),
    BeforeValidator(_as_tuple),
    _OneOrSeveral(),
]


def bare_null(value: Any) -> Any:
    """Take YAML's null as the name of the loader or consumer ``null``."""
    return "null" if value is None else value


def grid(axes: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    """Every combination, the last axis fastest."""
    for values in itertools.product(*axes.values()):
        yield dict(zip(axes, values, strict=True))
