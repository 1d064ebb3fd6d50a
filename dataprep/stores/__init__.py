"""Stores, which keep objects by key: a folder, S3, memory, and stores of other packages."""

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
    """Return the store at an address.

    Args:
        uri: a path, ``file:///path``, ``s3://bucket/prefix`` or ``memory://name``. Other packages
            register further schemes in the entry-point group ``dataprep.stores``.
        options: the endpoint, the profile and other options.

    Raises:
        ConfigError: no store is registered for the scheme; or the address has too few slashes after
            the scheme (``s3:/bucket``), contains credentials, or is not valid for its scheme
            (``s3://`` without a bucket).
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
    # The class of a store takes an address and options, which the Protocol cannot express.
    store_class = cast(Any, STORES.load(scheme))
    return store_class(uri, options)  # type: ignore[no-any-return]
