"""Mode ``file``: what a loader needs of a place, copied to a folder by several connections."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from dataprep import keys
from dataprep.dataset import Dataset
from dataprep.errors import PermissionRefused
from dataprep.ordered import in_order
from dataprep.stores import ObjectInfo, Store, open_store
from dataprep.stores.protocol import Close, GetTo
from iobench.errors import Unavailable
from iobench.stored import open_shards
from iobench.trial import Place

_BLOCK_BYTES = 4096  # a file takes whole ones


def downloaded(place: Place, reads: str, folder: Path, connections: int) -> Place:
    """The same data in ``folder``, which exists.

    Of shards those of the format ``reads`` and their tables, of files all.

    Raises:
        Unavailable: they have no room there; nothing is copied.
        DatasetChanged: the shards were made anew meanwhile.
        StoreError: an object cannot be had.
        OSError: it cannot be written.
    """
    store = open_store(place.uri, place.store)
    dataset = open_shards(place, reads) if place.holds == "shards" else None
    try:
        with dataset.snapshot.unchanged() if dataset else nullcontext():
            wanted = _wanted(store, dataset)
            _require_room(wanted, folder)
            with_all = in_order(lambda info: _copy(store, info.key, folder), wanted, connections)
            for _ in with_all:
                pass
    finally:
        if isinstance(store, Close):
            store.close()
        if dataset:
            dataset.close()
    return replace(place, uri=str(folder))


def occupied_bytes(folder: Path) -> int:
    """Of the disk, by all files below ``folder``: their blocks, not their sizes."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return sum(path.stat().st_blocks * 512 for path in files)


def _wanted(store: Store, dataset: Dataset | None) -> Sequence[ObjectInfo]:
    listed = [info for info in store.list() if info.problem is None]
    if dataset is None:
        return listed
    shards = {shard.key for shard in dataset.shards()}
    tables = {keys.LABELS, keys.manifest(dataset.split), keys.samples(dataset.split)}
    return [info for info in listed if info.key in shards | tables]


def _require_room(wanted: Sequence[ObjectInfo], folder: Path) -> None:
    needed = sum(-(-info.bytes // _BLOCK_BYTES) * _BLOCK_BYTES for info in wanted)
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise Unavailable(
            f"access file needs {needed / 1e6:,.1f} MB on the disk of the run's folder, which has "
            f"{free / 1e6:,.1f} MB free: choose an --output on a larger one, or another access"
        )


def _copy(store: Store, key: str, folder: Path) -> None:
    path = folder / key
    if not path.resolve().is_relative_to(folder.resolve()):
        raise PermissionRefused(f"refused: {key!r} would leave {str(folder)!r}")
    path.parent.mkdir(parents=True, exist_ok=True)
    if not isinstance(store, GetTo):
        path.write_bytes(store.get(key))
        return
    with path.open("wb") as file:  # as it comes: whole shards on many connections are much memory
        store.get_to(key, file)
