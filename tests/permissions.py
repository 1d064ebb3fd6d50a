"""Helpers for tests of refused permissions, which do not apply to root."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

_NOBODY = 65534


@contextlib.contextmanager
def unprivileged() -> Iterator[None]:
    """Run the block as a user to whom file permissions apply."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(_NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@contextlib.contextmanager
def reachable_folder() -> Iterator[Path]:
    """A temporary folder that every user can reach, outside private folders."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder
        for path in folder.rglob("*"):
            if not path.is_symlink():
                path.chmod(0o755)
