"""A directory as a store."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from dataprep.errors import ObjectNotFound, PermissionRefused, StoreError, StoreFull
from dataprep.stores.options import StoreOptions
from dataprep.stores.protocol import Buffer, ObjectInfo

PARTIAL = ".partial"
"""Where files grow before they are renamed; on the same file system, outside every data folder."""

_FULL = (errno.ENOSPC, errno.EDQUOT)


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
        """Space left on the file system."""
        return shutil.disk_usage(self.root).free

    def tidy(self) -> None:
        """Remove half-written files of interrupted runs."""
        shutil.rmtree(self.root / PARTIAL, ignore_errors=True)

    def get(self, key: str) -> bytes:
        """The file's bytes."""
        path = self._path(key)
        with _translated(key):
            return path.read_bytes()

    def get_range(self, key: str, offset: int, length: int) -> bytes:
        """Part of a file."""
        path = self._path(key)
        with _translated(key), path.open("rb", buffering=0) as file:
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
                os.link(partial, path)
            except FileExistsError:
                return False
            finally:
                partial.unlink()
            _fsync_directory(path.parent)
        return True

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """Walk the directory; symlinks are followed only within it, and never in a circle."""
        start = self._path(prefix.rpartition("/")[0]) if "/" in prefix else self.root
        if not self.root.is_dir():
            raise ObjectNotFound(f"no such directory: {self.uri!r}")
        if not start.is_dir():
            return
        root = os.path.realpath(self.root)
        for info in _walk(os.fspath(self.root), os.fspath(start), root, ()):
            if info.key.startswith(prefix):
                yield info

    def head(self, key: str) -> ObjectInfo:
        """The file's size."""
        path = self._path(key)
        with _translated(key):
            return ObjectInfo(key, path.stat().st_size)

    def delete(self, key: str) -> None:
        """Remove the file."""
        path = self._path(key)
        with _translated(key):
            path.unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        parts = key.split("/")
        if key.startswith("/") or ".." in parts or "\0" in key:
            raise PermissionRefused(f"refused: {key!r} would leave {self.uri!r}")
        return self.root / key

    def _partial(self) -> Path:
        folder = self.root / PARTIAL
        folder.mkdir(exist_ok=True)
        return folder / f"{os.getpid()}-{secrets.token_hex(8)}"

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


def _walk(top: str, folder: str, root: str, above: tuple[str, ...]) -> Iterator[ObjectInfo]:
    """Files below ``folder`` with keys relative to ``top``, directories in name order."""
    above = (*above, os.path.realpath(folder))
    with _translated(folder), os.scandir(folder) as entries:
        found = sorted(entries, key=lambda entry: os.fsencode(entry.name))
    for entry in found:
        if entry.name == PARTIAL and folder == top:
            continue
        key = os.path.relpath(entry.path, top) if top == "." else entry.path[len(top) + 1 :]
        problem = _link_problem(entry, root, above) if entry.is_symlink() else None
        if problem:
            yield ObjectInfo(key, 0, problem=problem)
        elif entry.is_dir():
            yield from _walk(top, entry.path, root, above)
        elif entry.is_file():
            yield ObjectInfo(key, entry.stat().st_size)
        else:
            yield ObjectInfo(key, 0, problem="not a regular file")


def _link_problem(entry: os.DirEntry[str], root: str, above: tuple[str, ...]) -> str | None:
    target = os.path.realpath(entry.path)
    if target != root and not target.startswith(root.rstrip("/") + "/"):
        return "symlink that leaves the source"
    if not os.path.lexists(target):
        return "broken symlink"
    if target in above:
        return "symlink to a folder that contains it"
    return None


def _fsync_directory(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


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
