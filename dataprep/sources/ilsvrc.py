"""ILSVRC2012 as downloaded, read in place: a tar of tars, a flat tar, a tree in a tar."""

from __future__ import annotations

import os
import posixpath
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property, partial
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from dataprep.errors import (
    NotAnArchive,
    ObjectNotFound,
    PermissionRefused,
    SourceError,
    SourceNotFound,
)
from dataprep.ordered import in_order
from dataprep.sources.archives import Archive, GzipPart, cache_folder
from dataprep.sources.classes import (
    CLUTTER,
    NOT_NAMED_AS_IMAGE,
    SPLITS,
    classify,
    commonest,
    is_clutter,
    promises_image,
)
from dataprep.sources.files import list_files
from dataprep.sources.options import ILSVRCOptions
from dataprep.sources.protocol import REMOTE_READS, Listing, Located, Problem
from dataprep.sources.tars import TAR_ENDING, index_tar, leaves_archive, no_archive
from dataprep.stores import ObjectInfo, Store, StoreOptions, open_store
from dataprep.stores.local import LocalStore

_REPLACED = Problem("skipped", "a later member of the archive has the same name")
_GZIP = re.compile(r"(.*)!gzip@(\d+)\+(\d+)", re.DOTALL)


class ILSVRC:
    """Images in tar archives, of which only headers and the images themselves are read.

    ``uri`` is one archive (ILSVRC2012's train tar of tars, its flat validation tar, any tree in a
    tar), or a folder of tars, one a class. An image in ``n01440764.tar`` is called
    ``n01440764/NAME``, as if that tar had been unpacked into a folder; classes then are those of
    class folders. Where images are in no folder, none has a class.
    """

    def __init__(
        self,
        uri: str,
        options: StoreOptions | None = None,
        section: ILSVRCOptions | None = None,
    ) -> None:
        self._folder = open_store(uri, options)
        self._options = options
        self._section = section or ILSVRCOptions()
        self._cache = cache_folder(self._section.cache)
        self._archives: dict[str, Archive] = {}
        self._note: Callable[[str], None] = _nobody
        self.concurrency = 1 if isinstance(self._folder, LocalStore) else REMOTE_READS

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_note": _nobody}

    @property
    def uri(self) -> str:
        """The address of the archive, or of the folder of archives."""
        return self._folder.uri

    def announce_to(self, note: Callable[[str], None]) -> None:
        """Have ``note`` called with what costs time, before it does."""
        self._note = note

    def read(self, item: Located) -> bytes:
        """The bytes of one member."""
        packed = _GZIP.fullmatch(item.container)
        key = packed[1] if packed else item.container
        archive = self._archives.get(key) or Archive(self._place.store, key)
        if packed is None:
            return archive.fetch(item.offset, item.bytes)
        part = GzipPart(archive, int(packed[2]), int(packed[3]), self._cache)
        return part.read(item.offset, item.bytes)

    def list(self) -> Listing:
        """All members of all archives but folders, sorted by the bytes of their names."""
        self.__dict__.pop("_place", None)  # what is there may have become something else
        table = self._members()
        table = table.take(pc.sort_indices(table, [("name", "ascending")]))
        names = [os.fsdecode(name) for name in table["name"].to_pylist()]
        listing = Listing(
            names=names,
            sizes=table["bytes"].to_numpy(),
            classes=[""] * len(names),
            problems=_problems(names, table),
            containers=_texts(table, "container"),
            offsets=table["offset"].to_numpy(),
        )
        classes, problems = self._classes(listing)
        self._require_all(listing, _texts(table, "tar"), problems)
        return replace(listing, classes=classes, problems=problems)

    def _members(self) -> pa.Table:
        """The members of all archives, in the order of these."""
        index_one = partial(self._index, cache(self._note))  # a line once for all archives
        threads = self.concurrency if self.concurrency > 1 else 0
        table = pa.concat_tables(list(in_order(index_one, self._place.entries, threads)))
        if not any(_texts(table, "container")):
            raise SourceNotFound(
                f"no members in {self.uri!r}, nor in tars there: for class folders leave --kind out"
            )
        if not self._section.folder:
            return table
        folder = posixpath.normpath(self._section.folder).strip("/")
        below = os.fsencode(f"{folder}/")
        table = table.filter(pc.starts_with(table["name"], below))
        if not len(table):
            raise SourceNotFound(f"nothing is below {folder!r} in {self.uri!r} (ilsvrc.folder)")
        for number, column in enumerate(("name", "tar")):
            shorter = pc.binary_replace_slice(table[column], 0, len(below), b"")
            table = table.set_column(number, column, shorter)
        return table

    def _index(self, note: Callable[[str], None], entry: ObjectInfo) -> pa.Table:
        """The members of an archive; for a file that is no archive, a row with the reason."""
        store, several = self._place.store, self._place.several
        if entry.problem:
            return no_archive(entry.key, "failed", entry.problem)
        try:
            archive = self._archives[entry.key] = Archive.of(store, entry.key)
            return index_tar(archive, entry.key if several else "", self._cache, note)
        except NotAnArchive as error:
            if not several:
                raise
            return no_archive(entry.key, "skipped", str(error).removeprefix(f"{archive.uri}: "))
        except PermissionRefused as error:
            if not several:
                raise SourceError(f"{error} (check --source)") from None
            return no_archive(entry.key, "failed", "permission denied")

    def _classes(self, listing: Listing) -> tuple[Sequence[str], dict[int, Problem]]:
        """The class of each member, if folders give it, and why others are no samples."""
        problems = listing.problems
        # A path that is refused names folders that are none.
        paths = ["" if leaves_archive(name) else name for name in listing.names]
        folders = set()
        for row, name in enumerate(paths):
            if row not in problems and promises_image(name):
                folders.add(name.rpartition("/")[0])
        # Images in no folder, or all in one that is called as a split is.
        if len(folders) == 1 and folders.pop().rpartition("/")[2] in SPLITS | {""}:
            for row, name in enumerate(paths):
                if row not in problems and not promises_image(name):
                    problems[row] = Problem("skipped", NOT_NAMED_AS_IMAGE)
            return listing.classes, problems

        advise = "--set ilsvrc.folder={}".format
        classes, found = classify(paths, problems, self.uri, advise)
        if len(found) == len(paths):
            raise SourceNotFound(
                f"no images in {self.uri!r}: expected JPEGs in tars, or in folders in a tar"
                + commonest(problems)
            )
        return classes, found

    def _require_all(
        self, listing: Listing, tars: Sequence[str], problems: Mapping[int, Problem]
    ) -> None:
        """Refuse a source in which some tars are classes and another tar gives no sample."""
        reasons: dict[str, str] = {}
        giving = set()
        for row, (name, tar) in enumerate(zip(listing.names, tars, strict=True)):
            if tar and (row not in problems or problems[row].status == "failed"):
                giving.add(TAR_ENDING.sub("", tar))
            elif tar:
                reasons.setdefault(tar, "has no images")
            elif TAR_ENDING.search(name) and not is_clutter(name):
                known = listing.problems.get(row)
                reasons[name] = known.reason if known else "no tar archive"
        lost = [tar for tar in sorted(reasons) if TAR_ENDING.sub("", tar) not in giving]
        if not giving or not lost:
            return
        others = f" (and {len(lost) - 1:,} more)" if len(lost) > 1 else ""
        raise SourceError(
            f"{self.uri}: {lost[0]}: {reasons[lost[0]]}{others}. A class would be missing without "
            "it: fetch it again; if it is no class, move it elsewhere (within a tar: tar --delete)"
        )

    @cached_property
    def _place(self) -> _Place:
        """The archive itself, or all files of the folder."""
        parent, slash, key = self.uri.rpartition("/")
        if key and not parent.endswith(":/"):
            store = open_store(parent + "/" * (not parent) if slash else ".", self._options)
            try:
                return _Place(store, (store.head(key),), False)
            except (ObjectNotFound, IsADirectoryError):
                pass
        entries = [info for info in list_files(self._folder) if not is_clutter(info.key)]
        if not entries:
            raise SourceNotFound(f"no archive at {self.uri!r}, nor any in it (check --source)")
        return _Place(self._folder, tuple(sorted(entries)), True)


class _Place(NamedTuple):
    """The store of the archives: one archive, or ``several`` in a folder."""

    store: Store
    entries: tuple[ObjectInfo, ...]
    several: bool


def _nobody(line: str) -> None:
    """Ignore a note."""


def _texts(table: pa.Table, column: str) -> list[str]:
    """A column as texts; equal ones share memory."""
    return [sys.intern(os.fsdecode(value)) for value in table[column].to_pylist()]


def _problems(names: Sequence[str], table: pa.Table) -> dict[int, Problem]:
    """Members that are no samples, regardless of their classes."""
    statuses, reasons = table["status"].to_pylist(), table["problem"].to_pylist()
    problems = {}
    for row, name in enumerate(names):
        if reasons[row] is not None:
            problems[row] = Problem(statuses[row], reasons[row])
        elif names[row + 1 : row + 2] == [name]:
            # A later member replaces an earlier one, as it does when a tar is unpacked.
            problems[row] = _REPLACED
        elif is_clutter(name):
            problems[row] = Problem("skipped", CLUTTER)
    return problems
