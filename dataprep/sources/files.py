"""Files of a source: listed, read and measured, with the errors of a source.

``FilesSource`` is what kinds of sources whose address is that of files have in common.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from dataprep.errors import (
    ConfigError,
    ObjectNotFound,
    PermissionRefused,
    SourceChanged,
    SourceError,
    SourceNotFound,
    UnreadableImage,
)
from dataprep.ordered import in_order
from dataprep.sources.classes import is_clutter
from dataprep.sources.exclusion import Exclusion
from dataprep.sources.local_tree import Tree, list_tree, problem_of
from dataprep.sources.protocol import REMOTE_READS, Problem
from dataprep.stores import ObjectInfo, Store, StoreOptions, open_store
from dataprep.stores.local import LocalStore
from dataprep.stores.s3 import S3Store

MISSING = "not there"
UNREADABLE = "it may not be read, or is not there"

_LIST_FROM = 100
_LISTED_FOR_ONE = 10
_THREADS = 32
_ASKED_AT_ONCE = 64


@dataclass(frozen=True)
class FilesAt:
    """The files at an address: a single one, or those of a folder."""

    store: Store
    files: Sequence[ObjectInfo]
    is_folder: bool


class FilesSource:
    """A source whose address is that of a folder of files, or of a single file.

    Attributes:
        concurrency: how many reads a worker keeps in flight.
    """

    def __init__(self, uri: str, options: StoreOptions | None = None) -> None:
        self._store = open_store(uri, options)
        self._options = options
        self._exclusion = Exclusion()
        self._splits_are_classes = False
        self.concurrency = reads_at_once(self._store)

    @property
    def uri(self) -> str:
        """The address of the folder, or of the file."""
        return self._store.uri

    def disk_paths(self) -> Sequence[str]:
        """The folder or file that every worker has to see, if it is on a disk."""
        return disk_paths(self._store)

    def leave_out(self, globs: tuple[str, ...]) -> None:
        """Have ``list`` skip what these globs match."""
        self._exclusion = Exclusion(globs)

    def read_splits_as_classes(self) -> None:
        """Have ``list`` read what looks like several splits as one."""
        self._splits_are_classes = True

    def _files_at(self, what: str, tree: Tree) -> FilesAt:
        """The only file, or the files of the folder, whose listing is added to ``tree``.

        Raises:
            SourceNotFound: there is no file. The error calls the files ``what``.
            SourceError: the folder cannot be listed.
        """
        with contextlib.suppress(ConfigError, ObjectNotFound):
            folder, key = split_uri(self.uri)
            store = open_store(folder, self._options)
            return FilesAt(store, [store.head(key)], is_folder=False)
        listed = list_files(self._store, is_left_out=self._exclusion.reason)
        tree.unread.extend(listed.unread)
        tree.files.extend(listed.files)
        if all(is_clutter(info.key) for info in listed.files):
            raise SourceNotFound(f"no {what} at {self.uri!r}, nor any in it (check --source)")
        return FilesAt(self._store, sorted(listed.files), is_folder=True)

    def _problem_of(self, file: ObjectInfo, *, in_folder: bool) -> Problem | None:
        """Why a file is not read, by its name and by what the listing shows."""
        if in_folder and (reason := self._exclusion.reason(file.key)):
            return Problem("skipped", reason)
        return problem_of(file)


def split_uri(uri: str) -> tuple[str, str]:
    """The folder of a file, and its name there: ``s3://bucket/a`` and ``b.csv``.

    Raises:
        ConfigError: it is a URI that names no file.
    """
    scheme, found, rest = uri.partition("://")
    if found and not rest.rpartition("/")[0]:
        raise ConfigError(f"{uri!r} names no file: write {scheme}://PLACE/FILE")
    folder, slash, name = uri.rpartition("/")
    return folder or slash or ".", name


def reads_at_once(store: Store) -> int:
    """How many reads a worker keeps in flight: one of a disk, many where each one waits."""
    return 1 if isinstance(store, LocalStore) else REMOTE_READS


def disk_paths(store: Store) -> Sequence[str]:
    """The folder of a store on a disk, which every worker has to see; none of other stores."""
    return [os.fspath(store.root.absolute())] if isinstance(store, LocalStore) else []


def list_files(
    store: Store, prefix: str = "", is_left_out: Callable[[str], object] = is_clutter
) -> Tree:
    """List every file of ``store`` whose key begins with ``prefix``; links on disk are followed.

    A folder of which ``is_left_out`` says so need not be readable.

    Raises:
        SourceNotFound: there is no such place.
        SourceError: it cannot be listed.
    """
    try:
        if isinstance(store, LocalStore):
            return list_tree(store, prefix, is_left_out)
        return Tree(list(store.list(prefix)))
    except ObjectNotFound as error:
        raise SourceNotFound(f"{error} (check --source)") from None
    except OSError as error:
        why = str(error).removeprefix(f"{store.uri}: ")
        raise SourceError(f"cannot list {store.uri}: {why}") from None


def read_error(
    error: ObjectNotFound | PermissionRefused, store: Store, key: str, where: str
) -> Exception:
    """An error of reading ``key`` as that of the sample or of the source at ``where``."""
    if isinstance(error, ObjectNotFound):
        return SourceChanged(
            f"{key!r} is gone from {where} since it was listed: restore it, or start "
            "anew with --overwrite"
        )
    if isinstance(store, LocalStore):
        return UnreadableImage(str(error))
    return error  # an expired token refuses everything: that is no property of a sample


def sizes_of(store: Store, keys: Sequence[str]) -> list[int | str]:
    """The size of each file in bytes, or the reason why it is unknown.

    On S3 a hundred keys or more are looked up in a listing of their common folder, of at most ten
    times as many objects: one LIST gives a thousand sizes. The others are asked for one by one.

    Raises:
        StoreError: the store does not answer.
    """
    found: dict[str, int | str] = {}
    on_s3 = isinstance(store, S3Store)
    if on_s3 and len(keys) >= _LIST_FROM:
        wanted = {*keys}
        folder = os.path.commonprefix(keys).rpartition("/")[0]  # noqa: RUF071  cut at a slash
        # Who may read an object may not always list the bucket.
        with contextlib.suppress(PermissionRefused):
            listed = islice(store.list(f"{folder}/".lstrip("/")), _LISTED_FOR_ONE * len(wanted))
            found.update({info.key: info.bytes for info in listed if info.key in wanted})
    unknown = [key for key in keys if key not in found]

    def size_of(key: str) -> int | str:
        if on_s3 and key.encode(errors="ignore").decode() != key:
            return "its name is not UTF-8, as a key on S3 is"
        try:
            return store.head(key).bytes
        except ObjectNotFound:
            return MISSING
        except PermissionRefused:
            return UNREADABLE

    # Several for each call, since handing over a call takes longer than asking a local disk.
    each = min(_ASKED_AT_ONCE, len(unknown) // (4 * _THREADS) + 1)
    parts = [unknown[start : start + each] for start in range(0, len(unknown), each)]
    asked = in_order(lambda part: [size_of(key) for key in part], parts, _THREADS)
    sizes = chain.from_iterable(asked)
    return [found[key] if key in found else next(sizes) for key in keys]
