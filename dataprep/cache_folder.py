"""Files kept between runs: ``$XDG_CACHE_HOME/dataprep``, or a folder that is named.

The place is that of the XDG Base Directory Specification. Every file appears whole or not at all,
and where nothing can be written, nothing is kept: what is in here can always be made again.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

_PARTIAL = ".partial"
_SILENT_S = 24 * 3600


class CacheFolder:
    """A folder of such files; it is made when the first one is kept."""

    def __init__(self, folder: str | None = None) -> None:
        self.path = Path(folder).expanduser() if folder else default_folder()

    def keep(self, name: str, write: Callable[[BinaryIO], object]) -> None:
        """Write a file that takes its name when it is whole; what cannot be written is not kept."""
        with contextlib.suppress(OSError):
            self.path.mkdir(parents=True, exist_ok=True)
            self._sweep()
            descriptor, partial = tempfile.mkstemp(dir=self.path, suffix=_PARTIAL)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    write(file)
                Path(partial).replace(self.path / name)
            finally:
                Path(partial).unlink(missing_ok=True)

    def _sweep(self) -> None:
        """Remove what a killed process wrote halfway."""
        for partial in self.path.glob(f"*{_PARTIAL}"):
            with contextlib.suppress(OSError):
                if time.time() - partial.stat().st_mtime > _SILENT_S:
                    partial.unlink()


def default_folder() -> Path:
    """``$XDG_CACHE_HOME/dataprep``, or ``~/.cache/dataprep`` where that is not set."""
    home = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(home) if home.startswith("/") else Path("~/.cache").expanduser()
    return base / "dataprep"
