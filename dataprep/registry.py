"""Implementations by name, this package's own and those of others: entry points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Generic, TypeVar, cast

from dataprep.errors import ConfigError

Kind = TypeVar("Kind")


@dataclass(frozen=True, slots=True)
class Registry(Generic[Kind]):
    """Classes that are registered in an entry-point ``group``; ``noun`` is what one is called."""

    group: str
    noun: str

    def names(self) -> Sequence[str]:
        """Every name, sorted."""
        return sorted(entry_points(group=self.group).names)

    def check(self, name: str) -> str:
        """``name`` itself.

        Raises:
            ConfigError: none is registered under it.
        """
        if name not in self.names():
            raise ConfigError(f"no {self.noun} {name!r}: use one of {', '.join(self.names())}")
        return name

    def load(self, name: str) -> type[Kind]:
        """The class of that name.

        Raises:
            ConfigError: none is registered under it.
        """
        return cast("type[Kind]", entry_points(group=self.group)[self.check(name)].load())
