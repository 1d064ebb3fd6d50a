"""Tar archives as a source: which files are archives, their indexes, and how members are read.

What is a sample, and of which class, is up to each kind.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import ClassVar, TypeVar

import pyarrow as pa

from dataprep.errors import (
    ConfigError,
    NotAnArchive,
    ObjectNotFound,
    PermissionRefused,
    SourceError,
    SourceNotFound,
)
from dataprep.ordered import in_order
from dataprep.sources.archives import Archive, GzipContent, container_of
from dataprep.sources.classes import is_clutter
from dataprep.sources.exclusion import Exclusion
from dataprep.sources.files import disk_paths, list_files, reads_at_once, split_uri
from dataprep.sources.local_tree import Tree, problem_of
from dataprep.sources.other_kinds import advice_for
from dataprep.sources.protocol import Located
from dataprep.sources.tars import index_tar, no_archive
from dataprep.stores import ObjectInfo, Store, StoreOptions, open_store

Used = TypeVar("Used")


class TarSource:
    """Members of tar archives, of which only headers and wanted members are read.

    ``uri`` is one archive, or a folder of archives. A member of ``n01440764.tar`` in a folder is
    called ``n01440764/NAME``, as if that tar had been unpacked into a folder.
    """

    kind: ClassVar[str]
    """The name of the kind, which is also that of its part of a config."""

    def __init__(self, uri: str, options: StoreOptions | None, cache_folder: str | None) -> None:
        self._folder = open_store(uri, options)
        self._options = options
        home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
        # Workers may run in another folder.
        folder = os.path.expanduser(cache_folder or f"{home}/dataprep")  # noqa: PTH111
        self._cache = os.path.abspath(folder)  # noqa: PTH100
        self._containers: dict[str, Archive | GzipContent] = {}
        self._versions: dict[str, str] = {}
        self._exclusion = Exclusion()
        self._splits_are_classes = False
        self.concurrency = reads_at_once(self._folder)

    @property
    def uri(self) -> str:
        """The address of the archive, or of the folder of archives."""
        return self._folder.uri

    def disk_paths(self) -> Sequence[str]:
        """The archive or folder that every worker has to see, if it is on a disk."""
        return disk_paths(self._folder)

    def leave_out(self, globs: tuple[str, ...]) -> None:
        """Have ``list`` skip what these globs match."""
        self._exclusion = Exclusion(globs)

    def read_splits_as_classes(self) -> None:
        """Have ``list`` read what looks like several splits as one."""
        self._splits_are_classes = True

    def announce_to(self, note: Callable[[str], None]) -> None:
        """Have ``note`` called by the next ``list`` with what costs time, before it does."""
        self._note = note

    def read(self, item: Located) -> bytes:
        """The bytes of one member, once this source, or the one it is a copy of, was listed."""
        return self._containers[item.container].read(item.offset, item.bytes)

    def _indexed(self, tree: Tree, use: Callable[[pa.Table], Used]) -> list[Used]:
        """What ``use`` makes of the index of each archive, in the order of their names.

        Files that are no archives have an index with a row of their own. What was passed over in a
        folder of archives is added to ``tree``. Afterwards ``_versions`` has the version of each
        archive by its key.
        """
        # A line once for all archives; not kept, since the source is pickled for workers. Without
        # a listener ``str`` takes the lines.
        note = cache(self.__dict__.pop("_note", str))
        store, entries, several = self._found(tree)

        def index(entry: ObjectInfo) -> tuple[Archive | None, pa.Table]:
            return self._index(store, entry, several=several, note=note)

        self._containers, self._versions = {}, {}
        used = []
        # A disk is read by this thread alone.
        for archive, table in in_order(index, entries, self.concurrency - 1):
            if archive is not None:
                self._versions[archive.key] = archive.version
                for key in {*texts(table, "container")} - {""}:
                    self._containers[key] = container_of(key, archive)
            used.append(use(table))
        if not self._containers:
            raise SourceNotFound(
                f"no members in {self.uri!r}, nor in tars there: for class folders leave --kind out"
                + advice_for(entry.key for entry in entries)
            )
        return used

    def _index(
        self, store: Store, entry: ObjectInfo, *, several: bool, note: Callable[[str], None]
    ) -> tuple[Archive | None, pa.Table]:
        """An archive and its index; of a file that is none, None and a row of its own.

        ``several`` says that the source is a folder, of which any file may be an archive.
        """
        if several and (reason := self._exclusion.reason(entry.key)):
            return None, no_archive(entry.key, "skipped", reason)
        if problem := problem_of(entry):
            return None, no_archive(entry.key, *problem)
        try:
            archive = Archive.of(store, entry.key, self._cache, f"{self.kind}.cache")
            return archive, index_tar(archive, entry.key if several else "", note)
        except NotAnArchive as error:
            if not several:
                raise
            reason = str(error).removeprefix(f"{archive.uri}: ")
            return None, no_archive(entry.key, "skipped", reason)
        except PermissionRefused as error:
            raise SourceError(f"{error} (check --source)") from None

    def _found(self, tree: Tree) -> tuple[Store, Sequence[ObjectInfo], bool]:
        """The store of the archives, the files there, and whether they are a folder's."""
        with contextlib.suppress(ConfigError, ObjectNotFound):
            folder, key = split_uri(self.uri)
            store = open_store(folder, self._options)
            return store, [store.head(key)], False
        listed = list_files(self._folder, is_left_out=self._exclusion.reason)
        tree.unread.extend(listed.unread)
        tree.files.extend(listed.files)
        entries = listed.files
        if all(is_clutter(info.key) for info in entries):
            raise SourceNotFound(f"no archive at {self.uri!r}, nor any in it (check --source)")
        return self._folder, sorted(entries), True


def texts(table: pa.Table, column: str) -> list[str]:
    """A column as texts; equal ones share memory."""
    return [sys.intern(os.fsdecode(value)) for value in table[column].to_pylist()]
