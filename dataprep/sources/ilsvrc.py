"""ILSVRC2012 as downloaded, read in place: a tar of tars, a flat tar, a tree in a tar."""

from __future__ import annotations

import contextlib
import os
import posixpath
import sys
from collections.abc import Callable, Sequence
from functools import cache

import pyarrow as pa
import pyarrow.compute as pc

from dataprep.errors import (
    ConfigError,
    NotAnArchive,
    ObjectNotFound,
    PermissionRefused,
    SourceError,
    SourceNotFound,
)
from dataprep.ordered import in_order
from dataprep.samples import in_numpy
from dataprep.sources.archives import Archive, GzipContent, containers
from dataprep.sources.class_names import Classes
from dataprep.sources.classes import (
    CLUTTER,
    SPLITS,
    classify,
    is_clutter,
    promises_image,
    unclassified,
)
from dataprep.sources.files import list_files, reads_at_once, split_uri
from dataprep.sources.member_classes import (
    Members,
    classes_by_name,
    has_class_folders,
    named_classes,
    note_of_parts,
    parts_among,
    refuse_crowded_archives,
    refuse_webdataset,
)
from dataprep.sources.options import ILSVRCOptions
from dataprep.sources.other_kinds import advice_for
from dataprep.sources.protocol import Listing, Located, Problem, Problems
from dataprep.sources.tars import TAR_ENDING, index_tar, leaves_archive, no_archive
from dataprep.stores import ObjectInfo, Store, StoreOptions, open_store


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
        home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
        self._cache = self._section.cache or f"{home}/dataprep"
        self._containers: dict[str, Archive | GzipContent] = {}
        self.concurrency = reads_at_once(self._folder)

    @property
    def uri(self) -> str:
        """The address of the archive, or of the folder of archives."""
        return self._folder.uri

    def announce_to(self, note: Callable[[str], None]) -> None:
        """Have ``note`` called by the next ``list`` with what costs time, before it does."""
        self._note = note

    def read(self, item: Located) -> bytes:
        """The bytes of one member, once this source, or the one it is a copy of, was listed."""
        return self._containers[item.container].read(item.offset, item.bytes)

    def list(self) -> Listing:
        """All members of all archives but folders, sorted by the bytes of their names."""
        table = self._members()
        folder = posixpath.normpath(self._section.folder or "/").strip("/")
        below = f"{folder}/".lstrip("/")
        table = table.filter(pc.starts_with(table["name"], os.fsencode(below)))
        if not len(table):
            raise SourceNotFound(f"nothing is below {folder!r} in {self.uri!r} (ilsvrc.folder)")
        table = table.take(pc.sort_indices(table, [("name", "ascending")]))
        names = [os.fsdecode(name).removeprefix(below) for name in table["name"].to_pylist()]
        tars = [tar.removeprefix(below) for tar in _texts(table, "tar")]
        problems = _problems(names, table)
        known = dict(problems)
        classes = self._classes(names, tars, problems)
        self._require_all(names, tars, known, problems)
        return Listing(
            names=names,
            sizes=in_numpy(table["bytes"]),
            classes=classes.names,
            problems=problems,
            containers=_texts(table, "container"),
            offsets=in_numpy(table["offset"]),
            notes=classes.notes,
        )

    def _members(self) -> pa.Table:
        """The members of all archives, in the order of these; files that are none are rows too."""
        # A line once for all archives; not kept, since the source is pickled for workers. Without
        # a listener ``str`` takes the lines.
        note = cache(self.__dict__.pop("_note", str))
        store, entries, several = self._found()
        archives: dict[str, Archive] = {}

        def index(entry: ObjectInfo) -> pa.Table:
            if entry.problem:
                return no_archive(entry.key, "failed", entry.problem)
            try:
                archive = archives[entry.key] = Archive.of(store, entry.key, self._cache)
                return index_tar(archive, entry.key if several else "", note)
            except NotAnArchive as error:
                if not several:
                    raise
                return no_archive(entry.key, "skipped", str(error).removeprefix(f"{archive.uri}: "))
            except PermissionRefused as error:
                raise SourceError(f"{error} (check --source)") from None

        # A disk is read by this thread alone.
        table = pa.concat_tables(list(in_order(index, entries, self.concurrency - 1)))
        keys = {*_texts(table, "container")} - {""}
        if not keys:
            raise SourceNotFound(
                f"no members in {self.uri!r}, nor in tars there: for class folders leave --kind out"
                + advice_for(entry.key for entry in entries)
            )
        self._containers = containers(keys, archives)
        return table

    def _found(self) -> tuple[Store, Sequence[ObjectInfo], bool]:
        """The store of the archives, the files there, and whether they are a folder's."""
        with contextlib.suppress(ConfigError, ObjectNotFound):
            folder, key = split_uri(self.uri)
            store = open_store(folder, self._options)
            return store, [store.head(key)], False
        entries = [info for info in list_files(self._folder) if not is_clutter(info.key)]
        if not entries:
            raise SourceNotFound(f"no archive at {self.uri!r}, nor any in it (check --source)")
        return self._folder, sorted(entries), True

    def _classes(self, names: Sequence[str], tars: Sequence[str], problems: Problems) -> Classes:
        """The class of each member, if there are classes; what is no sample joins ``problems``.

        Raises:
            SourceError: it can be read in two ways.
        """
        # A path that is refused names folders that are none.
        paths = ["" if leaves_archive(name) else name for name in names]
        members = Members(self.uri, paths, tars, problems)
        inside = [members.inside(row) for row in range(len(names))]
        chosen = self._section.classes
        if chosen == "names":
            return Classes(classes_by_name(members))
        if chosen == "folders":
            return Classes(self._by_folders(inside, problems))
        if chosen == "archives":
            return Classes(self._by_folders(paths, problems))
        refuse_webdataset(members)
        if (synsets := named_classes(members)) is not None:
            return Classes(synsets)
        if parts := parts_among(members):
            note = note_of_parts(parts)
            if not has_class_folders(members):
                return Classes(unclassified(paths, problems), notes=(note,))
            return Classes(self._by_folders(inside, problems), notes=(note,))
        refuse_crowded_archives(members)
        return Classes(self._by_folders(paths, problems))

    def _by_folders(self, paths: Sequence[str], problems: Problems) -> Sequence[str]:
        """The class of each path, if folders give it; what is no sample joins ``problems``."""
        images = (name for row, name in enumerate(paths) if row not in problems)
        folders = {name.rpartition("/")[0] for name in filter(promises_image, images)}
        # Images in no folder, or all in one that is called as a split is.
        if len(folders) == 1 and folders.pop().rpartition("/")[2] in SPLITS | {""}:
            return unclassified(paths, problems)
        absent = f"no images in {self.uri!r}: expected JPEGs in tars, or in folders in a tar"
        advise = "--set ilsvrc.folder={}".format
        return classify(paths, problems, self.uri, advise, absent)

    def _require_all(
        self,
        names: Sequence[str],
        tars: Sequence[str],
        known: Problems,
        problems: Problems,
    ) -> None:
        """Refuse a source in which some tars are classes and another tar gives no sample.

        ``known`` are the problems apart from classes.
        """
        reasons: dict[str, str] = {}
        giving = set()
        for row, (name, tar) in enumerate(zip(names, tars, strict=True)):
            if tar and (row not in problems or problems[row].status == "failed"):
                giving.add(TAR_ENDING.sub("", tar))
            elif tar:
                reasons.setdefault(tar, "has no images")
            elif TAR_ENDING.search(name) and not is_clutter(name):
                reasons[name] = known[row].reason if row in known else "no tar archive"
        lost = [tar for tar in sorted(reasons) if TAR_ENDING.sub("", tar) not in giving]
        if not giving or not lost:
            return
        others = f" (and {len(lost) - 1:,} more)" if len(lost) > 1 else ""
        raise SourceError(
            f"{self.uri}: {lost[0]}: {reasons[lost[0]]}{others}. A class would be missing without "
            "it: fetch it again; if it is no class, move it elsewhere (within a tar: tar --delete)"
        )


def _texts(table: pa.Table, column: str) -> list[str]:
    """A column as texts; equal ones share memory."""
    return [sys.intern(os.fsdecode(value)) for value in table[column].to_pylist()]


def _problems(names: Sequence[str], table: pa.Table) -> Problems:
    """Members that are no samples, regardless of their classes."""
    statuses, reasons = table["status"].to_pylist(), table["problem"].to_pylist()
    problems = {}
    for row, name in enumerate(names):
        if reasons[row] is not None:
            problems[row] = Problem(statuses[row], reasons[row])
        elif names[row + 1 : row + 2] == [name]:
            # A later member replaces an earlier one, as it does when a tar is unpacked.
            problems[row] = Problem("skipped", "a later member of the archive has the same name")
        elif is_clutter(name):
            problems[row] = Problem("skipped", CLUTTER)
    return problems
