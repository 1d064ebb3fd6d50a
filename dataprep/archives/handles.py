"""A file or an object, read at any place, and whether it still is the one that it was."""

from __future__ import annotations

import os
import stat
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple, Protocol

from dataprep.errors import ObjectNotFound, PermissionRefused, StoreError
from dataprep.stores import Store
from dataprep.stores.local import LocalStore

_OPEN_FILES = 64


class Stamp(NamedTuple):
    """What changes when a file does: its size, and its time in ns or its ETag."""

    bytes: int
    version: str


class Handle(Protocol):
    """Something that ``open_handle`` opened."""

    @property
    def stamp(self) -> Stamp:
        """Of what is read, as it was opened."""
        ...

    def fetch(self, offset: int, length: int) -> bytes:
        """``length`` bytes from ``offset``; fewer only at the end.

        Raises:
            StoreError: it could not be read this time.
        """
        ...


class LocalHandle:
    """A file that is kept open; threads share it."""

    def __init__(self, path: str, name: str) -> None:
        self._name = name
        self._descriptor = -1
        try:
            # A named pipe would be waited for, until somebody writes to it.
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            status = os.fstat(self._descriptor)
        except (FileNotFoundError, NotADirectoryError):
            raise ObjectNotFound(f"no such file: {name!r}") from None
        except PermissionError:
            raise PermissionRefused(f"permission denied: {name!r}") from None
        except OSError as error:
            raise StoreError(f"{name!r}: {error.strerror}") from None
        if not stat.S_ISREG(status.st_mode):
            raise ObjectNotFound(f"{name!r} is not a regular file: give one")
        self.stamp = Stamp(status.st_size, str(status.st_mtime_ns))

    def __del__(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)

    def fetch(self, offset: int, length: int) -> bytes:
        """Bytes from the file, wherever other readers are in it."""
        try:
            data = os.pread(self._descriptor, length, offset)
            while 0 < len(data) < length and (
                more := os.pread(self._descriptor, length - len(data), offset + len(data))
            ):
                data += more
        except OSError as error:
            raise StoreError(f"{self._name!r}: {error.strerror}") from None
        return data


class StoredHandle:
    """An object in a store, read by ranges."""

    def __init__(self, store: Store, key: str) -> None:
        self._store, self._key = store, key
        info = store.head(key)
        self.stamp = Stamp(info.bytes, info.etag or "")

    def fetch(self, offset: int, length: int) -> bytes:
        """One range request; none where nothing is wanted."""
        return self._store.get_range(self._key, offset, length) if length else b""


def open_handle(store: Store, key: str) -> Handle:
    """The file or object ``key``.

    Raises:
        StoreError: it is not there, or must not be read.
    """
    if isinstance(store, LocalStore):
        return LocalHandle(os.fspath(store.root / key), key)
    return StoredHandle(store, key)


class Handles:
    """The last few handles, opened where they are missing; threads share them."""

    def __init__(self, open_one: Callable[[str], Handle]) -> None:
        self._open_one = open_one
        self._lock = threading.Lock()
        self._open: OrderedDict[str, Handle] = OrderedDict()

    def __getitem__(self, key: str) -> Handle:
        """The handle of ``key``. One that drops out is closed when nobody reads it any more."""
        with self._lock:
            if key in self._open:
                self._open.move_to_end(key)
                return self._open[key]
        handle = self._open_one(key)
        self.put(key, handle)
        return handle

    def put(self, key: str, handle: Handle) -> None:
        """Take ``handle`` for ``key`` from now on."""
        with self._lock:
            self._open[key] = handle
            while len(self._open) > _OPEN_FILES:
                self._open.popitem(last=False)
