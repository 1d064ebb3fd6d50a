"""Image files in folders, local or on S3: one folder a class, or no classes at all."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dataprep.counted import counted
from dataprep.errors import ObjectNotFound, PermissionRefused, SourceNotFound
from dataprep.labels import is_synset
from dataprep.names import by_bytes, to_bytes
from dataprep.sources.classes import CLUTTER, classify, is_clutter, unclassified
from dataprep.sources.files import list_files, read_error, reads_at_once
from dataprep.sources.other_kinds import advice_for
from dataprep.sources.protocol import Listing, Located, Problem, Problems
from dataprep.stores import StoreOptions, open_store
from dataprep.stores.local import LocalStore


class ImageFolder:
    """One folder for each class, as in trees of ImageNet or Caltech-256. See ``classify``."""

    def __init__(self, uri: str, options: StoreOptions | None = None) -> None:
        self._store = open_store(uri, options)
        self.concurrency = reads_at_once(self._store)

    @property
    def uri(self) -> str:
        """The address of the folder."""
        return self._store.uri

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
                f"{self.uri!r} is a file, not a folder of images: give --kind ilsvrc for "
                "a tar, --kind listing for a table, --kind records for shards"
            )
        entries = list_files(self._store)
        if not entries:
            raise SourceNotFound(f"no files in {self.uri!r} (check --source)")
        entries.sort(key=lambda entry: to_bytes(entry.key))
        names = [entry.key for entry in entries]
        sizes = np.array([entry.bytes for entry in entries], dtype=np.int64)
        problems = {}
        for row, entry in enumerate(entries):
            if is_clutter(entry.key):
                problems[row] = Problem("skipped", CLUTTER)
            elif entry.problem:
                problems[row] = Problem("failed", entry.problem)
        classes = self._classes(names, problems)
        notes: tuple[str, ...] = ()
        if isinstance(self._store, LocalStore):  # an object store has no empty folders
            notes = _empty_folders(names, classes, self._store.root)
        return Listing(names, sizes, classes, problems, notes=notes)

    def _classes(self, names: Sequence[str], problems: Problems) -> Sequence[str]:
        advise = f"--source {self.uri.rstrip('/')}/{{}}".format
        absent = (
            f"no class folders with images in {self.uri!r}: expected CLASS/IMAGE.JPEG below "
            "it (or --kind flat, where a file gives the classes)" + advice_for(names)
        )
        return classify(names, problems, self.uri, advise, absent)


class FlatFolder(ImageFolder):
    """All images below a folder, without classes, such as ILSVRC2012's validation images."""

    def _classes(self, names: Sequence[str], problems: Problems) -> Sequence[str]:
        return unclassified(names, problems)


def _empty_folders(names: Sequence[str], classes: Sequence[str], root: Path) -> tuple[str, ...]:
    """A note of folders beside those of the classes that have no images, if there are any.

    A class that lost its images shifts the labels of those after it.
    """
    first = {group: name for group, name in zip(classes, names, strict=True) if group}
    folders: set[str] = set()
    for above in {name[: f"/{name}".index(f"/{group}/")] for group, name in first.items()}:
        with contextlib.suppress(OSError), os.scandir(root / above) as entries:
            folders.update(entry.name for entry in entries if entry.is_dir())
    empty = by_bytes(name for name in folders - first.keys() if not is_clutter(name))
    if all(map(is_synset, first)):
        empty = [*filter(is_synset, empty)]
    if not empty:
        return ()
    shown = ", ".join(map(repr, empty[:3])) + (", ..." if len(empty) > 3 else "")
    return (f"{counted(len(empty), 'folder')} without images, which make no class: {shown}",)
