"""A directory as a store."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any

from dataprep.errors import ObjectNotFound, PermissionRefused, StoreError, StoreFull
from dataprep.names import by_bytes
from dataprep.processes import ProcessIdentity, this_process
from dataprep.stores.options import StoreOptions
from dataprep.stores.protocol import BROKEN, LEAVES, Buffer, KeepsLocks, ObjectInfo, Versioned

PARTIAL = ".partial"
"""Begins the names of files that grow, at the root; earlier versions had a folder of that name."""

_PARTIAL_NAME = re.compile(
    rf"{re.escape(PARTIAL)}-(?P<machine>[0-9a-f]{{16}})-(?P<process>\d{{1,18}})-(?P<started>\w*)"
    "-[0-9a-f]{16}"
)
_ABANDONED_AFTER_S = 86_400.0
_BLOCK_BYTES = 4096
_PAST_CACHE_FROM_BYTES = 2**22


class LocalStore(KeepsLocks):
    """Files below a directory. A file appears under its name complete or not at all."""

    def __init__(self, uri: str, options: StoreOptions | None = None) -> None:
        self.root = Path(uri.removeprefix("file://")).expanduser()
        self.uri = os.fspath(self.root)
        self._made: list[Path] = []

    def __getstate__(self) -> dict[str, Any]:
        # Another process may run in another folder.
        root = self.root.absolute()
        return {**self.__dict__, "root": root, "uri": os.fspath(root)}

    def path(self, key: str) -> Path:
        """Return the path of an object.

        Raises:
            PermissionRefused: ``key`` would lead out of the directory.
        """
        return Path(self._place(key))

    def prepare(self) -> None:
        """Create the directory and a file in it."""
        with translated(self.uri):
            folders = (self.root, *self.root.parents)
            self._made = list(takewhile(lambda folder: not folder.exists(), folders))
            with self._partial() as probe:
                probe.touch()

    def remove_if_empty(self) -> None:
        """Remove the directory, and those above it, if ``prepare`` made them and they are empty."""
        with contextlib.suppress(OSError):
            for folder in self._made:
                folder.rmdir()

    def free_bytes(self) -> int | None:
        """Return the space left on the file system of the directory, or of where it would be."""
        there = next(path for path in (self.root, *self.root.parents) if path.exists())
        return shutil.disk_usage(there).free

    def tidy(self) -> None:
        """Remove half-written files whose writers are known to have ended, or that are a day old.

        Locks on files do not tell: on a network file system they may be local to a host.
        """
        for partial in list(self.root.glob(f"{PARTIAL}*")):
            with contextlib.suppress(OSError):
                if _writer_has_ended(partial.name) or self.age_s(partial.name) > _ABANDONED_AFTER_S:
                    partial.unlink()

    def get(self, key: str) -> bytes:
        """Return the file's bytes."""
        return self._read(key)[0]

    def get_versioned(self, key: str, offset: int = 0, length: int | None = None) -> Versioned:
        """Return all of a file, or part of it; another file of that name is another version."""
        data, status = self._read(key, offset, length)
        return Versioned(data, version_of(status))

    def put(self, key: str, data: Buffer) -> ObjectInfo:
        """Write under a temporary name, fsync, rename, fsync the directory."""
        return self.put_pieces(key, [data])

    def put_pieces(self, key: str, pieces: Iterable[Buffer]) -> ObjectInfo:
        """``put`` of one piece after the other; an error while they come leaves nothing."""
        self._write(key, pieces, os.replace)
        return self.head(key)

    def create(self, key: str, data: Buffer) -> bool:
        """Write the file unless it exists; a hard link decides who was first."""
        if os.path.lexists(self._place(key)):  # before all of a shard is written for nothing
            return False
        return self._write(key, [data], os.link)

    def replace(self, key: str, data: Buffer, version: str) -> bool:
        """Write the file if it still has ``version``; a lock on its directory decides."""

        def rename(partial: Path, path: Path) -> None:
            with _opened(path.parent) as folder:
                with contextlib.suppress(OSError):  # a file system without locks
                    fcntl.flock(folder, fcntl.LOCK_EX)
                if not path.exists() or version_of(path.stat()) != version:
                    raise FileExistsError
                partial.replace(path)

        return self._write(key, [data], rename)

    def age_s(self, key: str) -> float:
        """Return the seconds since the file was written; the file system dates a new one."""
        with translated(key), self._partial() as probe, probe.open("xb") as file:
            now_s = os.fstat(file.fileno()).st_mtime
        return now_s - self._read(key, 0, 0)[1].st_mtime

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """Walk the directory; symlinks are followed only within it, and never in a circle."""
        self._place(prefix)
        found: list[ObjectInfo] = []
        _walk(found, self.uri, "", prefix, (os.path.realpath(self.uri),))
        yield from found

    def head(self, key: str) -> ObjectInfo:
        """Return the file's size."""
        try:
            status = os.stat(self._place(key))  # noqa: PTH116  a Path takes twice the time
        except OSError:
            with translated(key, reading=True):
                raise
        if not stat.S_ISREG(status.st_mode):
            raise ObjectNotFound(f"no such file or directory: {key!r}")
        return ObjectInfo(key, status.st_size)

    def delete(self, key: str) -> None:
        """Remove the file, and its folder where that is empty then."""
        path = self.path(key)
        with contextlib.suppress(ObjectNotFound), translated(key, reading=True):
            path.unlink()
        if path.parent != self.root:
            with contextlib.suppress(OSError):
                path.parent.rmdir()

    def _place(self, key: str) -> str:
        if key.startswith("/") or "\0" in key or ".." in key.split("/"):
            raise PermissionRefused(f"refused: {key!r} would leave {self.uri!r}")
        return f"{self.uri}/{key}"

    def _read(
        self, key: str, offset: int = 0, length: int | None = None
    ) -> tuple[bytes, os.stat_result]:
        """Part of a regular file, in few calls: small files are read by the million."""
        try:
            # A named pipe does not wait for its other end.
            descriptor = os.open(self._place(key), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            try:
                status = os.fstat(descriptor)
                if not stat.S_ISREG(status.st_mode):
                    raise ObjectNotFound(f"{key!r} is not a regular file: give one")
                end = status.st_size if length is None else min(offset + length, status.st_size)
                data = b""  # at most 2 GiB come at once
                while more := os.pread(
                    descriptor, max(0, end - offset - len(data)), offset + len(data)
                ):
                    data += more
                return data, status
            finally:
                os.close(descriptor)
        except OSError:
            with translated(key, reading=True):
                raise

    @contextlib.contextmanager
    def _partial(self) -> Iterator[Path]:
        """A temporary name, and no file of that name afterwards."""
        writer = "-".join(map(str, this_process()))
        partial = self.root / f"{PARTIAL}-{writer}-{secrets.token_hex(8)}"
        with translated(self.uri):
            self.root.mkdir(parents=True, exist_ok=True)
        try:
            yield partial
        finally:
            partial.unlink(missing_ok=True)

    def _write(
        self, key: str, pieces: Iterable[Buffer], name: Callable[[Path, Path], object]
    ) -> bool:
        """Write a file and ``name`` it; False where that raises FileExistsError."""
        path = self.path(key)
        with translated(key), self._partial() as partial:
            with partial.open("xb", buffering=0) as file:
                for piece in pieces:
                    _write_all(file.fileno(), piece)
                os.fsync(file.fileno())
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                name(partial, path)
            except FileExistsError:
                return False
            with _opened(path.parent) as folder:
                os.fsync(folder)
        return True


def _writer_has_ended(name: str) -> bool:
    """Whether the process that writes the temporary file ``name`` is known to have ended."""
    match = _PARTIAL_NAME.fullmatch(name)
    if match is None:  # another version of this package wrote it
        return False
    return ProcessIdentity(match["machine"], int(match["process"]), match["started"]).has_ended()


def version_of(status: os.stat_result) -> str:
    """What tells a file from others that had its name, or will have it."""
    return f"{status.st_ino}-{status.st_mtime_ns}-{status.st_size}"


_FULL = (StoreFull, "no space left while writing {name!r}: free some and run again, it resumes")
_REFUSED = (PermissionRefused, "permission denied: {path!r}")
_ERRORS: dict[int | None, tuple[type[StoreError], str]] = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EACCES: _REFUSED,
    errno.EPERM: _REFUSED,
    errno.EROFS: (
        PermissionRefused,
        "{path!r}: the disk is read-only: mount it for writing, or choose another place",
    ),
    errno.ENOENT: (ObjectNotFound, "no such file or directory: {name!r}"),
}
_NO_FILE = (errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP)


