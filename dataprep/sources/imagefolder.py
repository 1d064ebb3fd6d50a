"""Image files in folders, local or on S3: one folder a class, or no classes at all."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence

import numpy as np

from dataprep.counted import counted
from dataprep.errors import ObjectNotFound, PermissionRefused, SourceError, SourceNotFound
from dataprep.labels import is_synset
from dataprep.names import by_bytes
from dataprep.sources.classes import classify, promises_image, unclassified
from dataprep.sources.files import FilesSource, list_files, read_error
from dataprep.sources.local_tree import problem_of, shown
from dataprep.sources.other_kinds import advice_for
from dataprep.sources.protocol import Listing, Located, Problem, Problems
from dataprep.sources.splits import find_different_splits
from dataprep.stores.local import LocalStore
from dataprep.stores.protocol import BROKEN

_begins_with_synset = re.compile(r"(?:.*/)?(n\d{8})[_.-][^/]*", re.DOTALL).fullmatch


class ImageFolder(FilesSource):
    """One folder for each class, as in trees of ImageNet or Caltech-256. See ``classify``."""

    form = "class folders"

    def read(self, item: Located) -> bytes:
        """One file's bytes."""
        try:
            return self._store.get(item.name)
        except (ObjectNotFound, PermissionRefused) as error:
            raise read_error(error, self._store, item.name, self.uri) from None

    def list(self) -> Listing:
        """All files below the folder, sorted by the bytes of their names."""
        if isinstance(self._store, LocalStore) and os.path.isfile(self._store.root):  # noqa: PTH113
            raise SourceNotFound(
                f"{self.uri!r} is a file, not a folder of images: give --kind ilsvrc or "
                "webdataset for a tar, --kind listing for a table, --kind records for shards"
            )
        tree = list_files(self._store, is_left_out=self._exclusion.reason)
        entries = {entry.key: entry for entry in tree.files}
        if not entries:
            raise SourceNotFound(f"no files in {self.uri!r} (check --source)")
        names = by_bytes(entries)
        sizes = np.array([entries[name].bytes for name in names], dtype=np.int64)
        left_out = self._exclusion.reasons(names)
        problems = {}
        for row, name in enumerate(names):
            if row in left_out:
                problems[row] = Problem("skipped", left_out[row])
            elif entries[name].problem and (problem := problem_of(entries[name])):
                problems[row] = problem
        classes = self._classes(names, problems)
        no_classes = self._exclusion.reasons(tree.folders)
        folders = [key for row, key in enumerate(tree.folders) if row not in no_classes]
        return Listing(
            names,
            sizes,
            classes,
            problems,
            notes=(*_empty_folders(names, classes, folders), *tree.notes()),
            form=self.form,
            unread=tuple(tree.unread),
        )

    def _options_for(self, folder: str) -> str:
        """The options that take one folder of the source; of an empty name, all of it."""
        root = self.uri.rstrip("/")
        return f"--source {shlex.quote(f'{root}/{folder}' if folder else root)}"

    def _classes(self, names: Sequence[str], problems: Problems) -> Sequence[str]:
        absent = (
            f"no class folders with images in {self.uri!r}: expected CLASS/IMAGE.JPEG below "
            "it (or --kind flat, where a file gives the classes)" + advice_for(names)
        )
        classes = classify(
            names,
            problems,
            self.uri,
            self._options_for,
            absent,
            splits_are_classes=self._splits_are_classes,
        )
        _require_folders(self.uri, names, classes, problems)
        if not self._splits_are_classes:
            _refuse_parts(self.uri, names, classes)
        return classes


class FlatFolder(ImageFolder):
    """All images below a folder, without classes, such as ILSVRC2012's validation images."""

    form = "a folder of images"

    def _options_for(self, folder: str) -> str:
        return f"{super()._options_for(folder)} --kind flat"

    def _classes(self, names: Sequence[str], problems: Problems) -> Sequence[str]:
        images = [
            name
            for row, name in enumerate(names)
            if promises_image(name) and (row not in problems or problems[row].status == "failed")
        ]
        folders = {tuple(name.split("/")[:-1]) for name in images}
        if not self._splits_are_classes and (splits := find_different_splits(folders)):
            raise SourceError(splits.message(self.uri, self._options_for, has_classes=False))
        classes = unclassified(names, problems)
        _require_folders(self.uri, names, classes, problems)
        return classes


def _require_folders(
    uri: str, names: Sequence[str], classes: Sequence[str], problems: Problems
) -> None:
    """Refuse a broken link that stands where a folder of images could.

    One that is called as an image is a failed sample. So is one in a class where images have no
    extensions, since nothing tells it from them.
    """
    broken = [row for row, problem in problems.items() if problem.reason.startswith(BROKEN)]
    if not broken:
        return
    have_extensions = any(map(promises_image, names))
    for row in broken:
        name = names[row]
        if promises_image(name) or (classes[row] and not have_extensions):
            continue
        raise SourceError(
            f"{uri.rstrip('/')}/{name} is a link whose target is not there. If it stands for a "
            "folder, the images of that folder would be missing: bring the target back, remove "
            f"the link, or leave it out with --exclude {shlex.quote(name)}"
        )


def _refuse_parts(uri: str, names: Sequence[str], classes: Sequence[str]) -> None:
    """Refuse folders that are parts of a data set, since the names of images carry the class.

    Every name begins with a synset, and folders share synsets, so that folders are no classes.
    """
    folder_of: dict[str, str] = {}
    shared: tuple[str, str] | None = None
    for name, group in zip(names, classes, strict=True):
        if not group:
            continue
        match = _begins_with_synset(name)
        if is_synset(group) or match is None:
            return
        if folder_of.setdefault(match[1], group) != group:
            shared = (match[1], group)
    if shared is None or len(folder_of) == 1:
        return
    synset, folder = shared
    folders = f"{folder_of[synset]!r} and {folder!r}"
    raise SourceError(
        f"{uri!r}: the names of images begin with synsets, and {folders} both have images of "
        f"{synset}, so that folders are no classes. Write a CSV file of paths and synsets and read "
        "it with --kind listing; if these folders are the classes, give "
        "--set labels.split_folders=classes"
    )


def _empty_folders(
    names: Sequence[str], classes: Sequence[str], folders: Sequence[str]
) -> tuple[str, ...]:
    """A note of folders beside those of the classes that have no images, if there are any.

    They get no labels: an object store has no empty folders, and labels do not depend on the
    store.
    """
    first = {group: name for group, name in zip(classes, names, strict=True) if group}
    parents = {name[: f"/{name}".index(f"/{group}/")] for group, name in first.items()}
    beside = {key.rpartition("/")[2] for key in folders if key[: key.rfind("/") + 1] in parents}
    empty = by_bytes(beside - first.keys())
    if all(map(is_synset, first)):
        empty = [*filter(is_synset, empty)]
    if not empty:
        return ()
    return (f"{counted(len(empty), 'folder')} without images, which make no class: {shown(empty)}",)
