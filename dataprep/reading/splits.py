"""Find the splits of an output, and open one of them."""

from __future__ import annotations

from dataprep.errors import ManifestMissing, ObjectNotFound, StoreError
from dataprep.output import keys
from dataprep.output.manifest import Manifest
from dataprep.output.snapshot import Snapshot
from dataprep.stores import Store

_NO_DATA_SET = "dataprep has stored nothing there"


def open_split(store: Store, split: str) -> tuple[Manifest, Snapshot]:
    """Return the manifest of a complete split, and a snapshot of its objects.

    Args:
        store: the store that contains the output.
        split: the name of the split.

    Raises:
        ManifestMissing: the split does not exist or is not complete. The message names the splits
            that exist, or says how many shards are finished.
        SchemaTooNew: a newer version of dataprep wrote the split.
        DatasetError: the manifest is damaged.
    """
    try:
        return Snapshot.open(store, split)
    except ObjectNotFound:
        raise ManifestMissing(
            f"no complete split {split!r} in {store.uri!r}: {why_missing(store, split)}"
        ) from None


def splits_in(store: Store) -> list[str]:
    """Return the names of the splits of an output, sorted. They need not be complete.

    Raises:
        ManifestMissing: the output has no split.
        StoreError: the store cannot be listed. The error's ``exit_code`` is 2, that of a wrong
            request.
    """
    try:
        object_keys = _object_keys(store)
    except StoreError as error:
        # The user named this store, and nothing was read from it before.
        error.exit_code = 2
        raise
    splits = sorted(keys.splits(object_keys))
    if not splits:
        raise ManifestMissing(f"no data set in {store.uri!r}: {_NO_DATA_SET}")
    return splits


def why_missing(store: Store, split: str) -> str:
    """Explain why a split has no manifest: it does not exist, or it is not finished."""
    object_keys = _object_keys(store)
    splits = sorted(keys.splits(object_keys))
    if split not in splits:
        if not splits:
            return _NO_DATA_SET
        return f"it has {' and '.join(repr(name) for name in splits)}"
    receipts = [key for key in object_keys if key.startswith(f"receipts/{split}-")]
    finished = "no"
    if receipts:
        # The key of each receipt ends with the number of all shards.
        shards = int(receipts[0].removesuffix(".json").rpartition("-")[2])
        finished = f"{len(receipts):,} of {shards:,}"
    return f"{finished} shards are finished; run the same dataprep shard again to resume"


def _object_keys(store: Store) -> list[str]:
    """Return the keys of all objects of a store. A store that does not exist has no objects."""
    try:
        return [info.key for info in store.list()]
    except ObjectNotFound:
        return []