@contextlib.contextmanager
def translated(name: str, *, reading: bool = False) -> Iterator[None]:
    """Turn OSError into an error of this package, which says what to do.

    With ``reading`` a name that no file has, such as a directory's, is an object that is not there.
    """
    try:
        yield
    except StoreError:
        raise
    except OSError as error:
        kind, message = _ERRORS.get(error.errno, (StoreError, "{name!r}: {why}"))
        if reading and error.errno in _NO_FILE:
            kind, message = ObjectNotFound, "no such file: {name!r} ({why})"
        why = error.strerror or error
        raise kind(message.format(name=name, path=error.filename or name, why=why)) from None


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[int]:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _write_all(descriptor: int, data: Buffer) -> None:
    """Write ``data``; large data past the page cache, where the file system can do that.

    Through the cache each byte is copied into fresh pages, which then wait for the disk.
    """
    view = memoryview(data).cast("B")
    done = 0
    if view.nbytes >= _PAST_CACHE_FROM_BYTES:
        flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
        with contextlib.suppress(OSError):  # it cannot, or the error comes again below
            fcntl.fcntl(descriptor, fcntl.F_SETFL, flags | getattr(os, "O_DIRECT", 0))
            done = os.write(descriptor, view[: view.nbytes // _BLOCK_BYTES * _BLOCK_BYTES])
        fcntl.fcntl(descriptor, fcntl.F_SETFL, flags)
    while done < view.nbytes:
        done += os.write(descriptor, view[done:])


def _walk(
    found: list[ObjectInfo], folder: str, parent: str, prefix: str, above: tuple[str, ...]
) -> None:
    """Add the files below ``folder`` whose keys begin with ``prefix``, in the order of their bytes.

    ``parent`` is the folder's own key; ``above`` are the real paths of the root and of every
    directory down to this one.
    """
    with translated(folder, reading=True):
        with os.scandir(folder) as scanned:
            entries = {entry.name: entry for entry in scanned}
        for name in by_bytes(entries):
            entry, key = entries[name], parent + name
            if not (key.startswith(prefix) or prefix.startswith(key + "/")) or key.startswith(
                PARTIAL
            ):
                continue
            real, problem = f"{above[-1].rstrip('/')}/{name}", None
            if entry.is_symlink():
                real = os.path.realpath(entry.path)
                problem = _link_problem(entry.path, real, above)
            if problem is None and entry.is_dir():
                _walk(found, entry.path, key + "/", prefix, (*above, real))
                continue
            if not key.startswith(prefix):
                continue
            if problem is None and not entry.is_file():
                problem = "not a regular file"
            with contextlib.suppress(FileNotFoundError):  # it vanished meanwhile
                size = 0 if problem else entry.stat().st_size
                found.append(ObjectInfo(key, size, problem=problem))


def _link_problem(path: str, real: str, above: tuple[str, ...]) -> str | None:
    if not Path(real).is_relative_to(above[0]):
        return LEAVES
    # Links in a circle end nowhere too; Path.exists would raise where it may not look.
    if not os.path.exists(path):  # noqa: PTH110
        return BROKEN
    if any(Path(folder).is_relative_to(real) for folder in above):
        return "symlink to a folder that contains it"
    return None
