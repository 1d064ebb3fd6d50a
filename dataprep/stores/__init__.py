"""Bytes by key: a directory, S3, memory, and whatever another package registers."""

from __future__ import annotations

import os
from importlib.metadata import entry_points
from typing import cast

from dataprep.errors import ConfigError
from dataprep.stores.options import StoreOptions
from dataprep.stores.protocol import Buffer, ObjectInfo, Store

__all__ = ["Buffer", "ObjectInfo", "Store", "StoreOptions", "open_store"]


def open_store(uri: str | os.PathLike[str], options: StoreOptions | None = None) -> Store:
    """The store at ``uri``: a path, ``file://``, ``s3://bucket/prefix``, ``memory://name``.

    Schemes resolve through the entry-point group ``dataprep.stores``.

    Raises:
        ConfigError: no store is registered for the scheme.
    """
    uri = os.fspath(uri)
    scheme, colon, _ = uri.partition("://")
    if not colon:
        scheme = "file"
    known = entry_points(group="dataprep.stores")
    if scheme not in known.names:
        raise ConfigError(
            f"{uri!r}: no store for {scheme!r}: use a path or one of "
            + ", ".join(f"{name}://" for name in sorted(known.names))
        )
    return cast(Store, known[scheme].load()(uri, options))
