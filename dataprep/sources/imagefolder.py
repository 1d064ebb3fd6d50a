"""Kinds ``imagefolder`` and ``flat``: image files in folders, with or without classes."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence

import numpy as np

from dataprep.errors import ObjectNotFound, PermissionRefused, SourceError, SourceNotFound
from dataprep.labels import is_synset
from dataprep.message_text import counted, listed
from dataprep.name_encoding import by_bytes
from dataprep.sources.exclusion import exclude_option
from dataprep.sources.file_names import advice_for, promises_image
from dataprep.sources.files import FilesSource, list_files, translated_read_error
from dataprep.sources.folder_classes import classify, unclassified
from dataprep.sources.local_tree import Tree, problem_of
from dataprep.sources.protocol import Listing, Located, Problem, Problems
from dataprep.sources.split_folders import find_different_splits
from dataprep.stores.local import LocalStore
from dataprep.stores.protocol import BROKEN

_begins_with_synset = re.compile(r"(?:.*/)?(n\d{8})[_.-][^/]*", re.DOTALL).fullmatch


class ImageFolder(FilesSource):
    """A folder with one folder for each class, as in ImageNet or Caltech-256. See ``classify``."""

    form = "class folders"

    def read(self, item: Located) -> bytes:
        """Return the bytes of one file."""
        try:
            return self._store.get(item.name)
        except (ObjectNotFound, PermissionRefused) as error:
            raise translated_read_error(error, self._store, item.name, self.uri) from None

    def list(self) -> Listing:
        """List all files below the folder, sorted by the bytes of their names."""
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
                continue
            problem = problem_of(entries[name])
            if problem:
                problems[row] = problem
        classes = self._classes(names, problems)
        return Listing(
            names,
            sizes,
            classes,
            problems,
            notes=(*self._notes_of_empty_folders(names, classes, tree), *tree.notes()),
            form=self.form,
            unread=tuple(tree.unread),
        )

    def _notes_of_empty_folders(
        self, names: Sequence[str], classes: Sequence[str], tree: Tree
    ) -> Sequence[str]:
        """At most one note: the folders without images beside the class folders."""
        left_out = self._exclusion.reasons(tree.folders)
        folders = [key for index, key in enumerate(tree.folders) if index not in left_out]
        empty = _empty_class_folders(names, classes, folders)
        if not empty:
            return []
        count = counted(len(empty), "folder")
        return [f"{count} without images, which make no class: {listed(empty)}"]

    def _options_for(self, folder: str) -> str:
        """The command-line options that read one folder of the source.

        Args:
            folder: the path of the folder below the source; empty for the whole source.
        """
        root = self.uri.rstrip("/")
        uri = f"{root}/{folder}" if folder else root
        return f"--source {shlex.quote(uri)}"

    def _classes(self, names: Sequence[str], problems: Problems) -> Sequence[str]:
        """The class of each file. Files that are not samples are added to ``problems``.

        Raises:
            SourceNotFound, SourceError: as ``classify`` and the checks of this module.
        """
        no_samples_message = (
            f"no class folders with images in {self.uri!r}: expected CLASS/IMAGE.JPEG below "
            "it (or --kind flat, where a file gives the classes)" + advice_for(names)
        )
        classes = classify(
            names,
            problems,
            self.uri,
            self._options_for,
            no_samples_message,
            splits_are_classes=self._splits_are_classes,
        )
        _refuse_broken_links(self.uri, names, classes, problems)
        if not self._splits_are_classes:
            _refuse_shared_synsets(self.uri, names, classes)
        return classes


class FlatFolder(ImageFolder):
    """All images below a folder, without classes, such as ILSVRC2012's validation images."""

    form = "a folder of images"

    def _options_for(self, folder: str) -> str:
        return f"{super()._options_for(folder)} --kind flat"

    def _classes(self, names: Sequence[str], problems: Problems) -> Sequence[str]:
        folders = set()
        for row, name in enumerate(names):
            is_skipped = row in problems and problems[row].status == "skipped"
            if promises_image(name) and not is_skipped:
                folders.add(tuple(name.split("/")[:-1]))
        splits = find_different_splits(folders)
        if splits and not self._splits_are_classes:
            raise SourceError(splits.message(self.uri, self._options_for, has_classes=False))
        classes = unclassified(names, problems)
        _refuse_broken_links(self.uri, names, classes, problems)
        return classes


def _refuse_broken_links(
    uri: str, names: Sequence[str], classes: Sequence[str], problems: Problems
) -> None:
    """Refuse a broken link that could be a link to a folder of images.

    A link is not refused if it has the name of an image, or if it is in a class folder and images
    have no extensions. It is then a failed sample.

    Raises:
        SourceError: a broken link could be a link to a folder.
    """
    broken_rows = [row for row, problem in problems.items() if problem.reason.startswith(BROKEN)]
    if not broken_rows:
        return
    have_extensions = any(map(promises_image, names))
    for row in broken_rows:
        name = names[row]
        if promises_image(name) or (classes[row] and not have_extensions):
            continue
        raise SourceError(
            f"{uri.rstrip('/')}/{name} is a link whose target does not exist. If the target was a "
            "folder, the images of that folder would be missing: restore the target, remove the "
            f"link, or leave it out with {exclude_option(name)}"
        )


def _refuse_shared_synsets(uri: str, names: Sequence[str], classes: Sequence[str]) -> None:
    """Refuse folders that are not classes, because the names of the images contain the classes.

    Folders are refused if none of them is named by a synset, the name of every image begins with a
    synset, there are at least two synsets, and two folders have images of the same synset.

    Raises:
        SourceError: the folders are refused.
    """
    folder_by_synset: dict[str, str] = {}
    shared: tuple[str, str] | None = None
    for name, folder in zip(names, classes, strict=True):
        if not folder:
            continue
        match = _begins_with_synset(name)
        if is_synset(folder) or match is None:
            return
        synset = match[1]
        if folder_by_synset.setdefault(synset, folder) != folder:
            shared = (synset, folder)
    if shared is None or len(folder_by_synset) == 1:
        return
    synset, folder = shared
    folders = f"{folder_by_synset[synset]!r} and {folder!r}"
    raise SourceError(
        f"{uri!r}: the names of images begin with synsets, and {folders} both have images of "
        f"{synset}, so that folders are no classes. Write a CSV file of paths and synsets and read "
        "it with --kind listing. If these folders are the classes, give "
        "--set labels.split_folders=classes"
    )


def _empty_class_folders(
    names: Sequence[str], classes: Sequence[str], folders: Sequence[str]
) -> Sequence[str]:
    """The names of the folders without images beside the class folders.

    They get no labels, because an object store has no empty folders, and labels must not depend on
    the store. If all classes are synsets, only the names of synsets are returned.

    Args:
        names: the path of each file.
        classes: the class of each file; empty if it has none.
        folders: the paths of all folders that are not left out.
    """
    classes_and_names = zip(classes, names, strict=True)
    name_by_class = {class_name: name for class_name, name in classes_and_names if class_name}
    # The parents of class folders, each with a slash at its end; empty for the source itself.
    parents = set()
    for class_name, name in name_by_class.items():
        end = f"/{name}".index(f"/{class_name}/")
        parents.add(name[:end])
    siblings = set()
    for path in folders:
        parent, slash, folder = path.rpartition("/")
        if parent + slash in parents:
            siblings.add(folder)
    empty = by_bytes(siblings - name_by_class.keys())
    if all(map(is_synset, name_by_class)):
        return [folder for folder in empty if is_synset(folder)]
    return empty
