"""What other packages bring: made, held against what is asked of it, and named."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from dataprep.errors import DataprepError
from dataprep.registry import Registry
from iobench.errors import TrialFailed

Kind = TypeVar("Kind")


def made(
    registry: Registry[Kind], name: str, protocol: type[Any], make: Callable[[], Kind]
) -> Kind:
    """What ``make`` gives, which has every part of ``protocol``.

    Raises:
        TrialFailed: it is another package's, and cannot be made or lacks a part; the package and
            its entry point are named.
        Exception: what ``make`` raises of its own accord: Unavailable, errors of this package's
            classes.
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


def origins(registry: Registry[Any], names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each of ``names`` that another package brings, as (``loader mine``, ``package 1.0``)."""
    for name in dict.fromkeys(names):
        if registry.has(name) and (origin := registry.origin(name)):
            yield f"{registry.noun} {name}", origin


def passed_over(registry: Registry[Any], names: Sequence[str]) -> Iterator[str]:
    """A line for each of ``names`` that other packages have as well, and that is not theirs."""
    for name in dict.fromkeys(names):
        for package in registry.passed_over(name):
            yield (
                f"{registry.noun} {name!r} of {package} is passed over: the name is this "
                "package's own"
            )
