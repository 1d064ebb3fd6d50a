"""Kind ``listing``: a table of paths and labels. The images are on a disk, on S3, or on both."""

from __future__ import annotations

import contextlib
import os
import posixpath
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dataprep.credentials import without_credentials
from dataprep.errors import (
    DataprepError,
    ObjectNotFound,
    PermissionRefused,
    SourceError,
    SourceNotFound,
)
from dataprep.name_encoding import by_bytes, escape
from dataprep.sources.class_names import read_class_names
from dataprep.sources.file_names import CLUTTER, advice_for, is_system
from dataprep.sources.files import (
    MISSING,
    disk_paths,
    reads_in_flight,
    sizes_of,
    split_uri,
    translated_read_error,
)
from dataprep.sources.label_classes import (
    Classes,
    class_numbers,
    classes_from_names,
    classes_from_numbers,
    refuse_detection,
)
from dataprep.sources.listing_table import Table, as_numbers, parse
from dataprep.sources.options import ListingOptions
from dataprep.sources.protocol import Listing, Located, Problem, Problems
from dataprep.stores import Store, StoreOptions, open_store

LEAVES_ROOT = "its path leaves the root of the listing"
"""The reason why a path that begins with ``..`` after normalisation is not a sample."""

_MAX_FILES_FOR_ADVICE = 100
_MAX_DISK_PATHS = 16
# The parts of /data are the empty name before the slash, and data. A path of one part would be the
# root of the disk, which every worker sees.
_MIN_DEPTH = 2

_has_scheme = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://").match
_is_on_s3 = re.compile(r"s3://[^/@]+/.+", re.DOTALL).fullmatch
# A question mark alone is no proof of a signed address: keys may contain it, and names of crawled
# images often do.
_is_signed = re.compile(
    r"[?&](x-amz-(signature|credential|security-token)|awsaccesskeyid)=", re.IGNORECASE
).search


