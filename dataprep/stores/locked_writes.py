"""Write objects under a lock, so that no run overwrites an object of another run.

A run can lose its lock while one of its tasks continues, for instance on a machine that was asleep.
Therefore a task first checks the lock, and then tries to create the object. If the object exists,
the task reads its version, checks the lock again, and replaces only this version. If another run
writes in between, the version has changed and nothing is replaced.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from dataprep.errors import ObjectNotFound, StoreError
from dataprep.stores.protocol import Buffer, KeepsLocks, ObjectInfo, Store, Upload, Uploads

LockCheck = Callable[[], None]
"""A function that returns as long as the run has its lock, and raises LeaseLost afterwards."""

_MAX_ATTEMPTS = 5
"""How often an object is written if another program changes it at the same time."""

_COMPARED_PIECE_BYTES = 8 * 2**20


def no_lock() -> None:
    """Allow every write, because there is no lock."""


def put_under_lock(
    store: Store, key: str, data: Buffer, check_lock: LockCheck, md5: bytes | None = None
) -> ObjectInfo:
    """Create an object, or replace the stored object if its bytes differ.

    A stored object with the same bytes stays as it is.

    A store without ``KeepsLocks`` cannot replace a particular version of an object. It overwrites
    whatever version is stored.

    Args:
        store: the output.
        key: the key of the object.
        data: the bytes of the object.
        check_lock: called before each write; raises LeaseLost if the run has lost its lock.
        md5: the MD5 of ``data`` if the caller knows it; None to compute it if it is needed.

    Returns:
        The size and ETag of the stored object.

    Raises:
        LeaseLost: raised by ``check_lock``; nothing is stored afterwards.
        StoreError: the object could not be stored, or another program changed it again and again.
    """
    upload = Upload(key, data, md5, check_lock)
    for _ in range(_MAX_ATTEMPTS):
        check_lock()
        created = _create(store, upload)
        if created is not None:
            return created
        with suppress(ObjectNotFound):  # the object was removed after ``_create``
            version = store.version(key) if isinstance(store, KeepsLocks) else ""
            if _is_stored(store, upload):
                return store.head(key)
            check_lock()
            replaced = _replace(store, upload, version)
            if replaced is not None:
                return replaced
    raise StoreError(
        f"{store.uri}: another program changed {key} several times while this run wrote it. End "
        "the other program, then run the same command again"
    )


def version_of(store: Store, key: str) -> str:
    """Return the version of an object; empty if it does not exist, or without ``KeepsLocks``."""
    if not isinstance(store, KeepsLocks):
        return ""
    try:
        return store.version(key)
    except ObjectNotFound:
        return ""


def _create(store: Store, upload: Upload) -> ObjectInfo | None:
    """Create the object. Return None if it exists already."""
    if isinstance(store, Uploads):
        return store.create_upload(upload)
    if not store.create(upload.key, upload.data):
        return None
    return store.head(upload.key)


def _replace(store: Store, upload: Upload, version: str) -> ObjectInfo | None:
    """Replace the object. Return None if the store now has another version of it."""
    if isinstance(store, Uploads):
        return store.replace_upload(upload, version)
    if not isinstance(store, KeepsLocks):
        return store.put(upload.key, upload.data)
    if not store.replace(upload.key, upload.data, version):
        return None
    return store.head(upload.key)


def _is_stored(store: Store, upload: Upload) -> bool:
    """Whether the store already holds the same bytes.

    The size and the ETag are compared first. If the ETag is not the MD5 of the bytes, the object is
    read in pieces, to save memory.
    """
    info = store.head(upload.key)
    if info.bytes != len(upload.data):
        return False
    if info.etag and info.etag == upload.md5.hex():
        return True
    for start in range(0, len(upload.data), _COMPARED_PIECE_BYTES):
        piece = upload.data[start : start + _COMPARED_PIECE_BYTES]
        if store.get_range(upload.key, start, len(piece)) != piece:
            return False
    return True
