"""A store in this process's memory, for tests and for pipelines that need no disk."""

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


class _Stored(NamedTuple):
    data: bytes
    version: str
    stored_s: float


_ROOTS: dict[str, dict[str, _Stored]] = {}
_SERIAL = count()
_REPLACING = threading.Lock()


class MemoryStore(KeepsLocks):
    """Bytes by key. Stores opened with the same URI in one process share them."""

    def __init__(self, uri: str = "memory://", options: StoreOptions | None = None) -> None:
        self.uri = uri
        self._objects = _ROOTS.setdefault(uri, {})

    def __reduce__(self) -> tuple[Any, ...]:
        return MemoryStore, (self.uri,)

    def prepare(self) -> None:
        """Memory is always ready."""

    def get_versioned(self, key: str, offset: int = 0, length: int | None = None) -> Versioned:
        """Return all of an object, or part of it; versions are counted."""
        found = self._stored(key)
        end = None if length is None else offset + length
        return Versioned(found.data[offset:end], found.version)

    def put(self, key: str, data: Buffer) -> ObjectInfo:
        """Keep a copy."""
        self._objects[key] = _kept(data)
        return self.head(key)

    def create(self, key: str, data: Buffer) -> bool:
        """Keep a copy unless there is one."""
        kept = _kept(data)
        return self._objects.setdefault(key, kept) is kept

    def replace(self, key: str, data: Buffer, version: str) -> bool:
        """Keep a copy if the object still has ``version``."""
        with _REPLACING:
            found = self._objects.get(key)
            if found is None or found.version != version:
                return False
            self._objects[key] = _kept(data)
        return True

    def age_s(self, key: str) -> float:
        """Return the seconds since the object was stored."""
        return time.monotonic() - self._stored(key).stored_s

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """Yield keys that begin with ``prefix``."""
        for key, stored in list(self._objects.items()):
            if key.startswith(prefix):
                yield _info(key, stored.data)

    def head(self, key: str) -> ObjectInfo:
        """Return size and MD5."""
        return _info(key, self._stored(key).data)

    def delete(self, key: str) -> None:
        """Forget the object."""
        self._objects.pop(key, None)

    def _stored(self, key: str) -> _Stored:
        try:
            return self._objects[key]
        except KeyError:
            raise ObjectNotFound(f"no such object: {key!r} in {self.uri}") from None


def _kept(data: Buffer) -> _Stored:
    return _Stored(bytes(data), str(next(_SERIAL)), time.monotonic())


def _info(key: str, data: bytes) -> ObjectInfo:
    return ObjectInfo(key, len(data), hashlib.md5(data, usedforsecurity=False).hexdigest())
