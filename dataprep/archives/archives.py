"""The archives in a store: their indexes, and the bytes of their members.

A container is what offsets count in: a file, or the content of a gzip file, which is called
``KEY!gzip@START+BYTES`` by the part of the file ``KEY`` that it is.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from dataprep.archives.gzip_points import GzipPoints
from dataprep.archives.handles import Handle, Handles, Stamp, open_handle
from dataprep.archives.index_cache import IndexCache
from dataprep.archives.indexing import LOCAL, REMOTE, Indexer
from dataprep.archives.tar_index import TarIndex
from dataprep.errors import ConfigError, ObjectNotFound, SourceChanged
from dataprep.stores import Store
from dataprep.stores.local import LocalStore

Note = Callable[[str], None]
Inflating = Callable[[Sequence[int]], None]

_GZIP = re.compile(r"(.*)!gzip@(\d+)\+(\d+)", re.S)


def container_of(key: str, index: TarIndex, part: int) -> str:
    """What the offsets of a part's members count in."""
    whole, inner = index.parts[0], index.parts[part]
    packed = whole if whole.compressed else inner
    return _gzip_at(key, packed.start, packed.bytes) if packed.compressed else key


def _gzip_at(place: str, start: int, size: int) -> str:
    return f"{place}!gzip@{start}+{size}"


def _ignore(_: object) -> None:
    """Tell nobody."""


class Archives:
    """Archives by key. What was indexed must not change until it is read, here or in a worker."""

    def __init__(self, store: Store, cache: str | None = None) -> None:
        self._store = store
        self._cache = IndexCache(cache)
        self._stamps: dict[str, Stamp] = {}
        self._begin()

    def __getstate__(self) -> dict[str, Any]:
        return {"store": self._store, "cache": self._cache, "stamps": self._stamps}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._store, self._cache = state["store"], state["cache"]
        self._stamps = state["stamps"]
        self._begin()

    def _begin(self) -> None:
        self._handles = Handles(self._open)
        self._points: dict[str, GzipPoints] = {}
        self._lock = threading.Lock()

    def index(self, key: str, note: Note, inflating: Inflating) -> TarIndex:
        """The index of an archive, from the cache if it is the same that was indexed.

        ``inflating`` hears the sizes of the gzip files that have to be decompressed for it.

        Raises:
            NotAnArchive, CorruptArchive, StoreError.
        """
        handle = open_handle(self._store, key)
        self._stamps[key] = handle.stamp
        self._handles.put(key, handle)
        address = self._address(key)
        if (index := self._cache.index(address, handle.stamp)) is not None:
            return index
        with self._cache.building(address):
            if (index := self._cache.index(address, handle.stamp)) is not None:
                return index
            index = self._indexer(key, handle, note, inflating).run()
            self._cache.put_index(address, handle.stamp, index)
        return index

    def read(self, container: str, offset: int, length: int) -> bytes:
        """Bytes of a member; fewer only where the container ends.

        Raises:
            SourceChanged: the archive is another than the one that was indexed, or gone.
            CorruptArchive: its compressed data are damaged.
            StoreError: it could not be read this time.
        """
        packed = _GZIP.fullmatch(container)
        if packed is None:
            return self._handles[container].fetch(offset, length)
        key, start = packed[1], int(packed[2])
        handle = self._handles[key]
        points = self._points_of(container, key, start, int(packed[3]), handle)

        def fetch(at: int, size: int) -> bytes:
            return handle.fetch(start + at, size)

        return points.read(fetch, offset, length)

    def _points_of(
        self, container: str, key: str, start: int, size: int, handle: Handle
    ) -> GzipPoints:
        with self._lock:
            if container not in self._points:
                self._points[container] = self._load_points(key, start, size, handle)
            return self._points[container]

    def _load_points(self, key: str, start: int, size: int, handle: Handle) -> GzipPoints:
        address = _gzip_at(self._address(key), start, size)
        if (points := self._cache.points(address, handle.stamp)) is not None:
            return points
        with self._cache.building(address):
            if (points := self._cache.points(address, handle.stamp)) is not None:
                return points
            return self._indexer(key, handle, _ignore, _ignore).points(start, size)

    def _indexer(self, key: str, handle: Handle, note: Note, inflating: Inflating) -> Indexer:
        access = LOCAL if isinstance(self._store, LocalStore) else REMOTE
        keep = partial(self._keep, key, handle.stamp)
        return Indexer(self._uri(key), handle, access, keep, note, inflating)

    def _keep(self, key: str, stamp: Stamp, start: int, size: int, points: GzipPoints) -> None:
        address = _gzip_at(self._address(key), start, size)
        self._cache.put_points(address, stamp, points)
        if self._cache.points(address, stamp) is None:
            raise ConfigError(
                f"cannot keep the index of {self._uri(key)}, which every worker needs, in "
                f"{self._cache.folder}: name a folder with --set ilsvrc.cache=FOLDER"
            )

    def _open(self, key: str) -> Handle:
        try:
            handle = open_handle(self._store, key)
        except ObjectNotFound:
            raise SourceChanged(
                f"{self._uri(key)} is gone since it was indexed: restore it, or start anew with "
                "--overwrite"
            ) from None
        if self._stamps.get(key, handle.stamp) != handle.stamp:
            raise SourceChanged(
                f"{self._uri(key)} was changed since it was indexed: restore it, or start anew "
                "with --overwrite"
            )
        return handle

    def _address(self, key: str) -> str:
        """Which archive it is, wherever one stands: a relative path means another one elsewhere."""
        if isinstance(self._store, LocalStore):
            return os.fspath((self._store.root / key).absolute())
        return self._uri(key)

    def _uri(self, key: str) -> str:
        """What it is called in messages."""
        return f"{self._store.uri.rstrip('/')}/{key}"
