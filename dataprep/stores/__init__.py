"""Bytes by key: a directory, S3, memory, and the stores that other packages register."""

from __future__ import annotations

import os
from typing import Any, cast

from dataprep.credentials import check_no_credentials
from dataprep.errors import ConfigError
from dataprep.registry import Registry
from dataprep.stores.options import StoreOptions
from dataprep.stores.protocol import Buffer, ObjectInfo, Store, location

__all__ = [
    "STORES",
    "Buffer",
    "ObjectInfo",
    "Store",
    "StoreOptions",
    "location",
    "open_store",
]

STORES: Registry[Store] = Registry("dataprep.stores", "store")


def open_store(uri: str | os.PathLike[str], options: StoreOptions | None = None) -> Store:
    """Return the store at ``uri``: a path, ``file://``, ``s3://bucket/prefix``, ``memory://name``.

    Schemes resolve through the entry-point group ``dataprep.stores``.

    Raises:
        ConfigError: no store is registered for the scheme, the address is nearly one of a scheme
            (``s3:/bucket``), or it carries credentials.
    """
    uri = os.fspath(uri)
    try:
        check_no_credentials(uri)
    except ValueError as error:
        raise ConfigError(f"an address {error}") from None
    scheme, colon, rest = uri.partition(":")
    if not rest.startswith("//"):
        if colon and STORES.has(scheme):
            raise ConfigError(
                f"{uri!r}: write {scheme}://..., or ./{uri} for a folder of that name"
            )
        scheme = "file"
    # A store's class takes an address and options, which its Protocol does not say.
    return cast(Any, STORES.load(scheme))(uri, options)  # type: ignore[no-any-return]
