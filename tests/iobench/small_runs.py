"""Runs that cost next to nothing, and somebody else's loaders for them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml


@dataclass(frozen=True)
class ThirdParty:
    """An installed package with odd loaders; ``folder`` is where they leave marks."""

    folder: Path

    def has(self, mark: str) -> bool:
        """Whether a loader left it."""
        return (self.folder / mark).exists()

    def mark(self, name: str) -> None:
        """Leave one for a loader."""
        (self.folder / name).touch()


@dataclass(frozen=True)
class Configs:
    """Writes configs that cost next to nothing."""

    folder: Path
    data: dict[str, Any]

    def values(self, **settings: Any) -> dict[str, Any]:
        """One repeat of what is given."""
        return {"name": "small", "repeats": 1, "data": self.data, **settings}

    def write(self, **settings: Any) -> Path:
        """The same in a file."""
        path = self.folder / "config.yaml"
        path.write_text(yaml.safe_dump(self.values(**settings)))
        return path


def loaders(*names: str, **settings: Any) -> list[dict[str, Any]]:
    """A grid of loaders, a twentieth of a second each."""
    return [{"loader": list(names), "workers": 0, "seconds": 0.05, **settings}]
