"""Classes by name: those of this package and of other packages, through entry points.

A name of this package always means its own class, whatever else is installed. So results with the
same name are comparable.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import Distribution, EntryPoint, entry_points
from typing import Generic, TypeVar, cast

from dataprep.errors import ConfigError, DataprepError

Registered = TypeVar("Registered")

OWN = "dataprep-iobench"
"""The name of the distribution of this package."""


@dataclass(frozen=True, slots=True)
class Registry(Generic[Registered]):
    """The classes in a group of entry points.

    Attributes:
        group: the name of the group.
        noun: what messages call a class of the group, such as ``loader``.
    """

    group: str
    noun: str

    def names(self) -> Sequence[str]:
        """Return every name, sorted."""
        return sorted(self._entries())

    def has(self, name: str) -> bool:
        """Whether a class is registered under ``name``."""
        return name in self._entries()

    def check(self, name: str) -> str:
        """Return ``name`` if exactly one class has it.

        Raises:
            ConfigError: no class has the name, or two packages register one.
        """
        self._entry(name)
        return name

    def load(self, name: str) -> type[Registered]:
        """Import and return a class.

        Raises:
            ConfigError: as ``check``; or the class cannot be imported. The message names the
                package and the entry point.
        """
        entry = self._entry(name)
        try:
            return cast("type[Registered]", entry.load())
        except DataprepError:
            raise
        except Exception as error:
            if not _origin(entry):
                raise
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            raise ConfigError(f"{self.described(name)} cannot be loaded: {reason}") from error

    def origin(self, name: str) -> str:
        """Return the package that registers a class, as in ``odd-loaders 1.0``.

        It is empty for this package.

        Raises:
            ConfigError: as ``check``.
        """
        return _origin(self._entry(name))

    def described(self, name: str) -> str:
        """Describe a class for messages: ``loader 'odd' of odd-loaders 1.0 (odd.loaders:Odd)``.

        Raises:
            ConfigError: as ``check``.
        """
        entry = self._entry(name)
        origin = _origin(entry)
        if not origin:
            return f"{self.noun} {name!r}"
        return f"{self.noun} {name!r} of {origin} ({entry.value})"

    def shadowed_packages(self, name: str) -> Sequence[str]:
        """Return the packages whose class is not used, since this package has the name too."""
        entries = self._entries().get(name, ())
        others = [_origin(entry) for entry in entries if _origin(entry)]
        is_own_name = len(others) < len(entries)
        return others if is_own_name else []

    def _entry(self, name: str) -> EntryPoint:
        """The entry point of a name. Raises ConfigError, as ``check``."""
        entries = self._entries().get(name)
        if entries is None:
            raise ConfigError(f"no {self.noun} {name!r}: use one of {', '.join(self.names())}")
        own_entries = [entry for entry in entries if not _origin(entry)]
        candidates = own_entries or entries
        if len(candidates) > 1:
            origins = " and ".join(f"{_origin(entry)} ({entry.value})" for entry in candidates)
            raise ConfigError(f"two packages have a {self.noun} {name!r}: {origins}: remove one")
        return candidates[0]

    def _entries(self) -> Mapping[str, Sequence[EntryPoint]]:
        """All entry points of the group by name."""
        return _registered(self.group, tuple(sys.path))


def _origin(entry: EntryPoint) -> str:
    """The package of an entry point with its version; empty for this package."""
    return "" if entry.dist is None else _title(entry.dist)


@lru_cache(maxsize=64)
def _title(package: Distribution) -> str:
    """The name and version of a package; empty for this package. Its file is parsed only once."""
    return "" if package.name == OWN else f"{package.name} {package.version}"


@lru_cache(maxsize=64)
def _registered(group: str, path: tuple[str, ...]) -> Mapping[str, Sequence[EntryPoint]]:
    """Every entry point of a group by name.

    Reading them takes 0.1 s, so they are read only once for each ``path``, the value of
    ``sys.path``.
    """
    entries_by_name: dict[str, list[EntryPoint]] = {}
    for entry in entry_points(group=group):
        entries_by_name.setdefault(entry.name, []).append(entry)
    return entries_by_name
