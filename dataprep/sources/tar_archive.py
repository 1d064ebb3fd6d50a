"""Tar archives that are read in ranges, plain or compressed with gzip, and their cache folder.

Decompression of a gzip file can begin only at certain *points*: at its start, or where the state of
the decompressor has been saved. indexed_gzip saves points in one pass over the file. The cache
folder stores them, because every worker needs them.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from indexed_gzip import IndexedGzipFile

from dataprep.errors import ConfigError, CorruptArchive, DataprepError
from dataprep.sources.stored_file import StoredFile
from dataprep.stores import Store
from dataprep.stores.local import LocalStore
from dataprep.stores.protocol import Buffer

_CACHE_SCHEMA = 6
"""The version of the file format in the cache folder."""

_GZIP_BUFFER_BYTES = 2**16
_MIN_SPACING_BYTES = 2**20
_TARGET_POINTS = 8192
"""The approximate number of points of a large archive whose content hardly compresses.

A point takes 32 KiB, so that 8,192 points take 256 MiB. A content that is several times larger than
the archive has several times more points.
"""

_OPEN_GZIP_FILES = 16


@dataclass(frozen=True)
class Archive(StoredFile):
    """An archive with a folder in which its indexes are stored.

    Attributes:
        cache: the cache folder.
        cache_key: the key in a config that names the cache folder, for messages.
    """

    cache: str
    cache_key: str = field(default="ilsvrc.cache", compare=False)

    @classmethod
    def of(cls, store: Store, key: str, cache: str, cache_key: str = "ilsvrc.cache") -> Archive:
        """Return the archive at ``key`` in its current version.

        Args:
            store: the store that contains the archive.
            key: the key of the archive.
            cache: the cache folder.
            cache_key: the key in a config that names the cache folder, for messages.

        Raises:
            ObjectNotFound: there is no such file.
            StoreError: the store does not answer.
        """
        file = StoredFile.now(store, key)
        return cls(
            uri=file.uri,
            store=file.store,
            address=file.address,
            key=file.key,
            size=file.size,
            version=file.version,
            cache=cache,
            cache_key=cache_key,
        )

    def read_cache(self, *subject: object) -> bytes:
        """Return the data that ``write_cache`` stored for this version of the archive.

        Args:
            *subject: the values that were given to ``write_cache``.

        Raises:
            ObjectNotFound: there are no such data.
            StoreError: the cache folder cannot be read.
        """
        return LocalStore(self.cache).get(self._cache_name(subject))

    def write_cache(self, data: Buffer, *subject: object) -> None:
        """Store data in the cache folder, for this version of the archive.

        Args:
            data: the data.
            *subject: values that distinguish these data from other data about the archive.

        Raises:
            StoreError: the cache folder cannot be written.
        """
        LocalStore(self.cache).put(self._cache_name(subject), data)

    def _cache_name(self, subject: tuple[object, ...]) -> str:
        """The name of a file in the cache folder: a hash of the archive and of the subject."""
        identity = repr((_CACHE_SCHEMA, self.address, self.size, self.version, subject))
        return hashlib.sha256(os.fsencode(identity)).hexdigest()[:32]


@dataclass(frozen=True)
class GzipContent:
    """The content of an archive that is compressed with gzip."""

    archive: Archive

    @property
    def key(self) -> str:
        """The name of the content as the container of its entries: ``KEY!gzip@0+SIZE``."""
        return f"{self.archive.key}!gzip@0+{self.archive.size}"

    @property
    def spacing_bytes(self) -> int:
        """The distance between two points, in bytes of the content."""
        return max(_MIN_SPACING_BYTES, self.archive.size // _TARGET_POINTS)

    def open(self) -> IndexedGzipFile:
        """Open the content as a file. It has no points at first; reading the file saves them."""
        return IndexedGzipFile(
            fileobj=self.archive.open(self.archive.size),
            spacing=self.spacing_bytes,
            buffer_size=_GZIP_BUFFER_BYTES,
            readbuf_size=_GZIP_BUFFER_BYTES,
        )

    def finish(self, file: IndexedGzipFile) -> None:
        """Read the content to its end, verify its checksum, and store its points.

        Args:
            file: the result of ``open``.

        Raises:
            ConfigError: the points cannot be stored.
        """
        file.build_full_index()
        points = io.BytesIO()
        file.export_index(fileobj=points)
        try:
            self.archive.write_cache(points.getbuffer(), "gzip")
        except OSError:
            raise ConfigError(
                f"cannot store the index of {self.archive.uri}, which every worker needs, in "
                f"{self.archive.cache}: name a folder with --set {self.archive.cache_key}=FOLDER"
            ) from None

    def read(self, offset: int, length: int) -> bytes:
        """Return ``length`` bytes of the content from ``offset``.

        Raises:
            CorruptArchive: the gzip data are damaged.
            ConfigError: the cache folder has no points, and they cannot be stored there.
            SourceChanged, StoreError: as ``StoredFile.read``.
        """
        with decompressing(self.archive.uri):
            data: bytes = _open_with_points(self).pread(length, offset)
        return data


@lru_cache(maxsize=_OPEN_GZIP_FILES)
def _open_with_points(content: GzipContent) -> IndexedGzipFile:
    """Open the content with its points.

    The points are read from the cache folder. If they are missing or damaged, the archive is read
    once to find them. The file stays open for later reads of this process.

    Raises:
        ConfigError: as ``GzipContent.finish``.
    """
    file = content.open()
    try:
        points = content.archive.read_cache("gzip")
        file.import_index(fileobj=io.BytesIO(points))
    except OSError:  # ZranError is an OSError too.
        file = content.open()
        content.finish(file)
    return file


def container_of(key: str, archive: Archive) -> Archive | GzipContent:
    """Return the container with the name ``key``: the archive, or its gzip content."""
    return archive if key == archive.key else GzipContent(archive)


@contextlib.contextmanager
def decompressing(uri: str) -> Iterator[None]:
    """Translate errors of indexed_gzip for the archive at ``uri``.

    Raises:
        CorruptArchive: the gzip data are damaged.
        SourceChanged, StoreError: as ``StoredFile.read``.
    """
    try:
        yield
    except DataprepError:
        raise
    except OSError as error:
        # An error of the store reaches this point as the cause of an error of indexed_gzip.
        if isinstance(error.__cause__, DataprepError):
            raise error.__cause__ from None
        raise CorruptArchive(
            f"{uri}: its gzip data are damaged or truncated ({error}): compare the MD5 and fetch "
            "the archive again"
        ) from None
