"""One run at a time in a folder."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from dataprep.errors import ConfigError
from iobench.errors import RunConflict


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Make ``folder``, and keep other runs out of it for the ``with`` block.

    By a lock of the folder itself (flock(2)): it leaves no file, and ends with the process that
    has it, however that ends. Where the file system has no locks nobody is kept out.

    Raises:
        RunConflict: another run is at work there.
        ConfigError: the folder cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot make {folder}: {error.strerror}") from None
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # nobody may read it: who writes there says so
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            stack.callback(os.close, descriptor)
            _lock(descriptor, folder)
        yield


def _lock(descriptor: int, folder: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise RunConflict(
            f"another run is at work in {folder}: wait until it has ended, or choose another "
            "--output"
        ) from None
