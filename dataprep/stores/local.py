"""A directory as a store."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import platform
import secrets
import shutil
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from dataprep.errors import ObjectNotFound, PermissionRefused, StoreError, StoreFull
from dataprep.stores.options import StoreOptions
from dataprep.stores.protocol import LEAVES, Buffer, ObjectInfo

PARTIAL = ".partial"
"""Where files grow before they are renamed; on the same file system, outside every data folder."""

_SILENT_S = 24 * 3600
_FULL = (errno.ENOSPC, errno.EDQUOT)
_NOWHERE = (errno.ENAMETOOLONG, errno.ELOOP)


class LocalStore:
    """Files below a directory. A file appears under its name complete or not at all."""

    def __init__(self, uri: str, options: StoreOptions | None = None) -> None:
        self.root = Path(uri.removeprefix("file://")).expanduser()

    @property
    def uri(self) -> str:
        """The directory as it was given."""
        return os.fspath(self.root)

    def prepare(self) -> None:
        """Create the directory and a file in it."""
        with _translated(self.uri):
            self.root.mkdir(parents=True, exist_ok=True)
            probe = self._partial()
            probe.touch()
            probe.unlink()
            with contextlib.suppress(OSError):
                probe.parent.rmdir()

    def free_bytes(self) -> int | None:
        """Space left on the file system that holds the directory, or would."""
        there = next(path for path in (self.root, *self.root.parents) if path.exists())
        return shutil.disk_usage(there).free

    def tidy(self) -> None:
        """Remove half-written files whose writers are gone: dead here, or silent for a day."""
        folder = self.root / PARTIAL
        with contextlib.suppress(OSError):
            for partial in folder.iterdir():
                if _is_abandoned(partial):
                    partial.unlink(missing_ok=True)
            folder.rmdir()

    def get(self, key: str) -> bytes:
        """The file's bytes."""
        path = self._path(key)
        with _reading(key), _opened(path, key) as file:
            return file.readall()

    def get_range(self, key: str, offset: int, length: int) -> bytes:
        """Part of a file."""
        path = self._path(key)
        with _reading(key), _opened(path, key) as file:
            file.seek(offset)
            chunks = []
            while length > 0 and (chunk := file.read(length)):
                chunks.append(chunk)
                length -= len(chunk)
            return b"".join(chunks)

    def put(self, key: str, data: Buffer) -> ObjectInfo:
        """Write under a temporary name, fsync, rename, fsync the directory."""
        path = self._path(key)
        with _translated(key):
            partial = self._write(data)
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                partial.replace(path)
            except OSError:
                partial.unlink(missing_ok=True)
                raise
            _fsync_directory(path.parent)
        return self.head(key)

    def create(self, key: str, data: Buffer) -> bool:
        """Write the file unless it exists; a hard link decides who was first."""
        path = self._path(key)
        with _translated(key):
            partial = self._write(data)
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                created = _link(partial, path)
            finally:
                partial.unlink()
            if created:
                _fsync_directory(path.parent)
        return created

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """Walk the directory; symlinks are followed only within it, and never in a circle."""
        self._path(prefix)
        with _translated(self.uri):
            if not self.root.is_dir():
                raise ObjectNotFound(f"no such directory: {self.uri!r}")
        yield from _walk(os.fspath(self.root), "", prefix, (os.path.realpath(self.root),))

    def head(self, key: str) -> ObjectInfo:
        """The file's size."""
        path = self._path(key)
        with _reading(key):
            status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise ObjectNotFound(f"no such file: {key!r}")
        return ObjectInfo(key, status.st_size)

    def delete(self, key: str) -> None:
        """Remove the file."""
        path = self._path(key)
        with contextlib.suppress(ObjectNotFound), _reading(key):
            path.unlink()

    def _path(self, key: str) -> Path:
        parts = key.split("/")
        if key.startswith("/") or ".." in parts or "\0" in key:
            raise PermissionRefused(f"refused: {key!r} would leave {self.uri!r}")
        return self.root / key

    def _partial(self) -> Path:
        folder = self.root / PARTIAL
        folder.mkdir(exist_ok=True)
        return folder / f"{platform.node()}-{os.getpid()}-{secrets.token_hex(8)}"

    def _write(self, data: Buffer) -> Path:
        partial = self._partial()
        try:
            with partial.open("xb", buffering=0) as file:
                view = memoryview(data).cast("B")
                while view:
                    view = view[file.write(view) :]
                os.fsync(file.fileno())
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
        return partial


