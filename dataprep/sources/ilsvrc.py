"""ILSVRC2012 as downloaded, read in place: a tar of tars, a flat tar, a tree in a tar."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from dataprep.archives.archives import Archives, container_of
from dataprep.archives.tar_index import TarIndex
from dataprep.errors import NotAnArchive, ObjectNotFound, SourceError, SourceNotFound
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
from dataprep.sources.tar_names import in_name_order, unpacked
from dataprep.stores import Store, StoreOptions, open_store
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

    @cached_property
    def _place(self) -> _Place:
        """The archive itself, or all files of the folder."""
        parent, slash, key = self.uri.rpartition("/")
        if key and not parent.endswith(":/"):
            store = open_store(parent + "/" * (not parent) if slash else ".", self._options)
            if _holds(store, key):
                return _Place(Archives(store, self._section.cache), (key,), False)
        try:
            keys = sorted(info.key for info in self._folder.list() if not is_clutter(info.key))
        except ObjectNotFound as error:
            raise SourceNotFound(f"{error} (check --source)") from None
        except OSError as error:
            raise SourceError(f"cannot list {self.uri}: {error}") from None
        if not keys:
            raise SourceNotFound(f"no archive at {self.uri!r}, nor any in it (check --source)")
        return _Place(Archives(self._folder, self._section.cache), tuple(keys), True)

    def _members(self) -> _Members:
        place, members = self._place, _Members()
        threads = self.concurrency if self.concurrency > 1 else 0
        for key, index in zip(place.keys, in_order(self._index, place.keys, threads), strict=True):
            if isinstance(index, NotAnArchive):
                if not place.several:
                    raise index
                members.add_stray(key, str(index))
            else:
                self._take(members, key, index)
        if place.several and not any(members.containers):
            raise SourceNotFound(
                f"no tar archives in {self.uri!r}: for class folders leave --kind out"
            )
        if not (folder := (self._section.folder or "").strip("/")):
            return members
        part = members.below(os.fsencode(folder + "/"))
        if not part.names:
            raise SourceNotFound(f"nothing lies below {folder!r} in {self.uri!r} (ilsvrc.folder)")
        return part

    def _index(self, key: str) -> TarIndex | NotAnArchive:
        try:
            return self._place.archives.index(key, self._note)
        except NotAnArchive as error:
            return error

    def _take(self, members: _Members, key: str, index: TarIndex) -> None:
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
            if number or self._place.several:
                names = unpacked(part.name if number else os.fsencode(key), names)
            members.add(names, index, rows, container_of(key, index, number))

    def _address(self, key: str) -> str:
        """What an archive is called in messages."""
        return f"{self.uri.rstrip('/')}/{key}" if self._place.several else self.uri


class _Place(NamedTuple):
    """Where the archives are: one, or ``several`` in a folder."""

    archives: Archives
    keys: tuple[str, ...]
    several: bool


class _Members:
    """Members of archives as columns, in any order."""

    def __init__(self) -> None:
        self.names: list[bytes] = []
        self.sizes: list[int] = []
        self.containers: list[str] = []
        self.offsets: list[int] = []
        self.problems: dict[int, Problem] = {}

    def add(self, names: Sequence[bytes], index: TarIndex, rows: slice, container: str) -> None:
        """Add consecutive members of an index under these names."""
        shift = len(self.names) - rows.start
        for row in range(rows.start, rows.stop) if index.refused else ():
            if row in index.refused:
                self.problems[row + shift] = Problem("failed", index.refused[row])
        self.names.extend(names)
        self.sizes.extend(index.sizes[rows].tolist())
        self.offsets.extend(index.offsets[rows].tolist())
        self.containers.extend([container] * len(names))

    def add_stray(self, key: str, reason: str) -> None:
        """Add a file that is no archive; one that says it was fails."""
        promised = key.lower().endswith(".tgz") or ".tar" in key.lower()
        self.problems[len(self.names)] = Problem("failed" if promised else "skipped", reason)
        self.names.append(os.fsencode(key))
        self.sizes.append(0)
        self.offsets.append(0)
        self.containers.append("")

    def below(self, folder: bytes) -> _Members:
        """Those in ``folder``, as if that were the source."""
        kept = [row for row, name in enumerate(self.names) if name.startswith(folder)]
        part = _Members()
        part.problems = {
            place: self.problems[row] for place, row in enumerate(kept) if row in self.problems
        }
        part.names = [self.names[row][len(folder) :] for row in kept]
        part.sizes = [self.sizes[row] for row in kept]
        part.containers = [self.containers[row] for row in kept]
        part.offsets = [self.offsets[row] for row in kept]
        return part


def _nobody(line: str) -> None:
    """Tell nobody."""


def _leads_out(name: str) -> bool:
    return name.startswith("/") or ".." in name.split("/")


def _is_flat(names: Iterable[str]) -> bool:
    """Whether images lie in no folder, or all in one that is called as a split is."""
    folders = {name.rpartition("/")[0] for name in names if promises_image(name)}
    return len(folders) == 1 and folders.pop().rpartition("/")[2] in SPLITS | {""}


def _holds(store: Store, key: str) -> bool:
    try:
        store.head(key)
    except (ObjectNotFound, IsADirectoryError):
        return False
    return True
