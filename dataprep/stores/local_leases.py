"""Leases of a directory: locks on files, which end with the process that has them (flock(2)).

A lock belongs to the opened file. Forks of this process close theirs at once, so that a worker
which outlives it keeps nothing.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dataprep.stores.local_errors import translated
from dataprep.stores.processes import lives, machine, started
from dataprep.stores.protocol import Holder

_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL}
_MOST_SAID = 2**16
# Not what a link leads to, which would be emptied; and never waiting, as for a device.
_OPENED = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_TRIES, _WAIT_S = 5, 0.02  # whoever only looks who has a lock, has it for a moment
_GONE_TRIES = 100

_mine: set[int] = set()


def _let_go() -> None:
    for descriptor in _mine:
        with contextlib.suppress(OSError):
            os.close(descriptor)
    _mine.clear()


os.register_at_fork(after_in_child=_let_go)


class FileLease:
    """A locked file, removed when it is released."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path, self._descriptor = path, descriptor
        _mine.add(descriptor)

    def lost(self) -> str:
        """A lock keeps others out for as long as they would lock this very file."""
        return "" if _is_at(self._path, self._descriptor) else f"{str(self._path)!r} is gone"

    def claim(self) -> ProcessClaim:
        """For those who write under this lease."""
        return ProcessClaim(machine(), os.getpid(), started(os.getpid()))

    def release(self) -> None:
        """Remove the file, then unlock it: who waits for it finds that it is no longer there."""
        if self._descriptor not in _mine:
            return
        _mine.remove(self._descriptor)
        with contextlib.suppress(OSError):
            if _is_at(self._path, self._descriptor):
                self._path.unlink()
            for folder in (self._path.parent, self._path.parent.parent):
                folder.rmdir()  # where nothing else is in it
        os.close(self._descriptor)


@dataclass(frozen=True, slots=True)
class ProcessClaim:
    """Whether the process that has a lock still lives, as far as this machine can tell.

    A worker may outlive its driver for seconds, and a lock does not: what it would store then, it
    would store over what the next run makes.
    """

    machine: str
    process: int
    started: str

    def lost(self) -> str:
        """It ended."""
        if self.machine != machine() or lives(self.process, self.started):
            return ""
        return "the process that had it is gone"


def take(path: Path, said: str) -> FileLease | Holder | None:
    """Lock ``path``, or tell who has; None on a file system that knows no locks.

    Raises:
        StoreError: the file cannot be written.
    """
    with translated(str(path)):
        gone = 0
        while True:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                descriptor = os.open(path, _OPENED | os.O_CREAT, 0o666)
            except FileNotFoundError:  # whoever released another lease removed the folder
                gone += 1
                if gone < _GONE_TRIES:
                    continue
                raise  # there can be none: below /proc, or below a folder that was removed
            try:
                locked = _locked(descriptor)
                if locked is None:
                    path.unlink(missing_ok=True)
                    return None
                if not locked:
                    return _holder(path, descriptor)
                if _is_at(path, descriptor):
                    os.ftruncate(descriptor, 0)
                    os.pwrite(descriptor, said.encode(), 0)
                    lease, descriptor = FileLease(path, descriptor), -1
                    return lease
            finally:
                if descriptor >= 0:
                    os.close(descriptor)


def holders(folder: Path, prefix: str) -> Iterator[Holder]:
    """Who has which of the files in ``folder`` whose names begin with ``prefix``."""
    with translated(str(folder)):
        paths = sorted(folder.iterdir()) if folder.is_dir() else []
        for path in paths:
            if not path.name.startswith(prefix):
                continue
            with translated(str(path)):
                try:
                    descriptor = os.open(path, _OPENED)
                except FileNotFoundError:  # released meanwhile
                    continue
                try:
                    if _locked(descriptor, tries=1, how=fcntl.LOCK_SH) is False:
                        yield _holder(path, descriptor)
                finally:
                    os.close(descriptor)


def sweep(folder: Path) -> None:
    """Remove the files that nobody has locked, and the folder where none is left."""
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            with contextlib.suppress(OSError):  # one that cannot be opened hinders no other
                _remove_unless_locked(path)
        folder.rmdir()


def _remove_unless_locked(path: Path) -> None:
    descriptor = os.open(path, _OPENED)
    try:
        if _locked(descriptor, tries=1) and _is_at(path, descriptor):
            path.unlink()
    finally:
        os.close(descriptor)


def _locked(descriptor: int, tries: int = _TRIES, how: int = fcntl.LOCK_EX) -> bool | None:
    for number in range(tries):
        if number:
            time.sleep(_WAIT_S)
        try:
            fcntl.flock(descriptor, how | fcntl.LOCK_NB)
        except BlockingIOError:
            continue
        except OSError as error:
            if error.errno in _NO_LOCKS:
                return None
            raise
        return True
    return False


def _is_at(path: Path, descriptor: int) -> bool:
    """Whether the opened file is still the one of that name."""
    try:
        there, mine = path.lstat(), os.fstat(descriptor)
    except OSError:
        return False
    return (there.st_dev, there.st_ino) == (mine.st_dev, mine.st_ino)


def _holder(path: Path, descriptor: int) -> Holder:
    said = os.pread(descriptor, _MOST_SAID, 0).decode(errors="replace")
    return Holder(path.name, said, "", None)
