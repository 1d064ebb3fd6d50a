"""Implementations by name, this package's own and those of others: entry points.

A name of this package's own always means its own class: figures and files called by it mean the
same everywhere, whatever else is installed. Two other packages with one name are refused when it
is used, since nobody could say which of them is meant.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Generic, TypeVar, cast

from dataprep.errors import ConfigError, DataprepError

Kind = TypeVar("Kind")

OWN = "dataprep-iobench"
"""The distribution that this package comes in."""


@dataclass(frozen=True, slots=True)
class Registry(Generic[Kind]):
    """Classes that are registered in an entry-point ``group``; ``noun`` is what one is called."""

    group: str
    noun: str

    def names(self) -> Sequence[str]:
        """Every name, sorted."""
        return sorted(self._registered())

    def has(self, name: str) -> bool:
        """Whether anything is registered under it."""
        if name not in self._registered():
            _registered.cache_clear()  # it may have been installed since
        return name in self._registered()

    def check(self, name: str) -> str:
        """``name`` itself.

        Raises:
            ConfigError: none is registered under it, or two packages have one.
        """
        if not self.has(name):
            raise ConfigError(f"no {self.noun} {name!r}: use one of {', '.join(self.names())}")
        self._entry(name)
        return name

    def load(self, name: str) -> type[Kind]:
        """The class of that name.

        Raises:
            ConfigError: none is registered under it, two packages have one, or it cannot be
                imported; the package and its entry point are named.
        """
        entry = self._entry(self.check(name))
        try:
            return cast("type[Kind]", entry.load())
        except DataprepError:
            raise
        except Exception as error:
            if not _origin(entry):
                raise
            why = " ".join(f"{type(error).__name__}: {error}".split())
            raise ConfigError(f"{self.described(name)} cannot be loaded: {why}") from error

    def origin(self, name: str) -> str:
        """The package that brings it, ``odd-loaders 1.0``; empty for one of this package's own."""
        return _origin(self._entry(self.check(name)))

    def described(self, name: str) -> str:
        """``loader 'odd' of odd-loaders 1.0 (odd.loaders:Odd)``, for errors."""
        entry = self._entry(name)
        of = f" of {_origin(entry)} ({entry.value})" if _origin(entry) else ""
        return f"{self.noun} {name!r}{of}"

    def passed_over(self, name: str) -> Sequence[str]:
        """Packages whose entry under a name of this package's own is not used."""
        entries = self._registered().get(name, ())
        others = [_origin(entry) for entry in entries if _origin(entry)]
        return others if len(others) < len(entries) else []

    def _entry(self, name: str) -> EntryPoint:
        entries = self._registered()[name]
        own = [entry for entry in entries if not _origin(entry)]
        chosen = own or entries
        if len(chosen) > 1 and not own:
            whose = " and ".join(f"{_origin(entry)} ({entry.value})" for entry in chosen)
            raise ConfigError(f"two packages have a {self.noun} {name!r}: {whose}: remove one")
        return chosen[0]

    def _registered(self) -> Mapping[str, Sequence[EntryPoint]]:
        return _registered(self.group, tuple(sys.path))


def _origin(entry: EntryPoint) -> str:
    found = entry.dist
    if found is None or found.name == OWN:
        return ""
    return f"{found.name} {found.version}"


@lru_cache(maxsize=64)
def _registered(group: str, path: tuple[str, ...]) -> Mapping[str, Sequence[EntryPoint]]:
    """Looked up once a ``path``: all that is installed there is read for it, 0.1 s and more."""
    found: dict[str, list[EntryPoint]] = {}
    for entry in entry_points(group=group):
        found.setdefault(entry.name, []).append(entry)
    return found
