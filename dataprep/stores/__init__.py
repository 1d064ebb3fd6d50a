"""Bytes by key: a directory, S3, memory, and whatever another package registers."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import Any, cast

from dataprep.credentials import check_no_credentials
from dataprep.errors import ConfigError
from dataprep.registry import Registry
from dataprep.stores.options import StoreOptions
from dataprep.stores.protocol import Buffer, ObjectInfo, PutHashed, Store

__all__ = ["STORES", "Buffer", "ObjectInfo", "PutHashed", "Store", "StoreOptions", "open_store"]

STORES: Registry[Store] = Registry("dataprep.stores", "store")


def open_store(uri: str | os.PathLike[str], options: StoreOptions | None = None) -> Store:
    """The store at ``uri``: a path, ``file://``, ``s3://bucket/prefix``, ``memory://name``.

    Schemes resolve through the entry-point group ``dataprep.stores``.

    Raises:
        ConfigError: no store is registered for the scheme, it is not written as one, or it carries
            credentials.
    """
    uri = os.fspath(uri)
    try:
        check_no_credentials(uri)
    except ValueError as error:
        raise ConfigError(f"an address {error}") from None
    _refuse_slips(uri, STORES.names())
    scheme, colon, _ = uri.partition("://")
    if not colon:
        scheme = "file"
    if not STORES.has(scheme):
        raise ConfigError(
            f"{uri!r}: no store for {scheme!r}: use a path or one of "
            + ", ".join(f"{name}://" for name in STORES.names())
        )
    # A store's class takes an address and options, which its Protocol does not say.
    return cast(Any, STORES.load(scheme))(uri, options)  # type: ignore[no-any-return]


def _refuse_slips(uri: str, schemes: Collection[str]) -> None:
    """``s3:/bucket`` and ``S3://bucket`` would be folders of that name, or of no store."""
    scheme, colon, rest = uri.partition(":")
    if not colon or scheme.lower() not in schemes:
        return
    if scheme != scheme.lower() or not rest.startswith("//"):
        slashes = "///" if scheme.lower() == "file" else "//"
        meant = f"{scheme.lower()}:{slashes}{rest.lstrip('/')}"
        folder = "" if rest.startswith("//") else f" A folder of that name is written ./{uri}"
        raise ConfigError(f"{uri!r}: did you mean {meant!r}?{folder}")
