"""A directory as a store."""

from __future__ import annotations

import contextlib
import io
import os
import platform
import secrets
import shutil
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from dataprep.errors import DataprepError, ObjectNotFound, PermissionRefused
from dataprep.names import to_bytes
from dataprep.stores import leave, local_leases
from dataprep.stores.local_errors import reading, translated
from dataprep.stores.options import StoreOptions
from dataprep.stores.past_cache import write_all
from dataprep.stores.processes import started
from dataprep.stores.protocol import LEAVES, Buffer, Holder, Lease, ObjectInfo, Versioned

PARTIAL = ".partial"
"""Where files grow before they are renamed; on the same file system, outside every data folder."""

_CHUNK_BYTES = 2**24
_SILENT_S = 24 * 3600


class LocalStore:
    """Files below a directory. A file appears under its name complete or not at all."""

    def __init__(self, uri: str, options: StoreOptions | None = None) -> None:
        self.root = Path(uri.removeprefix("file://")).expanduser()
        self._root = os.fspath(self.root)

    @property
    def uri(self) -> str:
        """The directory as it was given."""
        return os.fspath(self.root)

    def prepare(self) -> None:
        """Create the directory and a file in it."""
        with translated(self.uri):
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
        local_leases.sweep(self._leases)
        with contextlib.suppress(OSError):
            for partial in folder.iterdir():
                if partial.is_file() and _is_abandoned(partial):
                    partial.unlink(missing_ok=True)
            folder.rmdir()

    def get(self, key: str) -> bytes:
        """The file's bytes."""
        return self._get(key)[0]

    def get_range(self, key: str, offset: int, length: int) -> bytes:
        """Part of a file."""
        return self.get_versioned(key, offset, length).data

    def get_versioned(self, key: str, offset: int = 0, length: int | None = None) -> Versioned:
        """All of a file, or part of it; another file of that name is another version."""
        if length is None and not offset:
            data, status = self._get(key)
            return Versioned(data, version_of(status))
        with reading(key), _opened(self._path(key), key) as file:
            status = os.fstat(file.fileno())
            # A length that a damaged table tells is no size to make room for.
            left = max(0, status.st_size - offset)
            left = left if length is None else min(left, length)
            file.seek(offset)
            chunks = []
            while left > 0 and (chunk := file.read(left)):
                chunks.append(chunk)
                left -= len(chunk)
            return Versioned(b"".join(chunks), version_of(status))

    def version(self, key: str) -> str:
        """Of the file: opened, since clients of network file systems ask their server then."""
        with reading(key), _opened(self._path(key), key) as file:
            return version_of(os.fstat(file.fileno()))

    def _get(self, key: str) -> tuple[bytes, os.stat_result]:
        if key.startswith("/") or "\0" in key or ".." in key:
            _checked(key, self.uri)
        try:
            return _whole(f"{self._root}/{key}", key)
        except OSError:
            with reading(key):
                raise

    def put(self, key: str, data: Buffer) -> ObjectInfo:
        """Write under a temporary name, fsync, rename, fsync the directory."""
        path = self._path(key)
        with translated(key):
            partial = self._write(data)
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                leave.require()  # writing took a while
                partial.replace(path)
            except (OSError, DataprepError):
                partial.unlink(missing_ok=True)
                raise
            _fsync_directory(path.parent)
        return self.head(key)

    def create(self, key: str, data: Buffer) -> bool:
        """Write the file unless it exists; a hard link decides who was first."""
        path = self._path(key)
        with translated(key):
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
        with translated(self.uri):
            if not self.root.is_dir():
                what = "not a directory" if self.root.exists() else "no such file or directory"
                raise ObjectNotFound(f"{what}: {self.uri!r}")
        found: list[ObjectInfo] = []
        _walk(found, self._root, "", prefix, (os.path.realpath(self._root),))
        yield from found

    def head(self, key: str) -> ObjectInfo:
        """The file's size."""
        path = self._path(key)
        with reading(key):
            status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise ObjectNotFound(f"no such file: {key!r}")
        return ObjectInfo(key, status.st_size)

    def delete(self, key: str) -> None:
        """Remove the file."""
        path = self._path(key)
        with contextlib.suppress(ObjectNotFound), reading(key):
            path.unlink()

    def lease(self, key: str, said: str) -> Lease | Holder | None:
        """A locked file; see ``local_leases``."""
        return local_leases.take(self._leases / key, said)

    def holders(self, prefix: str) -> Iterator[Holder]:
        """By those files."""
        return local_leases.holders(self._leases, prefix)

    @property
    def _leases(self) -> Path:
        return self.root / PARTIAL / "leases"

    def _path(self, key: str) -> Path:
        return self.root / _checked(key, self.uri)

    def _partial(self) -> Path:
        folder = self.root / PARTIAL
        try:
            folder.mkdir(exist_ok=True)
        except FileNotFoundError:
            raise ObjectNotFound(
                f"the directory {self.uri!r} is gone: run the same command again, it makes what "
                "was lost"
            ) from None
        process = f"{os.getpid()}.{started(os.getpid())}"
        return folder / f"{platform.node()}-{process}-{secrets.token_hex(8)}"

    def _write(self, data: Buffer) -> Path:
        partial = self._partial()
        try:
            with partial.open("xb", buffering=0) as file:
                write_all(file.fileno(), data)
                os.fsync(file.fileno())
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
        return partial