def _opened(path: Path, key: str) -> io.FileIO:
    """A regular file to be read. Of a named pipe nobody waits for the other end."""
    file = io.FileIO(path, opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise ObjectNotFound(f"{key!r} is not a regular file: give one")
    return file


def _is_abandoned(partial: Path) -> bool:
    host, _, rest = partial.name.rpartition("-")[0].rpartition("-")
    if host == platform.node() and rest.isdigit():
        try:
            os.kill(int(rest), 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            pass  # it lives, as somebody else
    return time.time() - partial.stat().st_mtime > _SILENT_S


def _walk(folder: str, parent: str, prefix: str, above: tuple[str, ...]) -> Iterator[ObjectInfo]:
    """Files below ``folder``, whose own key is ``parent``, directories in name order.

    ``above`` are the real paths of the root and of every directory down to this one.
    """
    with _translated(folder), os.scandir(folder) as entries:
        found = sorted(entries, key=lambda entry: os.fsencode(entry.name))
    for entry in found:
        key = parent + entry.name
        if not (key.startswith(prefix) or prefix.startswith(key + "/")) or key == PARTIAL:
            continue
        problem = _link_problem(entry, above) if entry.is_symlink() else None
        if problem is None and entry.is_dir():
            inside = (*above, os.path.realpath(entry.path))
            yield from _walk(entry.path, key + "/", prefix, inside)
        elif key.startswith(prefix):
            yield from _listed(entry, key, problem)


def _listed(entry: os.DirEntry[str], key: str, problem: str | None) -> Iterator[ObjectInfo]:
    if problem is None and not entry.is_file():
        problem = "not a regular file"
    if problem:
        yield ObjectInfo(key, 0, problem=problem)
        return
    with contextlib.suppress(ObjectNotFound), _translated(key):  # it may vanish meanwhile
        yield ObjectInfo(key, entry.stat().st_size)


def _link_problem(entry: os.DirEntry[str], above: tuple[str, ...]) -> str | None:
    target = os.path.realpath(entry.path)
    if not _is_within(target, above[0]):
        return LEAVES
    # Links in a circle end nowhere too; Path.exists would raise where it may not look.
    if not os.path.exists(entry.path):  # noqa: PTH110
        return "broken symlink"
    if any(_is_within(folder, target) for folder in above):
        return "symlink to a folder that contains it"
    return None


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _link(file: Path, name: Path) -> bool:
    try:
        os.link(file, name)
    except FileExistsError:
        return False
    return True


def _fsync_directory(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _reading(key: str) -> Iterator[None]:
    """``_translated``; what cannot be a file, such as a directory, is no object."""
    with _translated(key):
        try:
            yield
        except (IsADirectoryError, NotADirectoryError):
            raise FileNotFoundError from None
        except OSError as error:
            if error.errno not in _NOWHERE:
                raise
            raise ObjectNotFound(f"no such file: {key!r} ({error.strerror})") from None


@contextlib.contextmanager
def _translated(name: str) -> Iterator[None]:
    """OSError as an error of this package, which says what to do."""
    try:
        yield
    except StoreError:
        raise
    except FileNotFoundError:
        raise ObjectNotFound(f"no such file: {name!r}") from None
    except PermissionError as error:
        raise PermissionRefused(f"permission denied: {error.filename or name!r}") from None
    except OSError as error:
        if error.errno in _FULL:
            raise StoreFull(
                f"no space left while writing {name!r}: free some and run again, it resumes"
            ) from None
        raise StoreError(f"{name!r}: {error.strerror or error}") from None