class ListingSource:
    """The images whose paths a table lists."""

    only_images = True

    def __init__(
        self, uri: str, options: StoreOptions | None = None, section: ListingOptions | None = None
    ) -> None:
        folder, self._file = split_uri(uri)
        self._options = options or StoreOptions()
        self._section = section or ListingOptions()
        self._folder = _store(folder, self._options).uri
        self._root = _store(self._section.root or folder, self._options).uri
        self.concurrency = reads_in_flight(self._store(""))
        self._disk_paths: Sequence[str] = []

    @property
    def uri(self) -> str:
        """The address of the table."""
        return f"{self._folder.rstrip('/')}/{self._file}"

    def disk_paths(self) -> Sequence[str]:
        """The folders on a disk that contain the images of the last ``list``.

        For images with relative paths, this is the root of the listing.
        """
        return self._disk_paths

    def __getstate__(self) -> dict[str, Any]:
        # Another process may run in another folder.
        absolute = {"_folder": absolute_uri(self._folder), "_root": absolute_uri(self._root)}
        return {**self.__dict__, **absolute}

    def read(self, item: Located) -> bytes:
        """Return the bytes of one image.

        Raises:
            UnreadableImage: the image is on a disk and may not be read.
            SourceChanged: the image was removed since it was listed.
            StoreError: the store failed. Reading the image again may succeed.
        """
        root, key = split_name(item.name)
        store = self._store(root)
        try:
            return store.get(key)
        except (ObjectNotFound, PermissionRefused) as error:
            raise translated_read_error(error, store, key, root or self._root) from None

    def list(self) -> Listing:
        """List all rows of the table, sorted by the bytes of their names.

        If a path is repeated, only its first row is a sample. Later rows with the same class are
        skipped, and later rows with another class fail.

        Raises:
            SourceNotFound: the table does not exist or lists nothing, or no listed file exists.
            SourceError: the table cannot be read, or does not have the expected form.
        """
        try:
            data = self._store(self._folder).get(self._file)
        except ObjectNotFound:
            raise SourceNotFound(
                f"no listing at {self.uri!r} (check --source){self._advice()}"
            ) from None
        except OSError as error:
            raise SourceError(f"cannot read {self.uri}: {error}") from None
        table = parse(data, self._file, self._section)
        if not table.paths:
            raise SourceNotFound(f"{self.uri} lists nothing")
        # ``reasons`` become failures. ``problems`` may also have skipped rows.
        reasons: dict[int, str] = {}
        classes, values = self._classes(table, reasons)
        names: list[str] = []
        first_rows: dict[str, int] = {}
        problems: Problems = {}
        # The root is made absolute only for comparisons. The names of samples stay relative.
        root = f"{absolute_uri(self._root).rstrip('/')}/"
        for row, path in enumerate(table.paths):
            name, refusal = sample_name(path, root)
            names.append(name)
            first_row = first_rows.setdefault(name, row)
            if refusal:
                reasons[row] = refusal
            elif is_system(name):
                problems[row] = Problem("skipped", CLUTTER)
                reasons.pop(row, None)  # a system file needs no label
            elif classes.names[first_row] != classes.names[row]:
                problems[row] = Problem("failed", "listed before with another label")
            elif first_row != row:
                problems[row] = Problem("skipped", "listed before")
        for row, reason in reasons.items():
            problems[row] = Problem("failed", reason)
        sizes = self._sizes(names, problems)
        sample_names = [name for row, name in enumerate(names) if row not in problems]
        self._disk_paths = self._folders_of(sample_names)
        return Listing.sorted(
            names,
            sizes,
            classes.names,
            problems,
            values=values,
            label_space=classes.space,
            notes=classes.notes,
            form="a listing",
        )

    def _classes(
        self, table: Table, reasons: dict[int, str]
    ) -> tuple[Classes, NDArray[np.float32] | None]:
        """The class of each row, and all labels if rows have several.

        If the table has no labels at all, no row has a class.

        Args:
            table: the content of the listing.
            reasons: rows without a class are added to it, with the reason.

        Raises:
            SourceNotFound: the file with the names of the classes does not exist.
            SourceError: this file cannot be read or lacks a class, a label that must be a number is
                not one, or the table is im2rec's list for detection.
        """
        labels = table.labels
        names_file = self._section.class_names
        label_space = read_class_names(names_file, self._options) if names_file else None
        if not any(labels):
            return Classes([""] * len(labels)), None
        if not table.are_numbers:
            names = [row_labels[0] for row_labels in labels]
            return classes_from_names(names, label_space, reasons, self._file), None
        values = as_numbers(labels, self._file)
        refuse_detection(values, self._file)
        numbers, all_labels = class_numbers(values, reasons)
        keep_numbers = all_labels is not None
        classes = classes_from_numbers(
            numbers, len(labels), label_space, reasons, "listing", keep_numbers=keep_numbers
        )
        return classes, all_labels

    def _advice(self) -> str:
        """Advice which kind of source fits the files, if the address is a folder; else empty."""
        with contextlib.suppress(OSError, DataprepError):
            store = _store(self.uri, self._options)
            return advice_for(file.key for file in islice(store.list(), _MAX_FILES_FOR_ADVICE))
        return ""

    def _sizes(self, names: Sequence[str], problems: Problems) -> Sequence[int]:
        """The size of each file in bytes. Files without a size are added to ``problems``.

        A file has no size if it does not exist, if the store refuses access, or if its name cannot
        be a key on S3. ``concurrency`` is increased if files are on a remote store.

        Raises:
            SourceNotFound: no file exists. Files that are skipped do not count.
        """
        rows_by_root: dict[str, list[int]] = {}
        for row, name in enumerate(names):
            if row not in problems:
                rows_by_root.setdefault(split_name(name)[0], []).append(row)
        sizes = [0] * len(names)
        for root, rows in rows_by_root.items():
            store = self._store(root)
            self.concurrency = max(self.concurrency, reads_in_flight(store))
            root_sizes = sizes_of(store, [split_name(names[row])[1] for row in rows])
            for row, size in zip(rows, root_sizes, strict=True):
                if isinstance(size, str):
                    problems[row] = Problem("failed", size)
                else:
                    sizes[row] = size
        if len(problems) == len(names):
            self._refuse_missing(names, problems)
        return sizes

    def _refuse_missing(self, names: Sequence[str], problems: Problems) -> None:
        """Refuse the table if no file exists. If a name is listed repeatedly, its first row counts.

        Raises:
            SourceNotFound: no file exists.
        """
        first_rows: dict[str, int] = {}
        for row, name in enumerate(names):
            first_rows.setdefault(name, row)
        failed_rows = [row for row in first_rows.values() if problems[row].status == "failed"]
        if failed_rows and all(problems[row].reason == MISSING for row in failed_rows):
            raise SourceNotFound(
                f"none of the files exists that {self.uri} lists, such as "
                f"{escape(names[min(failed_rows)])!r}: relative paths begin at {self._root}, or "
                "at the folder in --set listing.root=FOLDER"
            )

    def _folders_of(self, names: Sequence[str]) -> Sequence[str]:
        """A few folders on a disk that contain these images; empty if no image is on a disk."""
        roots = {split_name(name)[0] for name in names}
        root_paths = disk_paths(self._store("")) if "" in roots else ()
        return [*root_paths, *_folders_of_absolute_paths(names)]

    def _store(self, root: str) -> Store:
        """The store of a root. An empty root stands for the root of relative paths."""
        return _store(root or self._root, self._options)


