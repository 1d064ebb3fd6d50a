"""Copy data between a disk and a store.

This is the only module that copies data sets. It checks the free space first, copies objects at
the same time, and moves them in pieces.
"""

from __future__ import annotations

import contextlib
import mmap
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import BinaryIO

from dataprep.errors import DatasetError, PermissionRefused, StoreFull
from dataprep.output import keys
from dataprep.reading.dataset import Dataset
from dataprep.stores import ObjectInfo, Store, open_store
from dataprep.stores import location as location_text
from dataprep.stores.protocol import Close, GetTo
from dataprep.threaded_map import in_order
from iobench.results.numbers import size
from iobench.results.trial import Location

AT_ONCE = 8
"""Objects that are copied, or files that are written, at the same time."""

_DISK_BLOCK_BYTES = 4096
"""The usual size of the blocks that file systems allocate."""

_PIECE_BYTES = 8 * 2**20
"""Bytes of a ranged read while an object is copied. A copy needs this much memory."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The objects of a data set that trials read: shards, index files and tables.

    Attributes:
        formats: the record formats of the shards; None for all objects of the location, also of
            class folders. An empty text among them stands for the default format of the data set.
        indexes: whether the index files of these shards are read.
    """

    formats: Collection[str] | None = None
    indexes: bool = True

    def in_dataset(self, dataset: Dataset) -> Selection:
        """Return the same selection for a data set: with the names of formats that it has.

        The empty text is replaced by the default format, and other formats are left out.

        Args:
            dataset: a data set that was opened without naming a format.
        """
        if self.formats is None:
            return self
        names = {name or dataset.format for name in self.formats}
        return replace(self, formats=names & dataset.manifest.formats.keys())

    def contains(self, key: str, split: str) -> bool:
        """Return whether an object is selected.

        Args:
            key: the key of the object below the location of the data set.
            split: the split that trials read.
        """
        if self.formats is None:
            return True
        tables = {keys.LABELS, keys.manifest(split), keys.samples(split)}
        folder = key.rpartition("/")[0]
        is_index = folder.startswith("index/")
        if folder.removeprefix("index/") not in self.formats or (is_index and not self.indexes):
            return key in tables
        return keys.belongs_to(split, key, self.formats)


def copy_data(
    source: Location,
    target: Location,
    selection: Selection,
    *,
    name: str,
    remedy: str,
    at_once: int = AT_ONCE,
) -> None:
    """Copy shards or class folders. Objects that exist already with the same size are not copied.

    A file gets its name when it is complete. Objects are copied in pieces, so that they need little
    memory. Class folders are copied completely, whatever is selected. If the target is on a store,
    the source must be a folder on a disk. If the target is a folder, the source may be either.

    Args:
        source: the location of the data.
        target: the location of the copy.
        selection: the objects to copy.
        name: what is copied, for a message about too little space.
        remedy: what to do about too little space, for that message.
        at_once: number of objects that are copied at the same time.

    Raises:
        StoreFull: the target has too little space; nothing is copied.
        DatasetChanged: the shards were made anew meanwhile.
        DatasetError: an object has another size than its listing says.
        PermissionRefused: a key would lead out of the folder.
        StoreError: an object cannot be read or written.
        OSError: a file cannot be written.
    """
    with contextlib.ExitStack() as stack:
        source_store = stack.enter_context(_opened_store(source))
        if source.holds == "shards":
            dataset = Dataset(source_store, source.split)
            stack.enter_context(dataset.snapshot.unchanged())
            selection = selection.in_dataset(dataset)
        else:
            selection = Selection()
        target_store = stack.enter_context(_opened_store(target))
        target_store.prepare()
        existing_sizes = {info.key: info.bytes for info in target_store.list()}
        missing = []
        for info in source_store.list():
            is_selected = info.problem is None and selection.contains(info.key, source.split)
            if is_selected and existing_sizes.get(info.key) != info.bytes:
                missing.append(info)
        require_space(target, name, disk_bytes(info.bytes for info in missing), remedy)
        copy_object: Callable[[ObjectInfo], None]
        if target.is_remote:
            copy_object = partial(_upload, Path(source.uri), target_store)
        else:
            copy_object = partial(_download, source_store, Path(target.uri))
        for _ in in_order(copy_object, missing, at_once):
            pass


def disk_bytes(sizes: Iterable[int]) -> int:
    """Return the space that files of these sizes take on a disk, in whole blocks."""
    blocks = sum(-(-size_bytes // _DISK_BLOCK_BYTES) for size_bytes in sizes)
    return blocks * _DISK_BLOCK_BYTES


def require_space(target: Location, name: str, needed_bytes: int, remedy: str) -> None:
    """Check that a location has the space that is needed.

    A store that does not report its free space, such as S3, is assumed to have enough.

    Args:
        target: where the data will be written.
        name: what will be written, for the message.
        needed_bytes: the space that it takes.
        remedy: what to do about too little space, for the message.

    Raises:
        StoreFull: there is too little space.
    """
    free_bytes = open_store(target.uri, target.store).free_bytes()
    if free_bytes is not None and needed_bytes > free_bytes:
        raise StoreFull(
            f"{name}: about {size(needed_bytes)} would be written to {target.uri}, where "
            f"{size(free_bytes)} are free: {remedy}"
        )


@contextlib.contextmanager
def _opened_store(location: Location) -> Iterator[Store]:
    """Open the store at a location, and close it after the block."""
    store = open_store(location.uri, location.store)
    try:
        yield store
    finally:
        if isinstance(store, Close):
            store.close()


def _download(source: Store, folder: Path, info: ObjectInfo) -> None:
    """Write an object to a file below a folder, piece by piece."""
    path = folder / info.key
    if not path.resolve().is_relative_to(folder.resolve()):
        raise PermissionRefused(f"refused: {info.key!r} would leave {str(folder)!r}")
    path.parent.mkdir(parents=True, exist_ok=True)
    partial_file = path.with_name(f"{path.name}.partial")
    with partial_file.open("wb") as file:
        if isinstance(source, GetTo):
            source.get_to(info.key, file)
        else:
            _get_pieces(source, info, file)
    written_bytes = partial_file.stat().st_size
    if written_bytes != info.bytes:
        raise DatasetError(
            f"{location_text(source, info.key)}: {written_bytes:,} of {info.bytes:,} bytes "
            "arrived: the object was replaced meanwhile, or is damaged: run again"
        )
    partial_file.replace(path)


def _get_pieces(source: Store, info: ObjectInfo, file: BinaryIO) -> None:
    """Write an object to an open file, by ranged reads."""
    for start in range(0, info.bytes, _PIECE_BYTES):
        length = min(_PIECE_BYTES, info.bytes - start)
        file.write(source.get_range(info.key, start, length))


def _upload(folder: Path, target: Store, info: ObjectInfo) -> None:
    """Put a file into a store.

    The file is mapped, so that it takes no memory beside the page cache. An empty file cannot be
    mapped.
    """
    if not info.bytes:
        target.put(info.key, b"")
        return
    with (folder / info.key).open("rb") as file:
        # The map is not closed here, because the client may still refer to it. It ends with the
        # last reference.
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    target.put(info.key, memoryview(mapped))
