"""Installs packages of third parties into a folder for ``PYTHONPATH``."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]


def pyproject(name: str, groups: Mapping[str, Mapping[str, str]], version: str = "1.0") -> str:
    """A pyproject.toml with these entry points."""
    lines = ["[project]", f'name = "{name}"', f'version = "{version}"']
    for group, entries in groups.items():
        lines += ["", f'[project.entry-points."{group}"]']
        lines += [f'{key} = "{value}"' for key, value in entries.items()]
    return "\n".join(lines) + "\n"


class Package:
    """An installed package: its modules, and the metadata of its pyproject.toml."""

    def __init__(self, folder: Path, files: Mapping[str, str], **env: str) -> None:
        self.folder = folder
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        project = tomllib.loads(files["pyproject.toml"])["project"]
        name, version = project["name"], project["version"]
        info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        lines = []
        for group, entries in project["entry-points"].items():
            lines += [f"[{group}]", *(f"{key} = {value}" for key, value in entries.items())]
        (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
        self.env = {"PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)]), **env}