def _folders_of_absolute_paths(names: Iterable[str]) -> list[str]:
    """The folders of the absolute paths among these names. If there are many, folders above them.

    The result is used to check that every worker sees the images. It is as deep in the tree as
    ``_MAX_DISK_PATHS`` folders allow, because a folder that only one machine has mounted may be
    deep, too.
    """
    parents = {name.rpartition("/")[0] for name in names if name.startswith("/")}
    folders = {tuple(parent.split("/")) for parent in parents}
    depth = max(map(len, folders), default=0)
    while len(folders) > _MAX_DISK_PATHS and depth > _MIN_DEPTH:
        depth -= 1
        folders = {folder[:depth] for folder in folders}
    return by_bytes("/".join(folder) or "/" for folder in folders)


@lru_cache(maxsize=64)
def _store(uri: str, options: StoreOptions) -> Store:
    """Open a store once in each process, because creating an S3 client takes 0.2 s."""
    return open_store(uri, options)


def absolute_uri(uri: str) -> str:
    """Return an address that means the same in every working directory."""
    return uri if _has_scheme(uri) else os.path.abspath(uri)  # noqa: PTH100


def sample_name(path: str, root: str) -> tuple[str, str]:
    """Return the sample name of a listed path, and why the path is refused; empty if it is not.

    Spellings of a path on a disk that differ in dots and slashes, such as ``a/b`` and ``./a//b``,
    give the same name. Names of files below ``root`` are relative to it. Therefore samples have the
    same order as the same files in class folders.

    Args:
        path: the path or address in the table.
        root: the folder of relative paths: an absolute path or address with a slash at the end.

    Raises:
        SourceError: the path is an address that is not on S3, or has credentials, which would be
            stored in the table of samples.
    """
    path = path.removeprefix("file://")
    if _has_scheme(path):
        if not _is_on_s3(path) or _is_signed(path):
            raise SourceError(
                f"{without_credentials(escape(path))}: a listing has paths and addresses "
                "s3://BUCKET/KEY without credentials; copy images that are on the web to a disk or "
                "to S3 first"
            )
        return path.removeprefix(root), ""
    name = posixpath.normpath(path)
    if "\0" in path:
        return path, "its path holds a zero byte"
    if name.startswith("/"):
        return f"/{name.lstrip('/')}".removeprefix(root), ""
    leaves_root = name == ".." or name.startswith("../")
    if leaves_root:
        return path, LEAVES_ROOT
    if name == path:
        return path, ""  # The same object, so that a million names take less memory.
    return name, ""


def split_name(name: str) -> tuple[str, str]:
    """Return the root at which a sample is read, and its key there.

    The root is empty for a name that is relative to the root of the listing.
    """
    if name.startswith("s3://"):
        bucket, _, key = name[len("s3://") :].partition("/")
        return f"s3://{bucket}", key
    if name.startswith("/"):
        return "/", name[1:]
    return "", name
