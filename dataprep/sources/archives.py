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
class Archive:
    """A file or object of ``size`` bytes as it was when it was indexed; ``uri`` is for messages.

    ``address`` is its address or absolute path. ``version`` is its modification time and size, or
    its ETag; empty accepts any version. The folder ``cache`` stores indexes; ``cache_key`` is the
    key of a config that names this folder. Copies in other tasks are equal.
    """

    uri: str = field(compare=False)
    store: Store = field(compare=False)
    address: str
    key: str
    size: int
    version: str
    cache: str
    cache_key: str = field(default="ilsvrc.cache", compare=False)

    @classmethod
    def of(cls, store: Store, key: str, cache: str, cache_key: str = "ilsvrc.cache") -> Archive:
        """The archive at ``key`` as it is now. Raises ObjectNotFound or another StoreError."""
        uri = address = location(store, key)
        version = store.version(key) if isinstance(store, GetVersioned) else ""
        if isinstance(store, LocalStore):  # machines may see another number of the inode
            address, version = os.path.abspath(uri), version.partition("-")[2]  # noqa: PTH100
        size = store.head(key).bytes
        return cls(uri, store, address, key, size, version, cache, cache_key)

    def read(self, offset: int, length: int) -> bytes:
        """``length`` bytes from ``offset``; fewer only at the end.

        Raises:
            SourceChanged: the archive was replaced or removed since it was indexed.
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
        return io.BufferedReader(_Part(self, end), window_bytes)

    def kept(self, *about: object) -> bytes:
        """What ``keep`` stored about this version of the archive. Raises StoreError."""
        return LocalStore(self.cache).get(self._cache_name(about))

    def keep(self, data: Buffer, *about: object) -> None:
        """Store something in the cache folder. Raises StoreError."""
        LocalStore(self.cache).put(self._cache_name(about), data)

    def _cache_name(self, about: tuple[object, ...]) -> str:
        identity = repr((_SCHEMA, self.address, self.size, self.version, about))
        return hashlib.sha256(os.fsencode(identity)).hexdigest()[:32]


class _Part(io.RawIOBase):
    """The first ``size`` bytes of an archive as a file."""

    def __init__(self, archive: Archive, size: int) -> None:
        self._archive, self._size, self._at = archive, size, 0

    def readable(self) -> bool:
        return True

    seekable = readable

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def readinto(self, buffer: Any) -> int:
        length = min(len(buffer), self._size - self._at)
        data = self._archive.read(self._at, length) if length > 0 else b""
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


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
