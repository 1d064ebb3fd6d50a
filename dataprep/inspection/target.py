"""What is to be inspected: an output, or one object with records."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from dataprep import keys
from dataprep.errors import DataprepError, ManifestMissing, ObjectNotFound, PermissionRefused
from dataprep.formats import format_names, get_format
from dataprep.manifest import Receipt, Row
from dataprep.stores import ObjectInfo, Store, StoreOptions, open_store

_NUMBERED = re.compile(r"(?P<split>.+)-(?P<shard>\d{5,})-of-(?P<shards>\d{5,})")


@dataclass(frozen=True)
class ShardTarget:
    """An object with records. ``receipt`` is there where it lies in an output of ours."""

    store: Store
    info: ObjectInfo
    format: str | None = None
    receipt: Receipt | None = None

    @property
    def uri(self) -> str:
        """Where it lies."""
        return f"{self.store.uri.rstrip('/')}/{self.info.key}"

    @property
    def rows(self) -> list[Row]:
        """The receipt's rows of the samples that are in it, in the order of the records."""
        rows = self.receipt.rows if self.receipt else ()
        return [row for row in rows if self.format in (row.records or {})]


@dataclass(frozen=True)
class OutputTarget:
    """An output."""

    store: Store


def find_target(
    uri: str | os.PathLike[str], options: StoreOptions | None = None
) -> OutputTarget | ShardTarget:
    """What lies at a path or URI: a file is a shard, anything else an output.

    One HEAD request, and a receipt if the shard is one of ours.

    Raises:
        StoreError: the store cannot be reached.
    """
    uri = os.fspath(uri)
    if "://" not in uri:
        uri = os.path.abspath(uri)  # noqa: PTH100  as text, links not followed
    parts = uri.rstrip("/").rsplit("/", 2)
    for base, key in (("/".join(parts[:i]), "/".join(parts[i:])) for i in range(1, len(parts))):
        if base.endswith((":/", ":")) or not base:
            continue
        try:
            store = open_store(base, options)
            info = store.head(key)
        except (ObjectNotFound, PermissionRefused):
            continue
        return _shard(store, info)
    return OutputTarget(open_store(uri, options))


def _shard(store: Store, info: ObjectInfo) -> ShardTarget:
    folder, _, name = info.key.partition("/")
    if folder not in format_names():
        return ShardTarget(store, info)
    stem = name.removesuffix(get_format(folder).extension)
    match = _NUMBERED.fullmatch(stem)
    if match is None:
        return ShardTarget(store, info)
    key = keys.receipt(match["split"], int(match["shard"]), int(match["shards"]))
    try:
        receipt = Receipt.from_json(store.get(key), key)
    except (DataprepError, ValueError):
        return ShardTarget(store, info)
    if folder not in receipt.formats or receipt.formats[folder].file.key != info.key:
        return ShardTarget(store, info)
    return ShardTarget(store, info, folder, receipt)


def splits_of(store: Store) -> list[str]:
    """The splits of an output, complete or not, by name.

    Raises:
        ManifestMissing: there are none; it says what is there instead.
    """
    try:
        found = {info.key for info in store.list()}
    except ObjectNotFound:
        found = set()
    splits = sorted(keys.splits(found))
    if splits:
        return splits
    instead = f"it has {len(found):,} other objects" if found else "there is nothing"
    example = f", such as {min(found)!r}: name one to look into it" if found else ""
    raise ManifestMissing(f"no data set in {store.uri!r}: {instead}{example}")
