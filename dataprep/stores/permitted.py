"""Writes of a run that has a lock: no object of another run is overwritten.

A run can lose its lock while a task of it goes on, for instance on a machine that slept. So the
task asks for the lock, then creates the object, which fails if there is one. It replaces an object
only in the version that was there before it asked again.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from dataprep.errors import ObjectNotFound, StoreError
from dataprep.stores.protocol import Buffer, KeepsLocks, ObjectInfo, Store, Upload, Uploads

Permitted = Callable[[], None]
"""Returns while the run has its lock, and raises LeaseLost once another run has taken over."""

_ROUNDS = 5
_COMPARED_AT_ONCE_BYTES = 8 * 2**20


def always_permitted() -> None:
    """Permit every write: there is no lock."""


def put_while_permitted(
    store: Store, key: str, data: Buffer, permit: Permitted, md5: bytes | None = None
) -> ObjectInfo:
    """Create an object, or replace the one that is there if its bytes are others.

    ``md5`` is that of ``data``, where the caller knows it. A store that cannot replace a certain
    version of an object (``KeepsLocks``) overwrites whatever is there.

    Raises:
        LeaseLost: by ``permit``; nothing was stored after it.
        StoreError: the object could not be stored.
    """
    upload = Upload(key, data, md5, permit)
    for _ in range(_ROUNDS):
        permit()
        if (created := _created(store, upload)) is not None:
            return created
        with suppress(ObjectNotFound):  # removed meanwhile
            version = store.version(key) if isinstance(store, KeepsLocks) else ""
            if _is_stored(store, upload):
                return store.head(key)
            permit()
            if (replaced := _replaced(store, upload, version)) is not None:
                return replaced
    raise StoreError(
        f"{store.uri}: {key} was changed by somebody else again and again while this run wrote it: "
        "end what else writes there, then run the same command again"
    )


def _created(store: Store, upload: Upload) -> ObjectInfo | None:
    if isinstance(store, Uploads):
        return store.create_upload(upload)
    return store.head(upload.key) if store.create(upload.key, upload.data) else None


def _replaced(store: Store, upload: Upload, version: str) -> ObjectInfo | None:
    if isinstance(store, Uploads):
        return store.replace_upload(upload, version)
    if not isinstance(store, KeepsLocks):
        return store.put(upload.key, upload.data)
    if not store.replace(upload.key, upload.data, version):
        return None
    return store.head(upload.key)


def _is_stored(store: Store, upload: Upload) -> bool:
    """Whether the store holds these very bytes. A large object is read in pieces."""
    info = store.head(upload.key)
    if info.bytes != len(upload.data):
        return False
    if info.etag and info.etag == upload.md5.hex():
        return True
    for start in range(0, len(upload.data), _COMPARED_AT_ONCE_BYTES):
        piece = upload.data[start : start + _COMPARED_AT_ONCE_BYTES]
        if store.get_range(upload.key, start, len(piece)) != piece:
            return False
    return True
