"""Look up classes by name. This package and other packages register them as entry points.

If another package registers a name of this package, the class of this package is used. Therefore
results with the same name are comparable on all machines.
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

OWN_DISTRIBUTION = "dataprep-iobench"
"""The name under which pip installs this package."""


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
        """Return ``name`` if it stands for exactly one class.

        Raises:
            ConfigError: no class has the name; or this package does not register it, and several
                other packages do.
        """
        self._entry(name)
        return name

    def load(self, name: str) -> type[Registered]:
        """Import and return a class.

        Raises:
            ConfigError: as in ``check``, or the class cannot be imported. The message names the
                package and the entry point.
        """
        entry = self._entry(name)
        try:
            return cast("type[Registered]", entry.load())
        except DataprepError:
            raise
        except Exception as error:
            if not _origin(entry):
                raise  # an error in this package, which is a bug, keeps its traceback
            reason = " ".join(f"{type(error).__name__}: {error}".split())  # on one line
            raise ConfigError(f"{self.described(name)} cannot be loaded: {reason}") from error

    def origin(self, name: str) -> str:
        """Return the package that registers a class, such as ``odd-loaders 1.0``.

        The result is empty for this package.

        Raises:
            ConfigError: as in ``check``.
        """
        return _origin(self._entry(name))

    def described(self, name: str) -> str:
        """Describe a class for messages: ``loader 'odd' of odd-loaders 1.0 (odd.loaders:Odd)``.

        Raises:
            ConfigError: as in ``check``.
        """
        entry = self._entry(name)
        origin = _origin(entry)
        if not origin:
            return f"{self.noun} {name!r}"
        return f"{self.noun} {name!r} of {origin} ({entry.value})"

    def shadowed_packages(self, name: str) -> Sequence[str]:
        """Return the packages whose class is not used, because this package registers the name."""
        entries = self._entries().get(name, ())
        other_packages = [_origin(entry) for entry in entries if _origin(entry)]
        is_own_name = len(other_packages) < len(entries)
        return other_packages if is_own_name else []

    def _entry(self, name: str) -> EntryPoint:
        """The entry point of a name. Raises ConfigError as in ``check``."""
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
        return _entry_points_by_name(self.group, tuple(sys.path))


def _origin(entry: EntryPoint) -> str:
    """The package of an entry point with its version; empty for this package."""
    return "" if entry.dist is None else _name_and_version(entry.dist)


@lru_cache(maxsize=64)
def _name_and_version(package: Distribution) -> str:
    """The name and version of a package; empty for this package.

    The result is cached, because each access to ``name`` parses the metadata file of the package.
    """
    return "" if package.name == OWN_DISTRIBUTION else f"{package.name} {package.version}"


@lru_cache(maxsize=64)
def _entry_points_by_name(group: str, path: tuple[str, ...]) -> Mapping[str, Sequence[EntryPoint]]:
    """All entry points of a group by name.

    Reading them takes 0.1 s. Therefore they are read only once for each value of ``sys.path``,
    which is ``path``.
    """
    entries_by_name: dict[str, list[EntryPoint]] = {}
    for entry in entry_points(group=group):
        entries_by_name.setdefault(entry.name, []).append(entry)
    return entries_by_name
