"""A store in this process's memory, for tests and for pipelines that need no disk."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from itertools import count

from dataprep.errors import ObjectNotFound
from dataprep.stores.options import StoreOptions
from dataprep.stores.protocol import Buffer, ObjectInfo, Versioned

_ROOTS: dict[str, dict[str, Versioned]] = {}
_SERIAL = count()
_LOCK = threading.Lock()


class MemoryStore:
    """Bytes by key. Stores opened with the same URI in one process share them."""

    def __init__(self, uri: str = "memory://", options: StoreOptions | None = None) -> None:
        self._uri = uri
        with _LOCK:
            self._objects = _ROOTS.setdefault(uri, {})

    def __reduce__(self) -> tuple[type[MemoryStore], tuple[str]]:
        return MemoryStore, (self._uri,)

    @property
    def uri(self) -> str:
        """The name that it is shared by."""
        return self._uri

    def prepare(self) -> None:
        """Memory is always ready."""

    def free_bytes(self) -> int | None:
        """Not known."""
        return None

    def tidy(self) -> None:
        """Nothing is ever half-written."""

    def get(self, key: str) -> bytes:
        """The object's bytes."""
        return self._stored(key).data

    def get_range(self, key: str, offset: int, length: int) -> bytes:
        """Part of an object."""
        return self.get(key)[offset : offset + length]

    def get_versioned(self, key: str, offset: int = 0, length: int | None = None) -> Versioned:
        """All of an object, or part of it; versions are counted."""
        data, version = self._stored(key)
        whole = length is None and not offset
        end = None if length is None else offset + length
        return Versioned(data if whole else data[offset:end], version)

    def version(self, key: str) -> str:
        """As they are counted."""
        return self._stored(key).version

    def put(self, key: str, data: Buffer) -> ObjectInfo:
        """Keep a copy."""
        self._objects[key] = _copied(data)
        return self.head(key)

    def create(self, key: str, data: Buffer) -> bool:
        """Keep a copy unless there is one."""
        with _LOCK:
            if key in self._objects:
                return False
            self._objects[key] = _copied(data)
        return True

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """Keys that begin with ``prefix``."""
        for key, stored in list(self._objects.items()):
            if key.startswith(prefix):
                yield _info(key, stored.data)

    def head(self, key: str) -> ObjectInfo:
        """Size and MD5."""
        return _info(key, self.get(key))

    def delete(self, key: str) -> None:
        """Forget the object."""
        self._objects.pop(key, None)

    def _stored(self, key: str) -> Versioned:
        try:
            return self._objects[key]
        except KeyError:
            raise ObjectNotFound(f"no such object: {key!r} in {self._uri}") from None


def _copied(data: Buffer) -> Versioned:
    return Versioned(bytes(data), str(next(_SERIAL)))


def _info(key: str, data: bytes) -> ObjectInfo:
    return ObjectInfo(key, len(data), hashlib.md5(data, usedforsecurity=False).hexdigest())
