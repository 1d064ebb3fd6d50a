"""Tar archives as a source: which files are archives, their indexes, and how members are read.

What is a sample, and of which class, is up to each kind.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import cache
from typing import ClassVar, TypeVar

import pyarrow as pa

from dataprep.errors import (
    NotAnArchive,
    PermissionRefused,
    SourceError,
    SourceNotFound,
)
from dataprep.ordered import in_order
from dataprep.sources.archives import Archive, GzipContent, container_of
from dataprep.sources.files import FilesSource
from dataprep.sources.local_tree import Tree
from dataprep.sources.other_kinds import advice_for
from dataprep.sources.protocol import Located
from dataprep.sources.tars import index_tar, no_archive
from dataprep.stores import ObjectInfo, Store, StoreOptions

Used = TypeVar("Used")


class TarSource(FilesSource):
    """Members of tar archives, of which only headers and wanted members are read.

    ``uri`` is one archive, or a folder of archives. A member of ``n01440764.tar`` in a folder is
    called ``n01440764/NAME``, as if that tar had been unpacked into a folder.
    """

    kind: ClassVar[str]
    """The name of the kind, which is also that of its part of a config."""

    def __init__(self, uri: str, options: StoreOptions | None, cache_folder: str | None) -> None:
        super().__init__(uri, options)
        home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
        # Workers may run in another folder.
        folder = os.path.expanduser(cache_folder or f"{home}/dataprep")  # noqa: PTH111
        self._cache = os.path.abspath(folder)  # noqa: PTH100
        self._containers: dict[str, Archive | GzipContent] = {}
        self._versions: dict[str, str] = {}

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
        listed = self._files_at("archive", tree)

        def index(file: ObjectInfo) -> tuple[Archive | None, pa.Table]:
            return self._index(listed.store, file, in_folder=listed.is_folder, note=note)

        self._containers, self._versions = {}, {}
        used = []
        # A disk is read by this thread alone.
        for archive, table in in_order(index, listed.files, self.concurrency - 1):
            if archive is not None:
                self._versions[archive.key] = archive.version
                for key in {*texts(table, "container")} - {""}:
                    self._containers[key] = container_of(key, archive)
            used.append(use(table))
        if not self._containers:
            raise SourceNotFound(
                f"no members in {self.uri!r}, nor in tars there: for class folders leave --kind out"
                + advice_for(file.key for file in listed.files)
            )
        return used

    def _index(
        self, store: Store, file: ObjectInfo, *, in_folder: bool, note: Callable[[str], None]
    ) -> tuple[Archive | None, pa.Table]:
        """An archive and its index; of a file that is none, None and a row of its own.

        Any file of a folder may be an archive.
        """
        if problem := self._problem_of(file, in_folder=in_folder):
            return None, no_archive(file.key, *problem)
        try:
            archive = Archive.of(store, file.key, self._cache, f"{self.kind}.cache")
            return archive, index_tar(archive, file.key if in_folder else "", note)
        except NotAnArchive as error:
            if not in_folder:
                raise
            reason = str(error).removeprefix(f"{archive.uri}: ")
            return None, no_archive(file.key, "skipped", reason)
        except PermissionRefused as error:
            raise SourceError(f"{error} (check --source)") from None


def texts(table: pa.Table, column: str) -> list[str]:
    """A column as texts; equal ones share memory."""
    return [sys.intern(os.fsdecode(value)) for value in table[column].to_pylist()]
