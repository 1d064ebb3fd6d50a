"""ILSVRC2012 as downloaded, read in place: a tar of tars, a flat tar, a tree in a tar."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from dataprep.archives.archives import Archives, Inflating, container_of
from dataprep.archives.inflation import cost_in_words
from dataprep.archives.tar_index import TarIndex, tidy
from dataprep.errors import (
    NotAnArchive,
    ObjectNotFound,
    PermissionRefused,
    SourceError,
    SourceNotFound,
)
from dataprep.ordered import in_order
from dataprep.sources.classes import (
    CLUTTER,
    NOT_NAMED_AS_IMAGE,
    SPLITS,
    ClassRule,
    begins_as_image,
    classify,
    commonest,
    is_clutter,
    promises_image,
)
from dataprep.sources.options import ILSVRCOptions
from dataprep.sources.protocol import REMOTE_READS, Listing, Located, Problem
from dataprep.sources.tar_members import TarMembers
from dataprep.sources.tar_names import in_name_order, unpacked
from dataprep.stores import ObjectInfo, Store, StoreOptions, open_store
from dataprep.stores.local import LocalStore

REPLACED = "a later member of the archive has the same name"


class ILSVRC:
    """Images in tar archives, of which only headers and the images themselves are read.

    ``uri`` is one archive (ILSVRC2012's train tar of tars, its flat validation tar, any tree in a
    tar), or a folder of tars, one a class. What is a tar and what is compressed is told by
    content. An image within ``n01440764.tar`` is called ``n01440764/NAME``, as if that tar had
    been unpacked into a folder; classes then are those of class folders. Where images lie in no
    folder, none has a class.
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
        self._note: Callable[[str], None] = _nobody
        local = isinstance(self._folder, LocalStore)
        self.concurrency = 1 if local else REMOTE_READS

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_note": _nobody}

    @property
    def uri(self) -> str:
        """Where the archive, or the folder of archives, lies."""
        return self._folder.uri

    def announce_to(self, note: Callable[[str], None]) -> None:
        """Have ``note`` called with what costs time, before it does."""
        self._note = note

    def read(self, item: Located) -> bytes:
        """The bytes of one member."""
        return self._place.archives.read(item.container, item.offset, item.bytes)

    def list(self) -> Listing:
        """All members of all archives but folders, sorted by the bytes of their names."""
        self.__dict__.pop("_place", None)  # what lies there may have become something else
        found = self._members()
        order, replaced = in_name_order(found.names)
        for row in replaced:
            found.problems.setdefault(row, Problem("skipped", REPLACED))
        names = [os.fsdecode(found.names[row]) for row in order]
        problems = {
            row: found.problems[member]
            for row, member in enumerate(order)
            if member in found.problems
        }
        for row, name in enumerate(names):
            if row not in problems and is_clutter(name):
                problems[row] = Problem("skipped", CLUTTER)
        containers = [found.containers[row] for row in order]
        offsets = np.array(found.offsets, dtype=np.int64)[order]
        sizes = np.array(found.sizes, dtype=np.int64)[order]

        def is_image(row: int) -> bool:
            length = min(16, int(sizes[row]))
            data = self._place.archives.read(containers[row], int(offsets[row]), length)
            return begins_as_image(data)

        classes, problems = self._classes(names, problems, is_image)
        skipped = {order[row] for row, problem in problems.items() if problem.status == "skipped"}
        self._require_all(found.lost(skipped))
        return Listing(
            names=names,
            sizes=sizes,
            classes=classes,
            problems=problems,
            containers=containers,
            offsets=offsets,
        )

    def _classes(
        self, names: Sequence[str], problems: dict[int, Problem], is_image: Callable[[int], bool]
    ) -> tuple[Sequence[str], dict[int, Problem]]:
        """The class of each member, if folders tell it, and why others are no samples."""
        # A refused path names folders that are none.
        paths = [
            "" if row in problems and _leads_out(name) else name for row, name in enumerate(names)
        ]
        if _is_flat(name for row, name in enumerate(paths) if row not in problems):
            for row, name in enumerate(paths):
                if row not in problems and not promises_image(name):
                    problems[row] = Problem("skipped", NOT_NAMED_AS_IMAGE)
            return [""] * len(names), problems

        def rule(visible: Sequence[str]) -> ClassRule:
            return ClassRule(visible, self.uri, "--set ilsvrc.folder={}".format)

        classes, found, promising = classify(paths, problems, rule, is_image)
        if not promising:
            raise SourceNotFound(
                f"no images in {self.uri!r}: expected JPEGs in tars, or in folders in a tar"
                + commonest(problems)
            )
        return classes, found

    def _require_all(self, lost: Mapping[str, str]) -> None:
        """Refuse to go on without a tar that others like it say is a class."""
        if not lost:
            return
        tar, reason = next(iter(lost.items()))
        several = self._place.several
        name = self._address(tar) if several else f"{self.uri}: {tar!r}"
        others = f" (and {len(lost) - 1:,} more)" if len(lost) > 1 else ""
        way_out = "move it elsewhere" if several else "take it out of the archive (tar --delete)"
        raise SourceError(
            f"{name}: {reason}{others}. A class would be missing without it: fetch it again, or "
            f"{way_out} if it is none"
        )

    @cached_property
    def _place(self) -> _Place:
        """The archive itself, or all files of the folder."""
        parent, slash, key = self.uri.rpartition("/")
        if key and not parent.endswith(":/"):
            store = open_store(parent + "/" * (not parent) if slash else ".", self._options)
            if entry := _entry(store, key):
                return _Place(Archives(store, self._section.cache), (entry,), False)
        try:
            entries = [info for info in self._folder.list() if not is_clutter(info.key)]
        except ObjectNotFound as error:
            raise SourceNotFound(f"{error} (check --source)") from None
        except OSError as error:
            why = str(error).removeprefix(f"{self.uri}: ")
            raise SourceError(f"cannot list {self.uri}: {why}") from None
        if not entries:
            raise SourceNotFound(f"no archive at {self.uri!r}, nor any in it (check --source)")
        return _Place(Archives(self._folder, self._section.cache), tuple(sorted(entries)), True)

    def _members(self) -> TarMembers:
        place, members = self._place, TarMembers()
        threads = self.concurrency if self.concurrency > 1 else 0
        index_one = partial(self._index, inflating=self._told_once())
        indexes = in_order(index_one, place.entries, threads)
        for entry, index in zip(place.entries, indexes, strict=True):
            if isinstance(index, Problem):
                members.add_stray(entry.key, index)
            else:
                self._take(members, entry.key, index)
        if place.several and not any(members.containers):
            raise SourceNotFound(
                f"no tar archives in {self.uri!r}: for class folders leave --kind out"
                + commonest(members.problems)
            )
        folder = tidy(os.fsencode(self._section.folder or "") + b"/").strip(b"/")
        if not folder:
            return members
        part = members.below(folder + b"/")
        if not part.names:
            raise SourceNotFound(
                f"nothing lies below {os.fsdecode(folder)!r} in {self.uri!r} (ilsvrc.folder)"
            )
        return part

    def _told_once(self) -> Inflating:
        """Says what decompression costs, of a folder as if all in it were compressed."""
        first = threading.Lock()

        def tell(sizes: Sequence[int]) -> None:
            if not first.acquire(blocking=False):
                return
            several = self._place.several
            if several:
                sizes = [entry.bytes for entry in self._place.entries]
            self._note(f"{self.uri}: {cost_in_words(sizes, at_most=several)}")

        return tell

    def _index(self, entry: ObjectInfo, inflating: Inflating) -> TarIndex | Problem:
        """Where the members of an archive lie; or why a file of the folder is none."""
        if entry.problem:
            return Problem("failed", entry.problem)
        try:
            return self._place.archives.index(entry.key, self._note, inflating)
        except NotAnArchive as error:
            if not self._place.several:
                raise
            return Problem("skipped", str(error).removeprefix(f"{self._address(entry.key)}: "))
        except PermissionRefused as error:
            if not isinstance(self._folder, LocalStore):
                raise  # an expired token refuses everything: that is no property of an archive
            if not self._place.several:
                raise SourceError(f"{error} (check --source)") from None
            return Problem("failed", "permission denied")

    def _take(self, members: TarMembers, key: str, index: TarIndex) -> None:
        """Add what an archive holds, called as if every tar of a class had been unpacked."""
        if self._place.several and len(index.parts) > 1:
            raise SourceError(
                f"{self.uri!r} holds {key!r}, which is a tar of tars: shard one at a time, as in "
                f"--source {self.uri.rstrip('/')}/{key}"
            )
        for number, remark in index.remarks.items():
            within = f" {os.fsdecode(index.parts[number].name)!r}:" if number else ""
            self._note(f"{self._address(key)}:{within} {remark}")
        bounds = np.searchsorted(index.part, np.arange(len(index.parts) + 1)).tolist()
        for number, part in enumerate(index.parts):
            rows = slice(bounds[number], bounds[number + 1])
            names = index.names[rows]
            tar = os.fsdecode(part.name) if number else key if self._place.several else ""
            if tar:
                names = unpacked(os.fsencode(tar), names)
            members.add(names, index, rows, container_of(key, index, number), tar)

    def _address(self, key: str) -> str:
        """What an archive is called in messages."""
        return f"{self.uri.rstrip('/')}/{key}" if self._place.several else self.uri


class _Place(NamedTuple):
    """Where the archives are: one, or ``several`` in a folder."""

    archives: Archives
    entries: tuple[ObjectInfo, ...]
    several: bool


def _nobody(line: str) -> None:
    """Tell nobody."""


def _leads_out(name: str) -> bool:
    return name.startswith("/") or ".." in name.split("/")


def _is_flat(names: Iterable[str]) -> bool:
    """Whether images lie in no folder, or all in one that is called as a split is."""
    folders = {name.rpartition("/")[0] for name in names if promises_image(name)}
    return len(folders) == 1 and folders.pop().rpartition("/")[2] in SPLITS | {""}


def _entry(store: Store, key: str) -> ObjectInfo | None:
    """What lies there, unless it is nothing or a folder."""
    try:
        return store.head(key)
    except (ObjectNotFound, IsADirectoryError):
        return None
