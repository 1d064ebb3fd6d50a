"""Programs of others: in this interpreter's environment first, then on the path."""

from __future__ import annotations

import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path


def found(name: str) -> str | None:
    """Where a program is, None if nowhere.

    A wheel that brings one as ``NAME/bin/NAME`` installs a script in Python that calls it, which
    takes longer to start than it does: the program itself is preferred.
    """
    spec = find_spec(name) if name.isidentifier() else None
    packages = (spec.submodule_search_locations if spec else None) or ()
    folders = [*(str(Path(package) / "bin") for package in packages), _own(), _path()]
    return shutil.which(name, path=os.pathsep.join(folders))


def required(name: str) -> str:
    """Where a program is. Raises FileNotFoundError where it is not."""
    if path := found(name):
        return path
    raise FileNotFoundError(f"{name} is not installed")


def _own() -> str:
    """This environment need not be on the path."""
    return str(Path(sys.executable).parent)


def _path() -> str:
    return os.environ.get("PATH", os.defpath)
