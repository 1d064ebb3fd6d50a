"""Archive files read by ranges: a file or object, part of one as a file, and gzip content.

indexed_gzip finds points in a gzip file from which its content can be read. A cache folder stores
them, since every worker needs them.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import tempfile
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from indexed_gzip import IndexedGzipFile

from dataprep.errors import ConfigError, CorruptArchive, DataprepError, SourceChanged
from dataprep.stores import Store
from dataprep.stores.local import LocalStore
from dataprep.stores.protocol import GetVersioned, location

_SCHEMA = 3  # of the files in the cache folder
_LOCAL_WINDOW_BYTES = 2**15
_REMOTE_WINDOW_BYTES = 2**21
_BUFFER_BYTES = 2**16
_SPACING_BYTES = 2**20
_MOST_POINTS = 8192  # of 32 KiB: 256 MiB in a worker
_OPEN_GZIP_FILES = 16


class Archive(NamedTuple):
    """A file or object of ``size`` bytes as it was when it was indexed.

    ``version`` is its modification time and size, or its ETag; empty accepts any version.
    """

    store: Store
    key: str
    size: int = 0
    version: str = ""

    @classmethod
    def of(cls, store: Store, key: str) -> Archive:
        """The archive at ``key`` as it is now. Raises ObjectNotFound or another StoreError."""
        version = store.version(key) if isinstance(store, GetVersioned) else ""
        return cls(store, key, store.head(key).bytes, _portable(store, version))

    @property
    def uri(self) -> str:
        """Its name in messages."""
        return location(self.store, self.key)

    def fetch(self, offset: int, length: int) -> bytes:
        """``length`` bytes from ``offset``; fewer only at the end.

        Raises:
            SourceChanged: the archive was replaced or removed since it was indexed.
            StoreError: it could not be read this time.
        """
        data, version = b"", "gone"
        with contextlib.suppress(FileNotFoundError):
            if self.version:
                store: Any = self.store  # a GetVersioned, since it gave a version
                data, version = store.get_versioned(self.key, offset, length)
            else:
                data, version = self.store.get_range(self.key, offset, length), ""
        if version == "gone" or self.version not in ("", _portable(self.store, version)):
            raise SourceChanged(
                f"{self.uri} was changed or removed since it was indexed: restore it, or start "
                "anew with --overwrite"
            )
        return data

    def open(self, start: int, end: int) -> BinaryIO:
        """The bytes from ``start`` to ``end`` as a file."""
        is_local = isinstance(self.store, LocalStore)
        window_bytes = _LOCAL_WINDOW_BYTES if is_local else _REMOTE_WINDOW_BYTES
        return io.BufferedReader(_Part(self, start, end - start), window_bytes)

    def cache_name(self, *parts: object) -> str:
        """The name of a file about this version of the archive in a cache folder."""
        is_local = isinstance(self.store, LocalStore)
        address = os.path.abspath(self.uri) if is_local else self.uri  # noqa: PTH100
        identity = repr((_SCHEMA, address, self.size, self.version, parts))
        return hashlib.sha256(os.fsencode(identity)).hexdigest()[:32]


def _portable(store: Store, version: str) -> str:
    """A version without the number of the inode, which machines may see differently."""
    return version.partition("-")[2] if isinstance(store, LocalStore) else version


class _Part(io.RawIOBase):
    """``size`` bytes of an archive from ``start`` on as a file."""

    def __init__(self, archive: Archive, start: int, size: int) -> None:
        self._archive, self._start, self._size, self._at = archive, start, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def readinto(self, buffer: Any) -> int:
        length = min(len(buffer), self._size - self._at)
        data = self._archive.fetch(self._start + self._at, length) if length > 0 else b""
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


class GzipPart(NamedTuple):
    """A gzip file: ``size`` bytes of an archive from ``start`` on, or all of it.

    The ``cache`` folder stores its points.
    """

    archive: Archive
    start: int
    size: int
    cache: Path

    @property
    def container(self) -> str:
        """The container of entries in its content: ``KEY!gzip@START+SIZE``."""
        return f"{self.archive.key}!gzip@{self.start}+{self.size}"

    @property
    def spacing_bytes(self) -> int:
        """Bytes of content between two points."""
        return max(_SPACING_BYTES, self.size // _MOST_POINTS)

    def open(self) -> IndexedGzipFile:
        """Its content as a file, for reading from the beginning."""
        return IndexedGzipFile(
            fileobj=self.archive.open(self.start, self.start + self.size),
            spacing=self.spacing_bytes,
            buffer_size=_BUFFER_BYTES,
            readbuf_size=_BUFFER_BYTES,
        )

    def finish(self, file: IndexedGzipFile) -> None:
        """Read ``file`` to its end, check its checksum and store its points.

        Raises:
            ConfigError: the points cannot be stored.
        """
        file.build_full_index()
        if not keep(self._points, lambda sink: file.export_index(fileobj=sink)):
            raise ConfigError(
                f"cannot store the index of {self.archive.uri}, which every worker needs, in "
                f"{self.cache}: name a folder with --set ilsvrc.cache=FOLDER"
            )

    def read(self, offset: int, length: int) -> bytes:
        """``length`` bytes of its content from ``offset``.

        Raises:
            CorruptArchive: the gzip data are damaged.
            SourceChanged, StoreError: as ``Archive.fetch``.
        """
        with inflating(self.archive.uri):
            data: bytes = _with_points(self).pread(length, offset)
        return data

    @property
    def _points(self) -> Path:
        return self.cache / f"{self.archive.cache_name(self.start, self.size)}.gzidx"


@lru_cache(maxsize=_OPEN_GZIP_FILES)
def _with_points(part: GzipPart) -> IndexedGzipFile:
    """The content, with points from the cache folder, or found again if these are missing."""
    file = part.open()
    try:
        with part._points.open("rb") as kept:
            file.import_index(fileobj=kept)
    except OSError:  # ZranError is one
        part.finish(file := part.open())
    return file


@contextlib.contextmanager
def inflating(uri: str) -> Iterator[None]:
    """Translate errors of indexed_gzip for the archive ``uri``.

    Raises:
        CorruptArchive: the gzip data are damaged.
        SourceChanged, StoreError: as ``Archive.fetch``.
    """
    try:
        yield
    except DataprepError:
        raise
    except OSError as error:
        if isinstance(error.__cause__, DataprepError):
            raise error.__cause__ from None
        raise CorruptArchive(
            f"{uri}: its gzip data are damaged or truncated ({error}): compare the MD5 and fetch "
            "the archive again"
        ) from None


def cache_folder(folder: str | None) -> Path:
    """``folder``, or ``dataprep`` in ``$XDG_CACHE_HOME`` or ``~/.cache``."""
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(folder or f"{home}/dataprep").expanduser()


def keep(path: Path, write: Callable[[BinaryIO], object]) -> bool:
    """Write a file that appears complete or not at all. Return whether that was possible."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            begun = Path(folder, path.name)
            with begun.open("wb") as file:
                write(file)
            begun.replace(path)
    except OSError:
        return False
    return True
