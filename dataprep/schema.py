"""JSON files that say by which schema they were written."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

from dataprep._version import __version__
from dataprep.errors import DataprepError, SchemaTooNew


def parse(data: bytes, name: str, newest: int) -> dict[str, Any]:
    """The content of a file whose key ``schema`` is 1 to ``newest``.

    Raises:
        SchemaTooNew: written by a newer version of this package.
        LookupError, TypeError, ValueError: no such file at all; see ``malformed_as``.
    """
    content = json.loads(data)
    if type(content) is not dict:
        raise TypeError("it is not keys with values")
    if "schema" not in content:
        raise KeyError("it has no 'schema'")
    schema = content["schema"]
    if type(schema) is not int or schema < 1:
        raise ValueError("its 'schema' is no number of one")
    if schema > newest:
        shown = schema if schema < 10**9 else "beyond all numbers"
        raise SchemaTooNew(
            f"{name}: schema {shown}; this version reads up to {newest}: upgrade "
            f"dataprep-iobench, a newer one wrote this ({__version__} is here)"
        )
    return content


_MOST_SAID = 300


MISSHAPEN = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
"""What Python raises on the way through a file that is not of the shape it should be."""


@contextlib.contextmanager
def malformed_as(kind: type[DataprepError], what: str) -> Iterator[None]:
    """Whatever a file of the wrong shape makes Python raise, as one error of this package."""
    try:
        yield
    except DataprepError:
        raise
    except MISSHAPEN as error:
        said = error.args[0] if isinstance(error, KeyError) and error.args else error
        raise kind(f"{what}: {str(said)[:_MOST_SAID]}") from None
