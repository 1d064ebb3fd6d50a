"""What a pass over shards found, kept between runs as long as the shards are the same.

A file a source; one that is stale or cannot be read counts as missing. Shards count as the same
by key, size, and time of change or ETag.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

from dataprep.cache_folder import CacheFolder
from dataprep.sources.record_classes import Scanned, as_name
from dataprep.sources.record_content import Fields
from dataprep.stores import ObjectInfo, Store
from dataprep.stores.local import LocalStore

SCHEMA = 2
KEPT_FROM_BYTES = 256 * 2**20
"""Smaller sources are gone through again sooner than anybody notices."""

_BROKEN = (OSError, pa.ArrowException, ValueError, LookupError, TypeError, AttributeError)
_COLUMNS = {
    "shard": pa.int32(),
    **dict.fromkeys(("number", "offset", "bytes"), pa.int64()),
    "labels": pa.list_(pa.float64()),
    **dict.fromkeys(("synset", "text", "filename"), pa.large_binary()),
    "problem": pa.string(),
    "boxes": pa.int32(),
}
_TEXTS = ("synset", "text", "filename")
_NUMBERS = ("number", "offset", "bytes")


class ScanCache:
    """A folder of what was found. Where it cannot be written to, nothing is kept."""

    def __init__(self, folder: str | None = None) -> None:
        self._files = CacheFolder(folder)

    def find(
        self, store: Store, shards: Sequence[ObjectInfo], fields: Fields
    ) -> list[Scanned] | None:
        """The records of these very shards, if they are kept."""
        try:
            table = pq.read_table(self._files.path / _name(store, shards))
            if table.schema.metadata[b"shards"].decode() != _identity(store, shards, fields):
                return None
            if any(
                table[name].type != kind or table[name].null_count
                for name, kind in _COLUMNS.items()
            ):
                return None
            if pa.compute.list_flatten(table["labels"]).null_count:
                return None
            columns = [table[name].to_pylist() for name in _NUMBERS]
            keys = [shards[number].key for number in table["shard"].to_pylist()]
            labels = map(tuple, table["labels"].to_pylist())
            texts = [map(as_name, table[name].to_pylist()) for name in _TEXTS]
            last = [table[name].to_pylist() for name in ("problem", "boxes")]
            rows = zip(keys, *columns, labels, *texts, *last, strict=True)
            found = [Scanned(*row) for row in rows]
            return found if all(min(one.offset, one.bytes) >= 0 for one in found) else None
        except _BROKEN:
            return None

    def keep(
        self,
        store: Store,
        shards: Sequence[ObjectInfo],
        fields: Fields,
        records: Sequence[Scanned],
    ) -> None:
        """Keep what a pass found, if the shards are large enough for that to matter."""
        if sum(shard.bytes for shard in shards) < KEPT_FROM_BYTES:
            return
        numbers = {shard.key: number for number, shard in enumerate(shards)}
        table = pa.table(
            {
                "shard": pa.array([numbers[record.shard] for record in records], pa.int32()),
                **{
                    name: pa.array([getattr(record, name) for record in records], pa.int64())
                    for name in _NUMBERS
                },
                "labels": pa.array([record.labels for record in records], pa.list_(pa.float64())),
                **{
                    name: pa.array(
                        [os.fsencode(getattr(record, name)) for record in records],
                        pa.large_binary(),
                    )
                    for name in _TEXTS
                },
                "problem": pa.array([record.problem for record in records], pa.string()),
                "boxes": pa.array([record.boxes for record in records], pa.int32()),
            }
        )
        try:
            identity = _identity(store, shards, fields)
        except OSError:
            return
        table = table.replace_schema_metadata({"shards": identity})
        self._files.keep(
            _name(store, shards), lambda file: pq.write_table(table, file, compression="zstd")
        )


def _name(store: Store, shards: Sequence[ObjectInfo]) -> str:
    place = f"{_uri(store)}\0{shards[0].key}"
    return f"records-{hashlib.sha256(os.fsencode(place)).hexdigest()[:32]}.parquet"


def _identity(store: Store, shards: Sequence[ObjectInfo], fields: Fields) -> str:
    stamps = [
        [os.fsencode(shard.key).hex(), shard.bytes, _version(store, shard)] for shard in shards
    ]
    return json.dumps([SCHEMA, os.fsencode(_uri(store)).hex(), sorted(fields.items()), stamps])


def _uri(store: Store) -> str:
    return os.fspath(store.root.resolve()) if isinstance(store, LocalStore) else store.uri


def _version(store: Store, shard: ObjectInfo) -> str:
    if isinstance(store, LocalStore):
        return str((store.root / shard.key).stat().st_mtime_ns)
    return shard.etag or ""
