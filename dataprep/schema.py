"""JSON files that say by which schema they were written."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

from dataprep.errors import DataprepError, SchemaTooNew


def parse(data: bytes, name: str, newest: int) -> Any:
    """The content of a file whose key ``schema`` is at most ``newest``.

    Raises:
        SchemaTooNew: written by a newer version of this package.
        LookupError, TypeError, ValueError: no such file at all; see ``malformed_as``.
    """
    content = json.loads(data)
    if content["schema"] > newest:
        raise SchemaTooNew(
            f"{name}: schema {content['schema']}; this version reads up to {newest}: "
            "upgrade dataprep-iobench"
        )
    return content


@contextlib.contextmanager
def malformed_as(kind: type[DataprepError], what: str) -> Iterator[None]:
    """Whatever a file of the wrong shape makes Python raise, as one error of this package."""
    try:
        yield
    except DataprepError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise kind(f"{what}: {error}") from None
