"""Reads of a source, their errors told as those of a sample or of the job."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from dataprep.errors import ObjectNotFound, PermissionRefused, SourceChanged, UnreadableImage
from dataprep.stores import Store
from dataprep.stores.local import LocalStore


def read_file(store: Store, key: str, where: str) -> bytes:
    """The bytes of ``key``; ``where`` is the source's address. Raises what ``reading`` does."""
    with reading(store, key, where):
        return store.get(key)


@contextlib.contextmanager
def reading(store: Store, key: str, where: str) -> Iterator[None]:
    """Reads of ``key`` in the source at ``where``.

    Raises:
        UnreadableImage: this one file on a disk may not be read.
        SourceChanged: it is gone since it was listed.
        StoreError: it could not be read this time.
    """
    try:
        yield
    except (ObjectNotFound, PermissionRefused) as error:
        raise read_error(error, store, key, where) from None


def read_error(
    error: ObjectNotFound | PermissionRefused, store: Store, key: str, where: str
) -> Exception:
    """An error of a store as that of the sample or the source."""
    if isinstance(error, ObjectNotFound):
        return SourceChanged(
            f"{key!r} is gone from {where} since it was listed: restore it, or start "
            "anew with --overwrite"
        )
    if isinstance(store, LocalStore):
        return UnreadableImage(str(error))
    return error  # an expired token refuses everything: that is no property of a sample
