"""A store in the memory of this process, for tests and for pipelines that need no disk."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Iterator
from itertools import count
from typing import Any, NamedTuple

from dataprep.errors import ObjectNotFound
from dataprep.stores.options import StoreOptions
from dataprep.stores.protocol import Buffer, KeepsLocks, ObjectInfo, Versioned


class _Object(NamedTuple):
    """An object: its bytes, its version, and the monotonic time at which it was stored."""

    data: bytes
    version: str
    stored_s: float


# The objects of each URI, by their keys. They stay until the process ends.
_OBJECTS_BY_URI: dict[str, dict[str, _Object]] = {}
_VERSION_NUMBERS = count()
_REPLACE_LOCK = threading.Lock()


class MemoryStore(KeepsLocks):
    """Objects in memory. Two stores in one process share their objects if their URIs are equal."""

    def __init__(self, uri: str = "memory://", options: StoreOptions | None = None) -> None:
        self.uri = uri
        self._objects = _OBJECTS_BY_URI.setdefault(uri, {})

    def __reduce__(self) -> tuple[Any, ...]:
        # The objects are not pickled: a copy in another process begins empty.
        return MemoryStore, (self.uri,)

    def prepare(self) -> None:
        """Do nothing: memory is always ready."""

    def get_versioned(self, key: str, offset: int = 0, length: int | None = None) -> Versioned:
        """Return all or part of an object, with its version."""
        stored_object = self._object(key)
        end = None if length is None else offset + length
        return Versioned(stored_object.data[offset:end], stored_object.version)

    def put(self, key: str, data: Buffer) -> ObjectInfo:
        """Store a copy of the bytes."""
        self._objects[key] = _copied(data)
        return self.head(key)

    def create(self, key: str, data: Buffer) -> bool:
        """Store a copy of the bytes unless the key exists."""
        new_object = _copied(data)
        # ``setdefault`` is atomic, so that only one of several threads creates the object.
        return self._objects.setdefault(key, new_object) is new_object

    def replace(self, key: str, data: Buffer, version: str) -> bool:
        """Store a copy of the bytes if the object still has ``version``."""
        with _REPLACE_LOCK:
            current = self._objects.get(key)
            if current is None or current.version != version:
                return False
            self._objects[key] = _copied(data)
        return True

    def age_s(self, key: str) -> float:
        """Return the seconds since the object was stored."""
        return time.monotonic() - self._object(key).stored_s

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """Yield the objects whose keys begin with ``prefix``."""
        for key, stored_object in list(self._objects.items()):
            if key.startswith(prefix):
                yield _info(key, stored_object.data)

    def head(self, key: str) -> ObjectInfo:
        """Return the size and the MD5 of an object."""
        return _info(key, self._object(key).data)

    def delete(self, key: str) -> None:
        """Remove an object."""
        self._objects.pop(key, None)

    def _object(self, key: str) -> _Object:
        """Return an object. Raise ObjectNotFound if there is none."""
        try:
            return self._objects[key]
        except KeyError:
            raise ObjectNotFound(f"no such object: {key!r} in {self.uri}") from None


def _copied(data: Buffer) -> _Object:
    """Return a new object with a copy of the bytes and a new version."""
    return _Object(bytes(data), str(next(_VERSION_NUMBERS)), time.monotonic())


def _info(key: str, data: bytes) -> ObjectInfo:
    """The description of an object. The MD5 of its bytes is its ETag, as on S3."""
    return ObjectInfo(key, len(data), hashlib.md5(data, usedforsecurity=False).hexdigest())
