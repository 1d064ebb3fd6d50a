"""The folder in which a process meets its worker processes, and those that dead ones left.

multiprocessing makes it among temporary files, for a socket, and removes it at the end of its
process, to which a killed one never comes; Dask's workers have their own folders in it. It is
marked by a locked file: the lock ends with the process, whatever ends that.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
from multiprocessing import util
from pathlib import Path

_MARK = "dataprep.lock"
_FOLDERS = "pymp-*"  # as multiprocessing.util.get_temp_dir calls them


def hold() -> None:
    """Mark the folder of this process for as long as the process lives."""
    folder = Path(util.get_temp_dir())
    if (folder / _MARK).exists():
        return
    with contextlib.suppress(OSError):  # where nothing can be locked it stays as it would be
        begun = folder / f"{_MARK}.{os.getpid()}"
        descriptor = os.open(begun, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # never closed
        begun.rename(folder / _MARK)  # nobody sees it before it is locked


def sweep() -> None:
    """Remove the marked folders of this user's processes that are gone."""
    try:
        folders = [*Path(tempfile.gettempdir()).glob(_FOLDERS)]
    except OSError:  # nothing can be written anywhere: small jobs need no such folder
        return
    for folder in folders:
        with contextlib.suppress(OSError):
            status = folder.lstat()
            if stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid():
                _remove_if_left(folder)


def _remove_if_left(folder: Path) -> None:
    descriptor = os.open(folder / _MARK, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(descriptor)
