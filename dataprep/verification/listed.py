"""What can be told of a shard without reading it: sizes, and ETags where the store has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dataprep import keys
from dataprep.manifest import Receipt, ShardEntry, StoredFile
from dataprep.stores import Store
from dataprep.verification.faults import Depth, Fault


def quick_faults(
    store: Store,
    receipt: Receipt,
    sizes: Mapping[str, int],
    entries: Mapping[str, ShardEntry],
    depth: Depth,
) -> Iterator[Fault]:
    """Sizes as listed, and the ETag where the store has one.

    ``entries`` is what the manifest says of shards by key; it can tell who of two is wrong.
    Of what is read anyway only the size of the shard is looked at.
    """
    for stored in receipt.formats.values():
        for file in (stored.file, *stored.indexes):
            size = sizes.get(file.key)
            entry = entries.get(file.key)
            if size is None:
                yield Fault(file.key, "missing", remedy="")
            elif file is not stored.file and depth != "quick":
                continue
            elif size != file.bytes and entry is not None and entry.bytes == size:
                what = f"says that {file.key} has {file.bytes:,} bytes, it has {size:,}"
                yield Fault(receipt_key(receipt), what, remedy="")
            elif size != file.bytes:
                what = f"has {size:,} bytes, the receipt says {file.bytes:,}"
                yield Fault(file.key, what, remedy="")
            elif depth == "quick" and (etag := other_etag(store, file)):
                what = f"ETag is {etag}, the receipt says {file.etag}"
                yield Fault(file.key, what, remedy="")


def other_etag(store: Store, file: StoredFile) -> str | None:
    """The store's ETag where it is not the receipt's."""
    etag = store.head(file.key).etag if file.etag else None
    return etag if etag != file.etag else None


def receipt_key(receipt: Receipt) -> str:
    """Where it lies."""
    return keys.receipt(receipt.split, receipt.shard, receipt.shards)
