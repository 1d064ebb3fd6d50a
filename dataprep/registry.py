"""Implementations by name: this package's own and those of other packages, by entry points.

A name of this package always means its own class, whatever else is installed, so that results with
the same name are comparable.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import Distribution, EntryPoint, entry_points
from typing import Generic, TypeVar, cast

from dataprep.errors import ConfigError, DataprepError

Kind = TypeVar("Kind")

OWN = "dataprep-iobench"
"""The distribution of this package."""


@dataclass(frozen=True, slots=True)
class Registry(Generic[Kind]):
    """The classes in an entry-point ``group``; ``noun`` is what messages call one of them."""

    group: str
    noun: str

    def names(self) -> Sequence[str]:
        """Every name, sorted."""
        return sorted(self._entries())

    def has(self, name: str) -> bool:
        """Whether a class is registered under ``name``."""
        return name in self._entries()

    def check(self, name: str) -> str:
        """``name`` itself. Raises ConfigError: no class has it, or two packages register one."""
        self._entry(name)
        return name

    def load(self, name: str) -> type[Kind]:
        """The class of that name.

        Raises:
            ConfigError: as ``check``, or it cannot be imported; names package and entry point.
        """
        entry = self._entry(name)
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
        """The package that registers it, as in ``odd-loaders 1.0``; empty for this package."""
        return _origin(self._entry(name))

    def described(self, name: str) -> str:
        """``loader 'odd' of odd-loaders 1.0 (odd.loaders:Odd)``, for messages."""
        entry = self._entry(name)
        of = f" of {_origin(entry)} ({entry.value})" if _origin(entry) else ""
        return f"{self.noun} {name!r}{of}"

    def passed_over(self, name: str) -> Sequence[str]:
        """Packages that register a name of this package; theirs is not used."""
        entries = self._entries().get(name, ())
        others = [_origin(entry) for entry in entries if _origin(entry)]
        return others if len(others) < len(entries) else []

    def _entry(self, name: str) -> EntryPoint:
        entries = self._entries().get(name)
        if entries is None:
            raise ConfigError(f"no {self.noun} {name!r}: use one of {', '.join(self.names())}")
        chosen = [entry for entry in entries if not _origin(entry)] or entries
        if len(chosen) > 1:
            whose = " and ".join(f"{_origin(entry)} ({entry.value})" for entry in chosen)
            raise ConfigError(f"two packages have a {self.noun} {name!r}: {whose}: remove one")
        return chosen[0]

    def _entries(self) -> Mapping[str, Sequence[EntryPoint]]:
        return _registered(self.group, tuple(sys.path))


def _origin(entry: EntryPoint) -> str:
    return "" if entry.dist is None else _title(entry.dist)


@lru_cache(maxsize=64)
def _title(package: Distribution) -> str:
    """Its name and version, whose file is parsed once; empty for this package."""
    return "" if package.name == OWN else f"{package.name} {package.version}"


@lru_cache(maxsize=64)
def _registered(group: str, path: tuple[str, ...]) -> Mapping[str, Sequence[EntryPoint]]:
    """Every entry by name. Reading them takes 0.1 s, so that it happens once for each ``path``."""
    found: dict[str, list[EntryPoint]] = {}
    for entry in entry_points(group=group):
        found.setdefault(entry.name, []).append(entry)
    return found
