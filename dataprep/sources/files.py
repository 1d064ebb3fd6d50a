"""One file of a source by its key, its errors told as those of a sample or of the job."""

from __future__ import annotations

from dataprep.errors import ObjectNotFound, PermissionRefused, SourceChanged, UnreadableImage
from dataprep.stores import Store
from dataprep.stores.local import LocalStore


def read_file(store: Store, key: str, where: str) -> bytes:
    """The bytes of ``key``; ``where`` is the source's address, for errors.

    Raises:
        UnreadableImage: this one file on a disk may not be read.
        SourceChanged: it is gone since it was listed.
        StoreError: it could not be read this time.
    """
    try:
        return store.get(key)
    except ObjectNotFound:
        raise SourceChanged(
            f"{key!r} is gone from {where} since it was listed: restore it, or start "
            "anew with --overwrite"
        ) from None
    except PermissionRefused as error:
        if not isinstance(store, LocalStore):
            raise  # an expired token refuses everything: that is no property of a sample
        raise UnreadableImage(str(error)) from None
