"""Make objects of other packages, and check that they follow their protocol."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from dataprep.errors import DataprepError
from dataprep.registry import Registry
from iobench.errors import TrialFailed

Kind = TypeVar("Kind")


def made(
    registry: Registry[Kind], name: str, protocol: type[Any], make: Callable[[], Kind]
) -> Kind:
    """Return what ``make`` returns, after a check that it has every part of ``protocol``.

    Raises:
        TrialFailed: it is another package's, and cannot be made or lacks a part; the package and
            its entry point are named.
        Exception: errors of ``make`` itself: Unavailable, and those of this package's classes.
    """
    if not registry.origin(name):
        return make()
    try:
        found = make()
    except DataprepError:
        raise
    except Exception as error:
        why = " ".join(f"{type(error).__name__}: {error}".split())
        raise TrialFailed(f"{registry.described(name)} cannot be made: {why}") from error
    if missing := [part for part in parts(protocol) if not hasattr(found, part)]:
        raise TrialFailed(
            f"{registry.described(name)} has no {', '.join(missing)}: see docs/extending.md"
        )
    return found


def parts(protocol: type[Any]) -> Sequence[str]:
    """Attributes and methods that a Protocol asks for, sorted."""
    named = {name for name in vars(protocol) if not name.startswith("_")}
    return sorted(named | set(protocol.__annotations__))
