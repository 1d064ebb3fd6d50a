"""PURE. JSON files with a schema number, checked against the types that they were written from."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from functools import cache
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from dataprep._version import __version__
from dataprep.errors import DataprepError, SchemaTooNew

Kind = TypeVar("Kind")

MISSHAPEN = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
"""What Python raises while it reads a file of an unexpected shape."""


def parse(data: bytes, name: str, newest: int) -> dict[str, Any]:
    """The content of a file whose key ``schema`` is 1 to ``newest``.

    Raises:
        SchemaTooNew: written by a newer version of this package.
        LookupError, TypeError, ValueError: any other content; see ``malformed_as``.
    """
    content: dict[str, Any] = json.loads(data)
    schema = content.get("schema") if type(content) is dict else None
    if type(schema) is not int or schema < 1:
        raise ValueError("not a JSON object whose 'schema' is a whole number from 1 on")
    if schema > newest:
        raise SchemaTooNew(
            f"{name}: schema {str(schema)[:10]}; this version reads up to {newest}: upgrade "
            f"dataprep-iobench, a newer one wrote this ({__version__} is here)"
        )
    return content


def typed(kind: type[Kind], value: Any) -> Kind:
    """A JSON value as ``kind``: a dataclass or another annotated type. Unknown keys are ignored.

    Raises:
        ValueError: a key is missing or its value has another type; the key is named.
    """
    try:
        found: Kind = _adapter(cast(Any, kind)).validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"{key!r}: {first['msg']}") from None
    return found


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def require(condition: bool, problem: str) -> None:
    """Raise ValueError with the ``problem`` unless the condition holds."""
    if not condition:
        raise ValueError(problem)


@contextlib.contextmanager
def malformed_as(kind: type[DataprepError], what: str) -> Iterator[None]:
    """Raise the errors that a file of the wrong shape causes as one of this package."""
    try:
        yield
    except DataprepError:
        raise
    except MISSHAPEN as error:
        said = error.args[0] if isinstance(error, KeyError) and error.args else error
        raise kind(f"{what}: {str(said)[:300]}") from None
