"""A store in a folder: each object is a file."""

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
from pathlib import Path

from dataprep.errors import ConfigError, ObjectNotFound, PermissionRefused, StoreError, StoreFull
from dataprep.machine.processes import ProcessIdentity, this_process
from dataprep.name_encoding import by_bytes
from dataprep.stores.options import StoreOptions
from dataprep.stores.protocol import BROKEN, LEAVES, Buffer, KeepsLocks, ObjectInfo, Versioned

PARTIAL = ".partial"
"""The beginning of the names of temporary files, which are in the root of the store.

Earlier versions had a folder with this name.
"""

_PARTIAL_NAME = re.compile(
    rf"{re.escape(PARTIAL)}-(?P<machine>[0-9a-f]{{16}})-(?P<process>\d{{1,18}})-(?P<started>\w*)"
    "-[0-9a-f]{16}"
)
_ABANDONED_AFTER_S = 86_400.0
"""Temporary files of this age are removed even if their writer is not known to have ended."""

_MAX_FOLDER_ATTEMPTS = 100
"""How often the folder of a file is made, if other processes remove it while it is empty."""

_BLOCK_BYTES = 4096
"""The size of a write without the page cache is a multiple of this number.

Linux requires a multiple of the disk's block size. 4096 is a multiple of usual block sizes.
"""

_MIN_DIRECT_BYTES = 2**22
"""Data of at least this size are written without the page cache."""


