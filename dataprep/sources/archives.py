"""Archive files read by ranges: a file or object, part of one as a file, and gzip content.

indexed_gzip finds points in a gzip file from which its content can be read. They are kept in a
cache folder, since every worker needs them.
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

    ``version`` is its modification time in ns or its ETag; empty accepts any version.
    """

    store: Store
    key: str
    size: int = 0
    version: str = ""

    @classmethod
    def of(cls, store: Store, key: str) -> Archive:
        """The archive that is there now. Raises ObjectNotFound or another StoreError."""
        return cls(store, key, store.head(key).bytes, _version(store, key))

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
            if isinstance(self.store, GetVersioned) and not isinstance(self.store, LocalStore):
                data, version = self.store.get_versioned(self.key, offset, length)
            else:
                data = self.store.get_range(self.key, offset, length)
                version = _version(self.store, self.key)
        if version == "gone" or self.version not in ("", version):
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
        """The name in a cache folder of something about this version of the archive."""
        is_local = isinstance(self.store, LocalStore)
        address = os.path.abspath(self.uri) if is_local else self.uri  # noqa: PTH100
        identity = repr((_SCHEMA, address, self.size, self.version, parts))
        return hashlib.sha256(os.fsencode(identity)).hexdigest()[:32]


def _version(store: Store, key: str) -> str:
    if isinstance(store, LocalStore):  # the same on all machines that share the file system
        return str((store.root / key).stat().st_mtime_ns)
    return store.version(key) if isinstance(store, GetVersioned) else ""


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

    Its points are kept in the ``cache`` folder.
    """

    archive: Archive
    start: int
    size: int
    cache: Path

    @property
    def container(self) -> str:
        """What offsets in its content belong to: ``KEY!gzip@START+SIZE``."""
        return f"{self.archive.key}!gzip@{self.start}+{self.size}"

    @property
    def spacing_bytes(self) -> int:
        """Content from point to point."""
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
        """Read ``file`` to its end, check its checksum and keep its points.

        Raises:
            ConfigError: the points cannot be kept.
        """
        file.build_full_index()
        if not keep(self._points, lambda sink: file.export_index(fileobj=sink)):
            raise ConfigError(
                f"cannot keep the index of {self.archive.uri}, which every worker needs, in "
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
    """The content, with the points that are kept or else found anew."""
    file = part.open()
    try:
        with part._points.open("rb") as kept:
            file.import_index(fileobj=kept)
    except OSError:  # ZranError is one
        part.finish(file := part.open())
    return file


@contextlib.contextmanager
def inflating(uri: str) -> Iterator[None]:
    """Translate errors of indexed_gzip, of an archive that is called ``uri``.

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
    """Write a file that appears whole or not at all; whether that was possible."""
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