def _checked(key: str, uri: str) -> str:
    if key.startswith("/") or "\0" in key or (".." in key and ".." in key.split("/")):
        raise PermissionRefused(f"refused: {key!r} would leave {uri!r}")
    return key


def version_of(status: os.stat_result) -> str:
    """What tells a file from others that had its name, or will have it."""
    return f"{status.st_ino}-{status.st_mtime_ns}-{status.st_size}"


def _whole(name: str, key: str) -> tuple[bytes, os.stat_result]:
    """All of a regular file, by as few calls as that takes: small files are read by the million."""
    descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise _not_regular(key)
        data = os.read(descriptor, status.st_size + 1)
        if len(data) == status.st_size:
            return data, status
        chunks = [data]  # it grew or shrank meanwhile, or is above 2 GiB
        while chunk := os.read(descriptor, _CHUNK_BYTES):
            chunks.append(chunk)
        return b"".join(chunks), status
    finally:
        os.close(descriptor)


def _not_regular(key: str) -> ObjectNotFound:
    return ObjectNotFound(f"{key!r} is not a regular file: give one")


def _opened(path: Path, key: str) -> io.FileIO:
    """A regular file to be read. Of a named pipe nobody waits for the other end."""
    file = io.FileIO(path, opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise _not_regular(key)
    return file


def _is_abandoned(partial: Path) -> bool:
    host, _, process = partial.name.rpartition("-")[0].rpartition("-")
    number, _, began = process.partition(".")
    if host == platform.node() and number.isdigit():
        if began and started(int(number)) != began:  # gone, whoever has its number now
            return True
        try:
            os.kill(int(number), 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            pass  # it lives, as somebody else
    return time.time() - partial.stat().st_mtime > _SILENT_S


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


def _walk(
    found: list[ObjectInfo], folder: str, parent: str, prefix: str, above: tuple[str, ...]
) -> None:
    """Add the files below ``folder`` whose keys begin with ``prefix``, in the order of their bytes.

    ``parent`` is the folder's own key; ``above`` are the real paths of the root and of every
    directory down to this one. Symlinks are followed only within the root, and never in a circle.
    """
    try:
        with os.scandir(folder) as scanned:
            entries = {entry.name: entry for entry in scanned}
    except OSError:
        with translated(folder):
            raise
    for name in sorted(entries, key=None if "".join(entries).isascii() else to_bytes):
        entry, key = entries[name], parent + name
        if not (key.startswith(prefix) or prefix.startswith(key + "/")) or key == PARTIAL:
            continue
        is_link = entry.is_symlink()
        problem = _link_problem(entry, above) if is_link else None
        if problem is None and entry.is_dir():
            # What is no link has its parent's real path.
            real = os.path.realpath(entry.path) if is_link else f"{above[-1].rstrip('/')}/{name}"
            _walk(found, entry.path, key + "/", prefix, (*above, real))
            continue
        if not key.startswith(prefix):
            continue
        if problem is None and not entry.is_file():
            problem = "not a regular file"
        try:
            found.append(ObjectInfo(key, 0 if problem else entry.stat().st_size, problem=problem))
        except FileNotFoundError:
            pass  # it vanished meanwhile
        except OSError:
            with translated(key):
                raise


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