class LocalStore(KeepsLocks):
    """The files below a folder. A file appears under its name only when it is complete.

    Attributes:
        root: the folder.
        uri: the folder as text.

    Raises:
        ConfigError: the path begins with a tilde and the name of an unknown user.
    """

    def __init__(self, uri: str, options: StoreOptions | None = None) -> None:
        try:
            self.root = Path(uri.removeprefix("file://")).expanduser()
        except RuntimeError:
            raise ConfigError(
                f"{uri!r}: no home folder is known for the user after the tilde: give the full path"
            ) from None
        self.uri = os.fspath(self.root)
        # The folders that ``prepare`` has created, the innermost folder first.
        self._created_folders: list[Path] = []

    def __getstate__(self) -> dict[str, object]:
        # The process that unpickles the store may have another working folder.
        root = self.root.absolute()
        return {**self.__dict__, "root": root, "uri": os.fspath(root)}

    def path(self, key: str) -> Path:
        """Return the path of an object, which need not exist.

        Raises:
            PermissionRefused: the key contains ``..`` or a null character, or begins with a slash.
        """
        return Path(self._path_string(key))

    def prepare(self) -> None:
        """Create the folder, and check that a file can be created in it."""
        with translate_os_errors(self.uri):
            self._created_folders = []
            for folder in (self.root, *self.root.parents):
                if folder.exists():
                    break
                self._created_folders.append(folder)
            with self._temporary_file() as probe:
                probe.touch()

    def remove_if_empty(self) -> None:
        """Remove the empty folders that ``prepare`` has created: the root and folders above it."""
        with contextlib.suppress(OSError):
            for folder in self._created_folders:
                folder.rmdir()

    def free_bytes(self) -> int | None:
        """Return the free space of the file system in bytes. The folder need not exist yet."""
        for folder in (self.root, *self.root.parents):
            if folder.exists():
                return shutil.disk_usage(folder).free
        return None

    def tidy(self) -> None:
        """Remove temporary files that are a day old, or whose writers are known to have ended.

        File locks could not show whether a writer is alive: on a network file system, a lock may
        be visible only to the host that has it.
        """
        for temporary in list(self.root.glob(f"{PARTIAL}*")):
            name = temporary.name
            with contextlib.suppress(OSError):
                if _writer_has_ended(name) or self.age_s(name) > _ABANDONED_AFTER_S:
                    temporary.unlink()

    def get(self, key: str) -> bytes:
        """Return the bytes of a file."""
        data, _ = self._read(key)
        return data

    def get_versioned(self, key: str, offset: int = 0, length: int | None = None) -> Versioned:
        """Return all or part of a file. Another file with the same name has another version."""
        data, status = self._read(key, offset, length)
        return Versioned(data, version_of(status))

    def put(self, key: str, data: Buffer) -> ObjectInfo:
        """Write a temporary file, flush it to the disk, rename it, and flush the folder."""
        return self.put_pieces(key, [data])

    def put_pieces(self, key: str, pieces: Iterable[Buffer]) -> ObjectInfo:
        """Do as ``put``, with the data in pieces. If iterating fails, nothing is stored."""
        self._write(key, pieces, os.replace)
        return self.head(key)

    def create(self, key: str, data: Buffer) -> bool:
        """Write a file unless it exists. If several writers create it, only one succeeds.

        Each writer creates a hard link from a temporary file, which fails if the name exists.
        """
        # Check first, so that an existing shard is not written to a temporary file for nothing.
        if os.path.lexists(self._path_string(key)):
            return False
        return self._write(key, [data], os.link)

    def replace(self, key: str, data: Buffer, version: str) -> bool:
        """Write a file if the current file has ``version``.

        A lock on its folder excludes other writers between the comparison and the renaming.
        """

        def rename(temporary: Path, path: Path) -> None:
            """Rename the file. Raise FileExistsError if the current file has another version."""
            with _open_folder(path.parent) as folder:
                with contextlib.suppress(OSError):  # some file systems have no locks
                    fcntl.flock(folder, fcntl.LOCK_EX)
                if not path.exists() or version_of(path.stat()) != version:
                    raise FileExistsError
                temporary.replace(path)

        return self._write(key, [data], rename)

    def age_s(self, key: str) -> float:
        """Return the seconds since a file was written, by the clock of the file system.

        The modification time of a new temporary file is the current time of that clock.
        """
        with translate_os_errors(key), self._temporary_file() as probe, probe.open("xb") as file:
            now_s = os.fstat(file.fileno()).st_mtime
        _, status = self._read(key, 0, 0)
        return now_s - status.st_mtime

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """Yield the files whose keys begin with ``prefix``.

        In each folder, files and folders are in the order of the bytes of their names. Symlinks are
        followed only within the root folder, and never in a circle.
        """
        self._path_string(prefix)
        files: list[ObjectInfo] = []
        _walk(files, self.uri, "", prefix, (os.path.realpath(self.uri),))
        yield from files

    def head(self, key: str) -> ObjectInfo:
        """Return the size of a file."""
        try:
            status = os.stat(self._path_string(key))  # noqa: PTH116  a Path takes twice the time
        except OSError:
            with translate_os_errors(key, reading=True):
                raise
        if not stat.S_ISREG(status.st_mode):
            raise ObjectNotFound(f"no such file or directory: {key!r}")
        return ObjectInfo(key, status.st_size)

    def delete(self, key: str) -> None:
        """Remove a file, and its folder if the folder is empty afterwards."""
        path = self.path(key)
        with contextlib.suppress(ObjectNotFound), translate_os_errors(key, reading=True):
            path.unlink()
        if path.parent != self.root:
            with contextlib.suppress(OSError):
                path.parent.rmdir()

    def _path_string(self, key: str) -> str:
        """Return the path of an object as text. The errors are those of ``path``."""
        if key.startswith("/") or "\0" in key or ".." in key.split("/"):
            raise PermissionRefused(f"refused: {key!r} would leave {self.uri!r}")
        return f"{self.uri}/{key}"

    def _read(
        self, key: str, offset: int = 0, length: int | None = None
    ) -> tuple[bytes, os.stat_result]:
        """Return part of a regular file, and its status when it was opened.

        This takes few system calls, because jobs read millions of small files.
        """
        try:
            # O_NONBLOCK: opening a named pipe would wait for a writer.
            descriptor = os.open(self._path_string(key), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            try:
                status = os.fstat(descriptor)
                if not stat.S_ISREG(status.st_mode):
                    raise ObjectNotFound(f"{key!r} is not a regular file: give a regular file")
                end = status.st_size
                if length is not None:
                    end = min(offset + length, end)
                # One call returns at most 2 GiB.
                data = b""
                while True:
                    missing_bytes = max(0, end - offset - len(data))
                    piece = os.pread(descriptor, missing_bytes, offset + len(data))
                    if not piece:
                        return data, status
                    data += piece
            finally:
                os.close(descriptor)
        except OSError:
            with translate_os_errors(key, reading=True):
                raise

    @contextlib.contextmanager
    def _temporary_file(self) -> Iterator[Path]:
        """Provide the path of a temporary file. A file there is removed when the block ends."""
        writer = "-".join(str(part) for part in this_process())
        temporary = self.root / f"{PARTIAL}-{writer}-{secrets.token_hex(8)}"
        with translate_os_errors(self.uri):
            self.root.mkdir(parents=True, exist_ok=True)
        try:
            yield temporary
        finally:
            temporary.unlink(missing_ok=True)

    def _write(
        self, key: str, pieces: Iterable[Buffer], give_name: Callable[[Path, Path], object]
    ) -> bool:
        """Write a temporary file, and give it its final name.

        Args:
            key: the key of the object.
            pieces: the bytes of the object.
            give_name: called with the temporary path and the final path. It gives the file its
                final name, or raises FileExistsError.

        Returns:
            Whether the file was given its name: False if ``give_name`` raises FileExistsError.
        """
        path = self.path(key)
        with translate_os_errors(key), self._temporary_file() as temporary:
            with temporary.open("xb", buffering=0) as file:
                for piece in pieces:
                    _write_all(file.fileno(), piece)
                os.fsync(file.fileno())
            if not _give_name_in_folder(give_name, temporary, path):
                return False
            # Another store may have deleted the file again, and its empty folder with it.
            with contextlib.suppress(FileNotFoundError), _open_folder(path.parent) as folder:
                os.fsync(folder)
        return True


def _give_name_in_folder(
    give_name: Callable[[Path, Path], object], temporary: Path, path: Path
) -> bool:
    """Make the folder of a file, and give the file its name in it.

    ``LocalStore.delete`` of another process may remove the folder as long as it is empty. It is
    then made again.

    Args:
        give_name: the argument of ``LocalStore._write``.
        temporary: the temporary path of the file.
        path: its final path.

    Returns:
        Whether the file was given its name: False if ``give_name`` raises FileExistsError.

    Raises:
        OSError: the folder cannot be made, or ``give_name`` raises it.
    """
    attempts_left = _MAX_FOLDER_ATTEMPTS
    while True:
        attempts_left -= 1
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            # Either a file has this name, or a folder had it when mkdir was called, and was removed
            # before mkdir checked that it is a folder.
            if not attempts_left or path.parent.is_file():
                raise
            continue
        try:
            give_name(temporary, path)
        except FileExistsError:
            return False
        except FileNotFoundError:
            if not attempts_left or not temporary.exists():
                raise
            continue
        return True


def _writer_has_ended(name: str) -> bool:
    """Whether the process that wrote the temporary file ``name`` is known to have ended."""
    match = _PARTIAL_NAME.fullmatch(name)
    if match is None:  # another version of this package wrote the file
        return False
    writer = ProcessIdentity(match["machine"], int(match["process"]), match["started"])
    return writer.has_ended()


def version_of(status: os.stat_result) -> str:
    """Return the version of a file: its inode, modification time and size.

    A file that replaces it under its name has another version.
    """
    return f"{status.st_ino}-{status.st_mtime_ns}-{status.st_size}"


_NO_SPACE = (
    StoreFull,
    "no space left while writing {name!r}: free some space and run again to resume",
)
_REFUSED = (PermissionRefused, "permission denied: {path!r}")
_ERRORS: dict[int | None, tuple[type[StoreError], str]] = {
    errno.ENOSPC: _NO_SPACE,
    errno.EDQUOT: _NO_SPACE,
    errno.EACCES: _REFUSED,
    errno.EPERM: _REFUSED,
    errno.EROFS: (
        PermissionRefused,
        "{path!r}: the disk is read-only: mount it for writing, or choose another location",
    ),
    errno.ENOENT: (ObjectNotFound, "no such file or directory: {name!r}"),
}
_NO_FILE_ERRORS = (errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP)


@contextlib.contextmanager
def translate_os_errors(name: str, *, reading: bool = False) -> Iterator[None]:
    """Translate an OSError into an error of this package, which says what to do.

    Args:
        name: the name of the object in the message.
        reading: whether an object is read. In that case, a name that cannot be the name of a file,
            such as the name of a folder, raises ObjectNotFound.

    Raises:
        StoreFull, PermissionRefused, ObjectNotFound: as ``_ERRORS`` says.
        StoreError: any other OSError.
    """
    try:
        yield
    except StoreError:
        raise
    except OSError as error:
        error_class, message = _ERRORS.get(error.errno, (StoreError, "{name!r}: {reason}"))
        if reading and error.errno in _NO_FILE_ERRORS:
            error_class, message = ObjectNotFound, "no such file: {name!r} ({reason})"
        reason = error.strerror or error
        text = message.format(name=name, path=error.filename or name, reason=reason)
        raise error_class(text) from None


@contextlib.contextmanager
def _open_folder(folder: Path) -> Iterator[int]:
    """Provide a file descriptor of a folder."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _write_all(descriptor: int, data: Buffer) -> None:
    """Write data to a file. Large data bypasses the page cache if the file system supports this.

    The page cache would copy all bytes into new pages before they are written to the disk.
    """
    view = memoryview(data).cast("B")
    written = 0
    if view.nbytes >= _MIN_DIRECT_BYTES:
        flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
        # If the file system does not support this, the loop below writes everything. Other errors,
        # such as a full disk, occur again in the loop, which raises them.
        with contextlib.suppress(OSError):
            fcntl.fcntl(descriptor, fcntl.F_SETFL, flags | getattr(os, "O_DIRECT", 0))
            direct_bytes = view.nbytes // _BLOCK_BYTES * _BLOCK_BYTES
            written = os.write(descriptor, view[:direct_bytes])
        fcntl.fcntl(descriptor, fcntl.F_SETFL, flags)
    while written < view.nbytes:
        written += os.write(descriptor, view[written:])


def _walk(
    files: list[ObjectInfo],
    folder: str,
    folder_key: str,
    prefix: str,
    real_folders: tuple[str, ...],
) -> None:
    """Add the files below a folder to ``files``.

    In each folder, files and folders are in the order of the bytes of their names.

    Args:
        files: the list to extend.
        folder: the path of the folder.
        folder_key: the key of the folder, with a slash at its end; empty for the root.
        prefix: the beginning of the keys of files to add.
        real_folders: the real path of each folder from the root to this one.
    """
    with translate_os_errors(folder, reading=True):
        with os.scandir(folder) as scanned:
            entries = {entry.name: entry for entry in scanned}
        for name in by_bytes(entries):
            entry = entries[name]
            key = folder_key + name
            has_prefix = key.startswith(prefix)
            may_contain_prefix = prefix.startswith(f"{key}/")
            if key.startswith(PARTIAL) or not (has_prefix or may_contain_prefix):
                continue
            real_path = f"{real_folders[-1].rstrip('/')}/{name}"
            problem = None
            if entry.is_symlink():
                real_path = os.path.realpath(entry.path)
                problem = _link_problem(entry.path, real_path, real_folders)
            if problem is None and entry.is_dir():
                _walk(files, entry.path, f"{key}/", prefix, (*real_folders, real_path))
                continue
            if not has_prefix:
                continue
            if problem is None and not entry.is_file():
                problem = "not a regular file"
            with contextlib.suppress(FileNotFoundError):  # the file was removed meanwhile
                size_bytes = 0 if problem else entry.stat().st_size
                files.append(ObjectInfo(key, size_bytes, problem=problem))


def _link_problem(path: str, real_path: str, real_folders: tuple[str, ...]) -> str | None:
    """Return why a symlink cannot be followed; None if it can be followed."""
    if not Path(real_path).is_relative_to(real_folders[0]):
        return LEAVES
    # For a circle of symlinks, this is False, too. Path.exists would raise PermissionError.
    if not os.path.exists(path):  # noqa: PTH110
        return BROKEN
    if any(Path(folder).is_relative_to(real_path) for folder in real_folders):
        return "symlink to a folder that contains it"
    return None
