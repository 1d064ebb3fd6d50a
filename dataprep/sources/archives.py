"""Archive files read by ranges: a file or object, part of one as a file, and gzip content.

indexed_gzip finds points in a gzip file from which its content can be read. A cache folder stores
them, since every worker needs them.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, BinaryIO

from indexed_gzip import IndexedGzipFile

from dataprep.errors import ConfigError, CorruptArchive, DataprepError, SourceChanged
from dataprep.stores import Store
from dataprep.stores.local import LocalStore
from dataprep.stores.protocol import Buffer, GetVersioned, location

_SCHEMA = 6  # of the files in the cache folder
_LOCAL_WINDOW_BYTES = 2**15
_REMOTE_WINDOW_BYTES = 2**21
_BUFFER_BYTES = 2**16
_SPACING_BYTES = 2**20
_MOST_POINTS = 8192  # of 32 KiB: 256 MiB in a worker
_OPEN_GZIP_FILES = 16


@dataclass(frozen=True)
class StoredFile:
    """A file or object of ``size`` bytes as it was when it was listed; ``uri`` is for messages.

    ``address`` is its address or absolute path. ``version`` is its modification time and size, or
    its ETag; empty accepts any version. Copies in other tasks are equal.
    """

    uri: str = field(compare=False)
    store: Store = field(compare=False)
    address: str
    key: str
    size: int
    version: str

    @classmethod
    def now(cls, store: Store, key: str) -> StoredFile:
        """The file at ``key`` as it is now. Raises ObjectNotFound or another StoreError."""
        uri = address = location(store, key)
        version = store.version(key) if isinstance(store, GetVersioned) else ""
        if isinstance(store, LocalStore):  # machines may see another number of the inode
            address, version = os.path.abspath(uri), version.partition("-")[2]  # noqa: PTH100
        return cls(uri, store, address, key, store.head(key).bytes, version)

    def read(self, offset: int, length: int) -> bytes:
        """``length`` bytes from ``offset``; fewer only at the end.

        Raises:
            SourceChanged: the file was replaced or removed since it was listed.
            StoreError: it could not be read this time.
        """
        with contextlib.suppress(FileNotFoundError):
            if not self.version:
                return self.store.get_range(self.key, offset, length)
            store: Any = self.store  # a GetVersioned, since it gave a version
            data, version = store.get_versioned(self.key, offset, length)
            if version == self.version or version.endswith(f"-{self.version}"):
                return bytes(data)
        raise SourceChanged(
            f"{self.uri} was changed or removed since it was indexed: restore it, or start "
            "anew with --overwrite"
        )

    def open(self, end: int) -> BinaryIO:
        """The bytes up to ``end`` as a file."""
        is_local = isinstance(self.store, LocalStore)
        window_bytes = _LOCAL_WINDOW_BYTES if is_local else _REMOTE_WINDOW_BYTES
        return io.BufferedReader(FilePart(self, end), window_bytes)


@dataclass(frozen=True)
class Archive(StoredFile):
    """An archive. The folder ``cache`` stores indexes; ``cache_key`` is its key in a config."""

    cache: str
    cache_key: str = field(default="ilsvrc.cache", compare=False)

    @classmethod
    def of(cls, store: Store, key: str, cache: str, cache_key: str = "ilsvrc.cache") -> Archive:
        """The archive at ``key`` as it is now. Raises ObjectNotFound or another StoreError."""
        file = StoredFile.now(store, key)
        place = (file.uri, file.store, file.address, file.key)
        return cls(*place, file.size, file.version, cache, cache_key)

    def kept(self, *about: object) -> bytes:
        """What ``keep`` stored about this version of the archive. Raises StoreError."""
        return LocalStore(self.cache).get(self._cache_name(about))

    def keep(self, data: Buffer, *about: object) -> None:
        """Store something in the cache folder. Raises StoreError."""
        LocalStore(self.cache).put(self._cache_name(about), data)

    def _cache_name(self, about: tuple[object, ...]) -> str:
        identity = repr((_SCHEMA, self.address, self.size, self.version, about))
        return hashlib.sha256(os.fsencode(identity)).hexdigest()[:32]


class FilePart(io.RawIOBase):
    """The first ``size`` bytes of a stored file, as a file."""

    def __init__(self, stored: StoredFile, size: int) -> None:
        self._stored, self._size, self._at = stored, size, 0

    def readable(self) -> bool:
        """Whether it can be read."""
        return True

    seekable = readable

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Set the place of the next byte; return it."""
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Fill ``buffer``; return how many bytes were there."""
        data = self._read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _read(self, most_bytes: int) -> bytes:
        length = min(most_bytes, self._size - self._at)
        data = self._stored.read(self._at, length) if length > 0 else b""
        self._at += len(data)
        return data


@dataclass(frozen=True)
class GzipContent:
    """The content of an archive that is compressed with gzip."""

    archive: Archive

    @property
    def key(self) -> str:
        """The container of entries in its content: ``KEY!gzip@0+SIZE``."""
        return f"{self.archive.key}!gzip@0+{self.archive.size}"

    @property
    def spacing_bytes(self) -> int:
        """Bytes of content between two points."""
        return max(_SPACING_BYTES, self.archive.size // _MOST_POINTS)

    def open(self) -> IndexedGzipFile:
        """Its content as a file, for reading from the beginning."""
        return IndexedGzipFile(
            fileobj=self.archive.open(self.archive.size),
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
        points = io.BytesIO()
        file.export_index(fileobj=points)
        try:
            self.archive.keep(points.getbuffer(), "gzip")
        except OSError:
            raise ConfigError(
                f"cannot store the index of {self.archive.uri}, which every worker needs, in "
                f"{self.archive.cache}: name a folder with --set {self.archive.cache_key}=FOLDER"
            ) from None

    def read(self, offset: int, length: int) -> bytes:
        """``length`` bytes of its content from ``offset``.

        Raises:
            CorruptArchive: the gzip data are damaged.
            SourceChanged, StoreError: as ``Archive.read``.
        """
        with inflating(self.archive.uri):
            data: bytes = _with_points(self).pread(length, offset)
        return data


@lru_cache(maxsize=_OPEN_GZIP_FILES)
def _with_points(part: GzipContent) -> IndexedGzipFile:
    """The content, with points from the cache folder, or found again if these are missing."""
    file = part.open()
    try:
        points = part.archive.kept("gzip")
        file.import_index(fileobj=io.BytesIO(points))
    except OSError:  # ZranError is one
        part.finish(file := part.open())
    return file


def container_of(key: str, archive: Archive) -> Archive | GzipContent:
    """What entries of an index with the container ``key`` are in: the archive, or its content."""
    return archive if key == archive.key else GzipContent(archive)


@contextlib.contextmanager
def inflating(uri: str) -> Iterator[None]:
    """Translate errors of indexed_gzip for the archive ``uri``.

    Raises:
        CorruptArchive: the gzip data are damaged.
        SourceChanged, StoreError: as ``Archive.read``.
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
