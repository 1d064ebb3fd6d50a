"""The Protocol of a store, and Protocols of optional capabilities.

A capability is a group of methods. Callers use ``isinstance`` to check whether a store has an
optional capability.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import BinaryIO, NamedTuple, Protocol, TypeAlias, runtime_checkable

Buffer: TypeAlias = bytes | bytearray | memoryview

LEAVES = "symlink that leaves the source"
"""The ``problem`` of a symlink with a target outside the root of the store."""

BROKEN = "broken symlink"
"""The ``problem`` of a symlink whose target does not exist."""


class ObjectInfo(NamedTuple):
    """The description of an object in a listing.

    Attributes:
        key: the key below the root of the store. Bytes that are not UTF-8 are represented by
            surrogates, as in the result of ``os.fsdecode``.
        bytes: the size of the object; 0 if it has a problem.
        etag: the ETag of the server, without quotes; None for local files.
        problem: why the object cannot be read, such as ``LEAVES``; None if it can be read.
    """

    key: str
    bytes: int
    etag: str | None = None
    problem: str | None = None


class Versioned(NamedTuple):
    """Bytes of an object, and the version of the object from which they were read.

    If other bytes are stored under the same key, the version changes.

    Attributes:
        data: the bytes.
        version: the version, in any form that the store chooses; empty if it is unknown.
    """

    data: bytes
    version: str


@runtime_checkable
class GetTo(Protocol):
    """An optional capability: copy an object to a file without holding all of it in memory."""

    def get_to(self, key: str, file: BinaryIO) -> None:
        """Write the object's bytes to ``file`` from its current position.

        Args:
            key: the key of the object.
            file: a file that supports ``seek`` and ``truncate``.

        Raises:
            ObjectNotFound, PermissionRefused, StoreError: as ``Store.get``.
            OSError: the file cannot be written.
        """


@runtime_checkable
class GetVersioned(Protocol):
    """An optional capability: return the version of an object together with its bytes.

    Data sets are read by these methods if the store has them. ``get`` and ``get_range`` call
    ``get_versioned`` unless a class overrides them. A class that derives from a store and changes
    the result of ``get`` must therefore also change ``get_versioned``.
    """

    def get_versioned(self, key: str, offset: int = 0, length: int | None = None) -> Versioned:
        """Return bytes of an object, all from one version.

        Without a length, all bytes from ``offset`` are returned; with a length, at most ``length``
        bytes. The errors are those of ``get`` and ``get_range``.
        """

    def version(self, key: str) -> str:
        """Return the current version of an object.

        Raises:
            ObjectNotFound: the object does not exist.
        """
        return self.get_versioned(key, 0, 0).version

    def get(self, key: str) -> bytes:
        """Return the bytes of an object."""
        return self.get_versioned(key).data

    def get_range(self, key: str, offset: int, length: int) -> bytes:
        """Return ``length`` bytes of an object from ``offset``; fewer if the object ends before."""
        return self.get_versioned(key, offset, length).data


class Upload:
    """An object that is being sent to a store, with the state of the transfer.

    Attributes:
        key: the key of the object.
        data: the bytes.
        check_lock: raises LeaseLost if the run has lost its lock. The store calls it before it
            removes an object that was damaged during the transfer.
        attempts: the number of times that the bytes were sent, over all requests for this upload. A
            store that repeats requests counts its attempts here.
        reason: why the last failed attempt failed; empty if no attempt has failed.
    """

    def __init__(
        self,
        key: str,
        data: Buffer,
        md5: bytes | None = None,
        check_lock: Callable[[], None] = lambda: None,
    ) -> None:
        """Describe an upload.

        Args:
            key: the key of the object.
            data: the bytes.
            md5: the MD5 of the bytes; None to compute it when it is needed.
            check_lock: see the attribute.
        """
        self.key = key
        self.check_lock = check_lock
        self.data = memoryview(data).cast("B")
        self.attempts = 0
        self.reason = ""
        self._md5 = md5

    @property
    def md5(self) -> bytes:
        """The MD5 of the bytes. It is computed once, unless the caller has passed it."""
        if self._md5 is None:
            self._md5 = hashlib.md5(self.data, usedforsecurity=False).digest()
        return self._md5


@runtime_checkable
class Uploads(Protocol):
    """An optional capability: store an object whose MD5 the caller may already know.

    The store sends the MD5, so that the server can check the bytes.
    """

    def create_upload(self, upload: Upload) -> ObjectInfo | None:
        """Do as ``Store.create``, but return a description of the stored object.

        The result is None in the cases in which ``create`` returns False.
        """

    def replace_upload(self, upload: Upload, version: str) -> ObjectInfo | None:
        """Do as ``KeepsLocks.replace``, but return a description of the stored object.

        The result is None in the cases in which ``replace`` returns False.
        """


@runtime_checkable
class Close(Protocol):
    """An optional capability: close the connections or files that stay open between requests."""

    def close(self) -> None:
        """Close the connections. The store can still be used, and then opens new connections."""


@runtime_checkable
class RemovesEmptyRoot(Protocol):
    """An optional capability: remove the root that ``prepare`` has created, such as a folder."""

    def remove_if_empty(self) -> None:
        """Remove the root if ``prepare`` has created it and it is empty."""


@runtime_checkable
class Store(Protocol):
    """A store of objects, each of which has a key and bytes.

    All keys of a store are below one root: a folder, a bucket and prefix, or a name.
    """

    uri: str
    """The address of the root, without credentials."""

    def prepare(self) -> None:
        """Check quickly that objects can be written. This is called before a job does any work.

        Raises:
            ObjectNotFound: the bucket does not exist.
            PermissionRefused: the root cannot be written to.
            StoreUnreachable: the server does not answer.
            StoreError: another error of the store.
        """

    def free_bytes(self) -> int | None:
        """Return the free space in bytes; None if the store has no limit or does not know it."""
        return None

    def tidy(self) -> None:
        """Remove temporary files of writers that were interrupted.

        The temporary files of writers that may still be working are kept.
        """
        return

    def get(self, key: str) -> bytes:
        """Return the bytes of an object.

        Raises:
            ObjectNotFound: the object does not exist.
            PermissionRefused: it cannot be read.
            StoreError: another error of the store.
        """

    def get_range(self, key: str, offset: int, length: int) -> bytes:
        """Return ``length`` bytes of an object from ``offset``.

        Fewer bytes are returned only if the object ends before.
        """

    def put(self, key: str, data: Buffer) -> ObjectInfo:
        """Store an object completely or not at all, and confirm that it is stored.

        An object with the same key is replaced.

        After the method has returned, the caller may reuse the memory of ``data``.

        Raises:
            StoredBytesDiffer: the store holds other bytes than were sent, even after retries.
            StoreError: the object was not stored for another reason.
        """

    def create(self, key: str, data: Buffer) -> bool:
        """Store an object unless the key exists. Return whether it was stored.

        The result can be False although this call has stored the object. This happens if an answer
        is lost: the repeated request then finds the object that the first request has stored.
        """

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """Yield every object whose key begins with ``prefix``, in no particular order."""

    def head(self, key: str) -> ObjectInfo:
        """Return the size and the ETag of an object.

        Raises:
            ObjectNotFound: the object does not exist.
        """

    def delete(self, key: str) -> None:
        """Remove an object. A key that does not exist is no error."""


@runtime_checkable
class KeepsLocks(GetVersioned, Store, Protocol):
    """An optional capability: the operations that locks need.

    In a store with this capability, runs exclude each other by locks, and a run that has lost its
    lock overwrites nothing. In other stores, runs do not exclude each other, and ``put`` replaces
    whatever shard, receipt or table is stored.
    """

    def replace(self, key: str, data: Buffer, version: str) -> bool:
        """Store an object if the current object has ``version``. Return whether it was stored.

        The result is also False if the object no longer exists, or if an answer is lost (see
        ``create``). If several callers replace the same version, only one of them succeeds.
        """

    def age_s(self, key: str) -> float:
        """Return the seconds since the object was last written, by the clock of the store.

        Raises:
            ObjectNotFound: the object does not exist.
        """


def location(store: Store, key: str) -> str:
    """Return the full address of an object."""
    return f"{store.uri.rstrip('/')}/{key}"
