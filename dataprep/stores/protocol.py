"""What a store can do, one capability a Protocol; callers ask only for what they need."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import BinaryIO, NamedTuple, Protocol, TypeAlias, runtime_checkable

Buffer: TypeAlias = bytes | bytearray | memoryview

LEAVES = "symlink that leaves the source"
"""The problem of a link to what lies elsewhere, and so was not asked for."""


class ObjectInfo(NamedTuple):
    """An object as listed. ``etag`` is the server's, without quotes; local files have none.

    ``problem`` says why a listed entry will not be opened (a symlink that leaves the root).
    Keys hold bytes that are not UTF-8 as surrogates, as ``os.fsdecode`` does.
    """

    key: str
    bytes: int
    etag: str | None = None
    problem: str | None = None


class Get(Protocol):
    """Reads whole objects and parts of them."""

    def get(self, key: str) -> bytes:
        """The object's bytes. Raises ObjectNotFound, PermissionRefused or StoreError."""
        ...

    def get_range(self, key: str, offset: int, length: int) -> bytes:
        """``length`` bytes from ``offset``; fewer only where the object ends."""
        ...


@runtime_checkable
class GetTo(Protocol):
    """Reads whole objects without holding them; no store has to."""

    def get_to(self, key: str, file: BinaryIO) -> None:
        """Write the object's bytes to ``file``, which can be written anew from where it stands.

        Raises as ``get``, and OSError where ``file`` cannot be written.
        """
        ...


class Put(Protocol):
    """Writes whole objects."""

    def put(self, key: str, data: Buffer) -> ObjectInfo:
        """Store ``data`` so that it is there completely or not at all, and confirm it.

        The memory of ``data`` may hold something else as soon as this returns.

        Raises:
            StoredBytesDiffer: the store holds something else, after retries.
            StoreError: anything else that kept it from being stored.
        """
        ...


@runtime_checkable
class PutHashed(Protocol):
    """Sends the MD5 of what it writes, which callers can compute while they make it."""

    def put_hashed(self, key: str, data: Buffer, md5: bytes) -> ObjectInfo:
        """As ``put``, of ``data`` that has this MD5."""
        ...


class Create(Protocol):
    """Writes an object only if there is none."""

    def create(self, key: str, data: Buffer) -> bool:
        """Store ``data`` unless ``key`` exists; whether it was stored."""
        ...


class List(Protocol):
    """Lists keys."""

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """Every object whose key begins with ``prefix``, in no particular order."""
        ...


class Head(Protocol):
    """Asks for one object's size and ETag."""

    def head(self, key: str) -> ObjectInfo:
        """Raises ObjectNotFound where there is none."""
        ...


class Delete(Protocol):
    """Removes objects."""

    def delete(self, key: str) -> None:
        """Remove ``key``; nothing happens where there is none."""
        ...


class Versioned(NamedTuple):
    """Bytes as they were read, and of which version of the object; empty where that is unknown.

    Whatever is put under a key later has another version, or holds the same bytes.
    """

    data: bytes
    version: str


@runtime_checkable
class GetVersioned(Protocol):
    """Tells of which version of an object bytes are; no store has to.

    A data set is read by these where a store has them: whoever derives one from another store, and
    changes what ``get`` gives, changes this.
    """

    def get_versioned(self, key: str, offset: int = 0, length: int | None = None) -> Versioned:
        """As ``get``, or as ``get_range`` where a length is given, all bytes of one version."""
        ...

    def version(self, key: str) -> str:
        """Of the object that is there now. Raises ObjectNotFound where there is none."""
        ...


class Holder(NamedTuple):
    """Who holds a lease, as far as the store can tell.

    ``said`` is what the holder wrote down. ``stamp`` changes whenever it is renewed. The lease
    lapses ``left_s`` seconds from now unless that happens; None where it is held for as long as its
    holder lives, and no longer.
    """

    key: str
    said: str
    stamp: str
    left_s: float | None


class Lease(Protocol):
    """Held by this process until it is released, or lost."""

    def lost(self) -> str:
        """Why it is held no longer; empty as long as it is."""
        ...

    def release(self) -> None:
        """Let others have it. Nothing happens where it is lost."""
        ...


class Claim(Protocol):
    """A lease as those ask for it who work for its holder, in whatever process; it is pickled."""

    def lost(self) -> str:
        """Why it is held no longer; empty as long as it is, for a good while.

        Raises:
            StoreError: nobody can tell.
        """
        ...


@runtime_checkable
class Claimable(Protocol):
    """A lease of which others can find out whether it is still held; not every one is such.

    They ask before each object. A store whose library repeats requests asks again by
    ``stores.leave`` before each attempt.
    """

    def claim(self) -> Claim:
        """To be handed to who writes under this lease."""
        ...


@runtime_checkable
class KeepsLeases(Protocol):
    """Lends a name to one process at a time; no store has to.

    A process that is gone keeps nothing: what it held can be taken at once, or has lapsed after a
    while by the store's own time.
    """

    def lease(self, key: str, said: str) -> Lease | Holder | None:
        """The lease ``key``, with which ``said`` is kept for others to read; or who holds it.

        None where it turns out that nobody can be kept out here.
        """
        ...

    def holders(self, prefix: str) -> Iterator[Holder]:
        """Of every lease whose key begins with ``prefix``, this process's own among them."""
        ...


@runtime_checkable
class AbortsUploads(Protocol):
    """Keeps the parts of an object until its upload is completed or aborted; no store has to."""

    def abort_uploads(self, ours: Callable[[str], bool]) -> None:
        """Abort the uploads of the keys of which ``ours`` is true; only when nobody writes them.

        Nothing happens where that is not allowed.
        """
        ...


@runtime_checkable
class Close(Protocol):
    """Holds connections or files between requests; no store has to."""

    def close(self) -> None:
        """Let go of them. The store can still be used, and makes new ones then."""
        ...


@runtime_checkable
class Store(Get, Put, Create, List, Head, Delete, Protocol):
    """All capabilities, at one root: a directory, a bucket with a prefix, a name in memory."""

    @property
    def uri(self) -> str:
        """Where the root lies, without credentials."""
        ...

    def prepare(self) -> None:
        """Make sure that the root can be written to, quickly and before any work is done.

        Raises ObjectNotFound (no bucket), PermissionRefused, StoreUnreachable or StoreError.
        """
        ...

    def free_bytes(self) -> int | None:
        """Space left, where the store knows it."""
        ...

    def tidy(self) -> None:
        """Remove what interrupted writers left behind; only when nobody writes any more."""
        ...


def location(store: Store, key: str) -> str:
    """Where an object lies, in full."""
    return f"{store.uri.rstrip('/')}/{key}"
