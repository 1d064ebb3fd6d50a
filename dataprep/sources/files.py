"""The base class of sources whose address is a file or a folder of files.

Functions of this module list the files of a store, look up their sizes, and translate errors of the
store into errors of the source.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice

from dataprep.errors import (
    ConfigError,
    ObjectNotFound,
    PermissionRefused,
    SourceChanged,
    SourceError,
    SourceNotFound,
    UnreadableImage,
)
from dataprep.sources.exclusion import Exclusion
from dataprep.sources.file_names import is_clutter
from dataprep.sources.local_tree import Tree, list_tree, problem_of
from dataprep.sources.protocol import REMOTE_READS, Problem
from dataprep.stores import ObjectInfo, Store, StoreOptions, open_store
from dataprep.stores.local import LocalStore
from dataprep.stores.s3 import S3Store
from dataprep.threaded_map import in_order

MISSING = "not there"
"""The reason in place of the size of a file that does not exist."""

UNREADABLE = "it may not be read, or is not there"
"""The reason in place of the size of a file to which the store refuses access."""

_MIN_KEYS_TO_LIST = 100
_MAX_LISTED_PER_KEY = 10
_THREADS = 32
_MAX_KEYS_PER_CALL = 64


@dataclass(frozen=True)
class FilesAt:
    """The files at an address: a single file, or all files of a folder.

    Attributes:
        store: the store that contains the files.
        files: the files, sorted by their keys.
        is_folder: whether the address is a folder.
    """

    store: Store
    files: Sequence[ObjectInfo]
    is_folder: bool


class FilesSource:
    """A source whose address is a folder of files, or a single file.

    Attributes:
        concurrency: the number of reads that a worker keeps in flight.
    """

    def __init__(self, uri: str, options: StoreOptions | None = None) -> None:
        self._store = open_store(uri, options)
        self._options = options
        self._exclusion = Exclusion()
        self._splits_are_classes = False
        self.concurrency = reads_in_flight(self._store)

    @property
    def uri(self) -> str:
        """The address of the folder, or of the file."""
        return self._store.uri

    def disk_paths(self) -> Sequence[str]:
        """The folder or file that every worker must be able to read, if it is on a disk."""
        return disk_paths(self._store)

    def leave_out(self, globs: tuple[str, ...]) -> None:
        """Let ``list`` skip files and folders that these globs match."""
        self._exclusion = Exclusion(globs)

    def read_splits_as_classes(self) -> None:
        """Let ``list`` accept names of different splits, and read all of them as one split."""
        self._splits_are_classes = True

    def _files_at(self, noun: str, tree: Tree) -> FilesAt:
        """The single file at the address, or the files of the folder there.

        Args:
            noun: the kind of file, as errors call it.
            tree: the listing of the folder is added to it.

        Raises:
            SourceNotFound: there is no file, or only clutter (``is_clutter``).
            SourceError: the folder cannot be listed.
        """
        # Try a single file first. The address of a bucket names no file: this is a ConfigError.
        with contextlib.suppress(ConfigError, ObjectNotFound):
            folder, key = split_uri(self.uri)
            store = open_store(folder, self._options)
            return FilesAt(store, [store.head(key)], is_folder=False)
        folder_tree = list_files(self._store, is_left_out=self._exclusion.reason)
        tree.unread.extend(folder_tree.unread)
        tree.files.extend(folder_tree.files)
        if all(is_clutter(file.key) for file in folder_tree.files):
            raise SourceNotFound(f"no {noun} at {self.uri!r}, nor any in it (check --source)")
        return FilesAt(self._store, sorted(folder_tree.files), is_folder=True)

    def _problem_of(self, file: ObjectInfo, *, in_folder: bool) -> Problem | None:
        """Why a file is not read, according to its entry in the listing; None if it is read.

        Args:
            file: the entry.
            in_folder: whether the address is a folder. A file that is the address itself is never
                left out.
        """
        if in_folder:
            reason = self._exclusion.reason(file.key)
            if reason:
                return Problem("skipped", reason)
        return problem_of(file)


def split_uri(uri: str) -> tuple[str, str]:
    """Split the address of a file into its folder and its name.

    ``s3://bucket/a/b.csv`` becomes ``s3://bucket/a`` and ``b.csv``.

    Raises:
        ConfigError: the URI names no file.
    """
    scheme, separator, rest = uri.partition("://")
    if separator and not rest.rpartition("/")[0]:
        raise ConfigError(f"{uri!r} names no file: write {scheme}://FOLDER/FILE")
    folder, slash, name = uri.rpartition("/")
    return folder or slash or ".", name


def reads_in_flight(store: Store) -> int:
    """The number of reads that a worker keeps in flight: one from a disk, else ``REMOTE_READS``."""
    return 1 if isinstance(store, LocalStore) else REMOTE_READS


def disk_paths(store: Store) -> Sequence[str]:
    """The folder that every worker must be able to read; empty if the store is not on a disk."""
    return [os.fspath(store.root.absolute())] if isinstance(store, LocalStore) else []


def list_files(
    store: Store, prefix: str = "", is_left_out: Callable[[str], object] = is_clutter
) -> Tree:
    """List every file of ``store`` whose key begins with ``prefix``. Links on a disk are followed.

    Args:
        store: the store that contains the files.
        prefix: the beginning of the keys.
        is_left_out: whether a folder on a disk, given by its key, is not part of the source. It is
            no error if a folder that is left out cannot be read.

    Raises:
        SourceNotFound: the store does not exist.
        SourceError: the store, or one of its folders, cannot be listed.
    """
    try:
        if isinstance(store, LocalStore):
            return list_tree(store, prefix, is_left_out)
        return Tree(list(store.list(prefix)))
    except ObjectNotFound as error:
        raise SourceNotFound(f"{error} (check --source)") from None
    except OSError as error:
        reason = str(error).removeprefix(f"{store.uri}: ")
        raise SourceError(f"cannot list {store.uri}: {reason}") from None


def translated_read_error(
    error: ObjectNotFound | PermissionRefused, store: Store, key: str, where: str
) -> Exception:
    """Translate an error of reading a file into an error of the sample or of the source.

    Args:
        error: the error of the store.
        store: the store.
        key: the key of the file.
        where: the source, as the message calls it.

    Returns:
        SourceChanged if the file is gone; UnreadableImage if a file on a disk may not be read; else
        ``error`` itself.
    """
    if isinstance(error, ObjectNotFound):
        return SourceChanged(
            f"{key!r} is gone from {where} since it was listed: restore it, or start "
            "again with --overwrite"
        )
    if isinstance(store, LocalStore):
        return UnreadableImage(str(error))
    # A remote store that refuses one read may refuse all reads: this is no error of one sample.
    return error


def sizes_of(store: Store, keys: Sequence[str]) -> list[int | str]:
    """Return the size of each file in bytes, or the reason why the size is unknown.

    On S3, one LIST request returns a thousand sizes. Therefore the common folder of the keys is
    listed first if there are at least ``_MIN_KEYS_TO_LIST`` keys. To limit the cost if the folder
    has many other objects, the listing ends after ``_MAX_LISTED_PER_KEY`` objects per key. The
    sizes of the remaining keys are requested one by one.

    Raises:
        StoreError: the store does not answer.
    """
    size_by_key: dict[str, int | str] = {}
    on_s3 = isinstance(store, S3Store)
    if on_s3 and len(keys) >= _MIN_KEYS_TO_LIST:
        size_by_key.update(_listed_sizes(store, keys))
    unknown_keys = [key for key in keys if key not in size_by_key]

    def size_of(key: str) -> int | str:
        if on_s3 and key.encode(errors="ignore").decode() != key:
            return "its name is not UTF-8, which keys on S3 must be"
        try:
            return store.head(key).bytes
        except ObjectNotFound:
            return MISSING
        except PermissionRefused:
            return UNREADABLE

    def sizes_of_batch(batch: Sequence[str]) -> list[int | str]:
        return [size_of(key) for key in batch]

    # Each task of a thread looks up many keys, because starting a task takes longer than a look-up
    # on a local disk.
    per_call = min(_MAX_KEYS_PER_CALL, len(unknown_keys) // (4 * _THREADS) + 1)
    batches = [
        unknown_keys[start : start + per_call] for start in range(0, len(unknown_keys), per_call)
    ]
    batch_sizes = in_order(sizes_of_batch, batches, _THREADS)
    for batch, sizes in zip(batches, batch_sizes, strict=True):
        size_by_key.update(zip(batch, sizes, strict=True))
    return [size_by_key[key] for key in keys]


def _listed_sizes(store: Store, keys: Sequence[str]) -> dict[str, int]:
    """The sizes of those keys that are in the listing of their common folder, in bytes by key."""
    required_keys = {*keys}
    folder = os.path.commonprefix(keys).rpartition("/")[0]  # noqa: RUF071  cut at a slash
    max_objects = _MAX_LISTED_PER_KEY * len(required_keys)
    sizes = {}
    # Credentials that can read objects are not always allowed to list the bucket.
    with contextlib.suppress(PermissionRefused):
        for info in islice(store.list(f"{folder}/".lstrip("/")), max_objects):
            if info.key in required_keys:
                sizes[info.key] = info.bytes
    return sizes
