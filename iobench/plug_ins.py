"""Create objects of other packages, and check that they have all members of their Protocol."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from dataprep.errors import DataprepError
from dataprep.registry import Registry
from iobench.errors import TrialFailed

Extension = TypeVar("Extension")


def create(
    registry: Registry[Extension],
    name: str,
    protocol: type[Any],
    build: Callable[[], Extension],
) -> Extension:
    """Create a loader, a client or another object, and check it against its Protocol.

    It must have all members of the Protocol. Objects of this package are not checked.

    Args:
        registry: the registry of its class.
        name: the name of its class in the registry.
        protocol: the Protocol that it must follow.
        build: creates the object.

    Raises:
        TrialFailed: an object of another package cannot be created, or lacks a member. The
            message names the package and its entry point.
        Exception: ``build`` raised ``Unavailable``, another error of dataprep or iobench, or an
            error of a class of this package.
    """
    if not registry.origin(name):
        return build()
    try:
        extension = build()
    except DataprepError:
        raise
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise TrialFailed(f"{registry.described(name)} cannot be created: {reason}") from error
    missing = [member for member in members(protocol) if not hasattr(extension, member)]
    if missing:
        raise TrialFailed(
            f"{registry.described(name)} has no {', '.join(missing)}: see docs/extending.md"
        )
    return extension


def members(protocol: type[Any]) -> Sequence[str]:
    """Return the names of the attributes and methods of a Protocol, sorted."""
    methods = {name for name in vars(protocol) if not name.startswith("_")}
    return sorted(methods | set(protocol.__annotations__))
