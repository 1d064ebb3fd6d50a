"""Copy data between a disk and a store: side by side, in pieces, after a look at the free space."""

from __future__ import annotations

import contextlib
import mmap
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import BinaryIO

from dataprep import keys
from dataprep.dataset import Dataset
from dataprep.errors import DatasetError, PermissionRefused
from dataprep.ordered import in_order
from dataprep.stores import ObjectInfo, Store, location, open_store
from dataprep.stores.protocol import Close, GetTo
from iobench.trial import Place

AT_ONCE = 8
"""Objects that are copied, or files that are written, at the same time."""

_BLOCK_BYTES = 4096
_PIECE_BYTES = 8 * 2**20


@dataclass(frozen=True, slots=True)
class Part:
    """The part of the data at a place that trials read.

    Attributes:
        formats: the record formats of shards; None for every object, as of class folders.
        indexes: whether the index files of these shards belong to it.
    """

    formats: Collection[str] | None = None
    indexes: bool = True

    def of(self, dataset: Dataset) -> Part:
        """The same part of a data set: its default format by name, formats that it lacks left out.

        ``dataset`` was opened without naming a format.
        """
        if self.formats is None:
            return self
        named = {name or dataset.format for name in self.formats}
        return replace(self, formats=named & dataset.manifest.formats.keys())

    def contains(self, key: str, split: str) -> bool:
        """Whether an object of an output belongs to this part."""
        if self.formats is None:
            return True
        tables = {keys.LABELS, keys.manifest(split), keys.samples(split)}
        folder = key.rpartition("/")[0]
        is_index = folder.startswith("index/")
        if folder.removeprefix("index/") not in self.formats or (is_index and not self.indexes):
            return key in tables
        return keys.belongs_to(split, key, self.formats)


def copy(
    source: Place,
    target: Place,
    part: Part,
    *,
    at_once: int = AT_ONCE,
    require_room: Callable[[int], None],
) -> None:
    """Copy a part of the data at a place, without the objects that are there with the same size.

    A file appears under its name when it is complete. Memory holds some pieces of objects, none
    whole. Class folders are copied whole. Either ``source`` or ``target`` is a folder on a disk.

    Args:
        source: where the data are.
        target: where they go, such as a folder.
        part: the objects to copy.
        at_once: number of objects that are copied at the same time.
        require_room: called before the first object with the bytes that all of them take on a disk;
            raises if there is too little room.

    Raises:
        DatasetChanged: the shards were made anew meanwhile.
        PermissionRefused: a key would leave the folder.
        StoreError: an object cannot be read or written.
        OSError: a file cannot be written.
    """
    with contextlib.ExitStack() as stack:
        origin = stack.enter_context(_opened(source))
        if source.holds == "shards":
            dataset = Dataset(origin, source.split)
            stack.enter_context(dataset.snapshot.unchanged())
            part = part.of(dataset)
        else:
            part = Part()
        dest = stack.enter_context(_opened(target))
        dest.prepare()
        there = {info.key: info.bytes for info in dest.list()}
        missing = [
            info
            for info in origin.list()
            if info.problem is None
            and part.contains(info.key, source.split)
            and there.get(info.key) != info.bytes
        ]
        require_room(sum(-(-info.bytes // _BLOCK_BYTES) * _BLOCK_BYTES for info in missing))
        if target.is_remote:
            copy_one = partial(_upload, Path(source.uri), dest)
        else:
            copy_one = partial(_download, origin, Path(target.uri))
        for _ in in_order(copy_one, missing, at_once):
            pass


@contextlib.contextmanager
def _opened(place: Place) -> Iterator[Store]:
    store = open_store(place.uri, place.store)
    try:
        yield store
    finally:
        if isinstance(store, Close):
            store.close()


def _download(origin: Store, folder: Path, info: ObjectInfo) -> None:
    """Write an object to a file below a folder as its pieces come."""
    path = folder / info.key
    if not path.resolve().is_relative_to(folder.resolve()):
        raise PermissionRefused(f"refused: {info.key!r} would leave {str(folder)!r}")
    path.parent.mkdir(parents=True, exist_ok=True)
    partial_file = path.with_name(f"{path.name}.partial")
    with partial_file.open("wb") as file:
        if isinstance(origin, GetTo):
            origin.get_to(info.key, file)
        else:
            _get_pieces(origin, info, file)
    written = partial_file.stat().st_size
    if written != info.bytes:
        raise DatasetError(
            f"{location(origin, info.key)}: {written:,} of {info.bytes:,} bytes arrived: it was "
            "written anew meanwhile, or is damaged: run again"
        )
    partial_file.replace(path)


def _get_pieces(origin: Store, info: ObjectInfo, file: BinaryIO) -> None:
    for start in range(0, info.bytes, _PIECE_BYTES):
        length = min(_PIECE_BYTES, info.bytes - start)
        file.write(origin.get_range(info.key, start, length))


def _upload(folder: Path, dest: Store, info: ObjectInfo) -> None:
    """Put a file to a store; it is mapped, so that no memory but the page cache holds it."""
    if not info.bytes:
        dest.put(info.key, b"")
        return
    with (folder / info.key).open("rb") as file:
        # Not closed here: what sent it may still refer to it. It ends with the last reference.
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    dest.put(info.key, memoryview(mapped))
