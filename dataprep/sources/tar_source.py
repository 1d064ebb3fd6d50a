"""The base class of sources that read tars: it finds archives, indexes them, and reads members.

Its subclasses in ``ilsvrc.py`` and ``webdataset.py`` decide which members are samples, and find
their classes.
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
from dataprep.sources.file_names import advice_for
from dataprep.sources.files import FilesSource
from dataprep.sources.local_tree import Tree
from dataprep.sources.protocol import Located
from dataprep.sources.tar_archive import Archive, GzipContent, container_of
from dataprep.sources.tar_index import index_tar, index_without_members
from dataprep.stores import ObjectInfo, Store, StoreOptions
from dataprep.threaded_map import in_order

Result = TypeVar("Result")


class TarSource(FilesSource):
    """The members of tar archives.

    ``list`` reads headers, the first bytes of members, and small sidecars. ``read`` reads one
    member.

    ``uri`` is one archive, or a folder of archives. A member of ``n01440764.tar`` in a folder is
    called ``n01440764/NAME``, as if the tar had been unpacked into a folder.
    """

    kind: ClassVar[str]
    """The name of the kind, which is also the name of its section in a config."""

    def __init__(self, uri: str, options: StoreOptions | None, cache_folder: str | None) -> None:
        super().__init__(uri, options)
        cache_home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
        folder = os.path.expanduser(cache_folder or f"{cache_home}/dataprep")  # noqa: PTH111
        # The path is absolute, because a worker may have another working folder.
        self._cache = os.path.abspath(folder)  # noqa: PTH100
        self._containers: dict[str, Archive | GzipContent] = {}
        self._versions: dict[str, str] = {}
        self._note: Callable[[str], None] | None = None

    def announce_to(self, note: Callable[[str], None]) -> None:
        """Let the next ``list`` call ``note`` before each step that takes long."""
        self._note = note

    def read(self, item: Located) -> bytes:
        """Return the bytes of one member. The source must have been listed before.

        Raises:
            CorruptArchive, ConfigError: as ``GzipContent.read``.
            SourceChanged, StoreError: as ``StoredFile.read``.
        """
        return self._containers[item.container].read(item.offset, item.bytes)

    def _indexed(self, tree: Tree, process: Callable[[pa.Table], Result]) -> list[Result]:
        """Return the result of ``process`` for each file, in the order of the files' names.

        Afterwards, ``_versions`` has the version of each archive by its key.

        Args:
            tree: the listing of the folder is added to it.
            process: computes a result from the index of a file. The index of a file that is not an
                archive has a single row.

        Raises:
            SourceNotFound: no archive has a member.
            SourceError, StoreError: as ``_files_at`` and ``index_tar``.
        """
        # With ``cache``, a repeated message is shown only once.
        note = cache(self._note or _discard)
        # The source is pickled for the workers, which may be impossible with the callback.
        self._note = None
        files_at = self._files_at("archive", tree)

        def index(file: ObjectInfo) -> tuple[Archive | None, pa.Table]:
            return self._index(files_at.store, file, in_folder=files_at.is_folder, note=note)

        self._containers, self._versions = {}, {}
        results = []
        # A source on a disk has a concurrency of 1. Then there are no threads besides this one.
        for archive, table in in_order(index, files_at.files, self.concurrency - 1):
            if archive is not None:
                self._versions[archive.key] = archive.version
                for key in {*interned_texts(table, "container")} - {""}:
                    self._containers[key] = container_of(key, archive)
            results.append(process(table))
        if not self._containers:
            raise SourceNotFound(
                f"no members in {self.uri!r}, nor in tars there: for class folders leave --kind out"
                + advice_for(file.key for file in files_at.files)
            )
        return results

    def _index(
        self, store: Store, file: ObjectInfo, *, in_folder: bool, note: Callable[[str], None]
    ) -> tuple[Archive | None, pa.Table]:
        """Return an archive and its index; for any other file, None and an index of a single row.

        The content decides whether a file in a folder is an archive, whatever its name is.

        Raises:
            NotAnArchive: the source is a single file, which is not an archive.
            SourceError: the file may not be read, or is a damaged archive.
        """
        problem = self._problem_of(file, in_folder=in_folder)
        if problem:
            return None, index_without_members(file.key, problem.status, problem.reason)
        try:
            archive = Archive.of(store, file.key, self._cache, f"{self.kind}.cache")
            return archive, index_tar(archive, file.key if in_folder else "", note)
        except NotAnArchive as error:
            if not in_folder:
                raise
            reason = str(error).removeprefix(f"{archive.uri}: ")
            return None, index_without_members(file.key, "skipped", reason)
        except PermissionRefused as error:
            raise SourceError(f"{error} (check --source)") from None


def _discard(message: str) -> None:
    """Discard a message, because there is no callback."""


def interned_texts(table: pa.Table, column: str) -> list[str]:
    """Return a column of names as texts. Equal texts share their memory, because many are equal."""
    return [sys.intern(os.fsdecode(value)) for value in table[column].to_pylist()]
