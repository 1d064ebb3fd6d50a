"""Configs of runs that take next to no time, and the marks of a third party's loaders."""

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
        """Return whether a loader has left this mark."""
        return (self.folder / mark).exists()

    def mark(self, name: str) -> None:
        """Leave a mark that a loader waits for."""
        (self.folder / name).touch()


@dataclass(frozen=True)
class Configs:
    """Writes configs whose runs take next to no time."""

    folder: Path
    data: dict[str, Any]

    def values(self, **settings: Any) -> dict[str, Any]:
        """Return the keys of a config with one repeat, unless ``settings`` give more."""
        return {"name": "small", "repeats": 1, "data": self.data, **settings}

    def write(self, **settings: Any) -> Path:
        """Write such a config into a file, whose path is returned."""
        path = self.folder / "config.yaml"
        path.write_text(yaml.safe_dump(self.values(**settings)))
        return path


def loaders(*names: str, **settings: Any) -> list[dict[str, Any]]:
    """Return a grid of loaders that are measured for 0.05 s each."""
    return [{"loader": list(names), "workers": 0, "seconds": 0.05, **settings}]
