"""PURE. Read JSON files that have a schema number, and check their content against dataclasses."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from functools import cache
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from dataprep._version import __version__
from dataprep.errors import DataprepError, SchemaTooNew

Target = TypeVar("Target")

STRUCTURE_ERRORS = (
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)
"""The exceptions that code raises if the content of a file does not have the expected structure."""

_MAX_REASON_CHARACTERS = 300
_MAX_SCHEMA_CHARACTERS = 10


def parse(data: bytes, name: str, newest: int) -> dict[str, Any]:
    """Return the content of a JSON file that has a schema number.

    Args:
        data: the bytes of the file.
        name: the name of the file, for errors.
        newest: the newest schema number that this version reads. The oldest is 1.

    Raises:
        SchemaTooNew: a newer version of this package wrote the file.
        ValueError, RecursionError: the file is not a JSON object with a schema number.
            ``malformed_as`` translates these errors.
    """
    content: dict[str, Any] = json.loads(data)
    schema = content.get("schema") if type(content) is dict else None
    if type(schema) is not int or schema < 1:  # isinstance would accept true and false
        raise ValueError("not a JSON object whose 'schema' is a whole number from 1 on")
    if schema > newest:
        raise SchemaTooNew(
            f"{name}: schema {str(schema)[:_MAX_SCHEMA_CHARACTERS]}; this version reads up to "
            f"{newest}: upgrade dataprep-iobench, a newer version wrote this file (this is "
            f"{__version__})"
        )
    return content


def typed(target: type[Target], value: Any) -> Target:
    """Convert a JSON value to a dataclass or another annotated type. Unknown keys are ignored.

    Args:
        target: the type of the result.
        value: the JSON value.

    Raises:
        ValueError: a key is missing, or its value has the wrong type. The message names the key.
    """
    try:
        result: Target = _adapter(cast(Any, target)).validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"{key!r}: {first['msg']}") from None
    return result


@cache
def _adapter(target: Any) -> TypeAdapter[Any]:
    return TypeAdapter(target)


def require(condition: bool, problem: str) -> None:
    """Raise ValueError with the text ``problem`` unless the condition is true."""
    if not condition:
        raise ValueError(problem)


@contextlib.contextmanager
def malformed_as(error_type: type[DataprepError], title: str) -> Iterator[None]:
    """Raise one error instead of the exceptions that a file with a wrong structure causes.

    Args:
        error_type: the type of the error that is raised.
        title: the beginning of its message.
    """
    try:
        yield
    except DataprepError:
        raise
    except STRUCTURE_ERRORS as error:
        # ``str`` of a KeyError would put its message in quotes.
        reason = error.args[0] if isinstance(error, KeyError) and error.args else error
        raise error_type(f"{title}: {str(reason)[:_MAX_REASON_CHARACTERS]}") from None
