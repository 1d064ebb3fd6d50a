"""What a store does, and what some can do besides: callers check for that by ``isinstance``."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import BinaryIO, NamedTuple, Protocol, TypeAlias, runtime_checkable

Buffer: TypeAlias = bytes | bytearray | memoryview

LEAVES = "symlink that leaves the source"
"""The problem of a link that leads out of the root."""


BROKEN = "broken symlink"
"""The problem of a link whose target is not there."""


class ObjectInfo(NamedTuple):
    """An object as listed. ``etag`` is the server's, without quotes; local files have none.

    ``problem`` says why a listed entry will not be opened (a symlink that leaves the root).
    Keys hold bytes that are not UTF-8 as surrogates, as ``os.fsdecode`` does.
    """

    key: str
    bytes: int
    etag: str | None = None
    problem: str | None = None


class Versioned(NamedTuple):
    """Bytes as they were read, and the version of the object; empty where that is unknown.

    Whatever is put under a key later has another version, or holds the same bytes.
    """

    data: bytes
    version: str


@runtime_checkable
class GetTo(Protocol):
    """Copies whole objects to files; optional."""

    def get_to(self, key: str, file: BinaryIO) -> None:
        """Write the object's bytes to ``file``, a seekable one, from where it stands.

        Raises as ``get``, and OSError where ``file`` cannot be written.
        """


@runtime_checkable
class GetVersioned(Protocol):
    """Says which version of an object it has read; optional.

    A data set is read by these where a store has them: a class that derives from another store and
    changes what ``get`` returns changes this as well.
    """

    def get_versioned(self, key: str, offset: int = 0, length: int | None = None) -> Versioned:
        """As ``get``, or as ``get_range`` where a length is given, all bytes of one version."""

    def version(self, key: str) -> str:
        """Return the version of the object that is there now. Raises ObjectNotFound."""
        return self.get_versioned(key, 0, 0).version

    def get(self, key: str) -> bytes:
        """Return the object's bytes."""
        return self.get_versioned(key).data

    def get_range(self, key: str, offset: int, length: int) -> bytes:
        """Return part of an object."""
        return self.get_versioned(key, offset, length).data


class Upload:
    """The bytes of one object on their way to a store.

    A store that repeats requests counts in ``attempts`` how often it has sent the bytes, over all
    requests for this upload, and notes in ``reason`` why the last attempt did not succeed. Before
    it removes an object that was stored damaged, it calls ``check_lock``, which raises LeaseLost if
    another run has taken over.
    """

    def __init__(
        self,
        key: str,
        data: Buffer,
        md5: bytes | None = None,
        check_lock: Callable[[], None] = lambda: None,
    ) -> None:
        self.key = key
        self.check_lock = check_lock
        self.data = memoryview(data).cast("B")
        self.attempts = 0
        self.reason = ""
        self._md5 = md5

    @property
    def md5(self) -> bytes:
        """The MD5 of the bytes, computed once unless the caller knew it."""
        if self._md5 is None:
            self._md5 = hashlib.md5(self.data, usedforsecurity=False).digest()
        return self._md5


@runtime_checkable
class Uploads(Protocol):
    """Sends the MD5 of what it writes, which callers can compute while they make it; optional."""

    def create_upload(self, upload: Upload) -> ObjectInfo | None:
        """As ``create``; return the confirmed object, or None where ``create`` returns False."""

    def replace_upload(self, upload: Upload, version: str) -> ObjectInfo | None:
        """As ``replace``; return the confirmed object, or None where ``replace`` returns False."""


@runtime_checkable
class Close(Protocol):
    """Keeps connections or files open between requests; optional."""

    def close(self) -> None:
        """Close them. The store can still be used, and then opens new ones."""


@runtime_checkable
class RemovesEmptyRoot(Protocol):
    """Has a root that ``prepare`` makes, such as a directory; optional."""

    def remove_if_empty(self) -> None:
        """Remove the root if ``prepare`` made it and nothing is in it."""


@runtime_checkable
class Store(Protocol):
    """Bytes by key below one root: a directory, a bucket with a prefix, a name in memory."""

    uri: str
    """The address of the root, without credentials."""

    def prepare(self) -> None:
        """Make sure that the root can be written to, quickly and before any work is done.

        Raises ObjectNotFound (no bucket), PermissionRefused, StoreUnreachable or StoreError.
        """

    def free_bytes(self) -> int | None:
        """Return the space left, or None where the store does not know it."""
        return None

    def tidy(self) -> None:
        """Remove what interrupted writers left behind; writers that live lose nothing."""
        return

    def get(self, key: str) -> bytes:
        """Return the object's bytes. Raises ObjectNotFound, PermissionRefused or StoreError."""

    def get_range(self, key: str, offset: int, length: int) -> bytes:
        """Return ``length`` bytes from ``offset``; fewer only where the object ends."""

    def put(self, key: str, data: Buffer) -> ObjectInfo:
        """Store ``data`` completely or not at all, and confirm it.

        The memory of ``data`` may hold something else as soon as this returns.

        Raises:
            StoredBytesDiffer: the store holds something else, after retries.
            StoreError: it was not stored for any other reason.
        """

    def create(self, key: str, data: Buffer) -> bool:
        """Store ``data`` unless ``key`` exists; return whether it was stored.

        False also where an answer was lost and the repeated request found what the first stored.
        """

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """Yield every object whose key begins with ``prefix``, in no particular order."""

    def head(self, key: str) -> ObjectInfo:
        """Return an object's size and ETag. Raises ObjectNotFound."""

    def delete(self, key: str) -> None:
        """Remove ``key``; nothing happens where there is none."""


@runtime_checkable
class KeepsLocks(GetVersioned, Store, Protocol):
    """What ``job.lock`` needs; optional: without it, runs do not exclude each other.

    Shards, receipts and tables are replaced by ``replace``, so that a run which has lost its lock
    overwrites nothing; without it, by ``put``.
    """

    def replace(self, key: str, data: Buffer, version: str) -> bool:
        """Store ``data`` if the object still has ``version``; return whether it was stored.

        False also where the object is gone, or an answer was lost, as for ``create``. Of several
        callers at once only one succeeds.
        """

    def age_s(self, key: str) -> float:
        """Return for how long the object has not been written, by the store's own clock.

        Raises ObjectNotFound.
        """


def location(store: Store, key: str) -> str:
    """Return the full address of an object."""
    return f"{store.uri.rstrip('/')}/{key}"
