"""An environment is made like an image with PyTorch, without this package's other dependencies."""

from __future__ import annotations

import re
import venv
from collections.abc import Iterable
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

from benchmarks.gpu.build import BROUGHT

PACKAGES = ("torch", "pip", *sorted(BROUGHT))


def with_dependencies(names: Iterable[str]) -> dict[str, Distribution]:
    """Return the installed distributions of these names and of all that they need, by name."""
    needed: dict[str, Distribution] = {}
    waiting = list(names)
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if name in needed:
            continue
        try:
            needed[name] = distribution(name)
        except PackageNotFoundError:
            # A build for processors needs no library of CUDA, for example.
            continue
        for line in needed[name].requires or ():
            requirement = Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                waiting.append(requirement.name)
    return needed


def make_image(folder: Path) -> Path:
    """Make the environment of links to installed packages; return its interpreter."""
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for package in with_dependencies(PACKAGES).values():
        tops = {file.parts[0] for file in package.files or ()} - {"..", "__pycache__"}
        for top in tops:
            link = site / top
            if not link.exists():
                link.symlink_to(Path(str(package.locate_file(top))))
    return folder / "bin" / "python"
