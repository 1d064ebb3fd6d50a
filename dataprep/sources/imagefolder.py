"""Class folders, local or on S3: ImageNet's trees, Caltech-256's, and plain ones."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

import numpy as np

from dataprep.errors import ObjectNotFound, PermissionRefused, SourceError, SourceNotFound
from dataprep.names import to_bytes
from dataprep.sources.classes import (
    CLUTTER,
    NO_CLASS,
    ClassRule,
    begins_as_image,
    classify,
    commonest,
    is_clutter,
    promises_image,
)
from dataprep.sources.empty_folders import empty_folders
from dataprep.sources.files import read_error
from dataprep.sources.folder_links import doubled_folders
from dataprep.sources.protocol import REMOTE_READS, Listing, Located, Problem
from dataprep.stores import ObjectInfo, StoreOptions, open_store
from dataprep.stores.local import LocalStore

__all__ = ["NO_CLASS", "ImageFolder", "commonest", "entry_problem", "promises_image"]


_KEY = attrgetter("key")


class ImageFolder:
    """One folder a class, as ``ClassRule`` finds it."""

    def __init__(self, uri: str, options: StoreOptions | None = None) -> None:
        self._store = open_store(uri, options)
        self.concurrency = 1 if isinstance(self._store, LocalStore) else REMOTE_READS

    @property
    def uri(self) -> str:
        """Where the folder lies."""
        return self._store.uri

    def read(self, item: Located) -> bytes:
        """One file's bytes."""
        try:
            return self._store.get(item.name)
        except (ObjectNotFound, PermissionRefused) as error:
            raise read_error(error, self._store, item.name, self.uri) from None

    def list(self) -> Listing:
        """All files below the folder, sorted by the bytes of their names."""
        try:
            entries = list(self._store.list())
            ascii_only = "".join([entry.key for entry in entries]).isascii()
            entries.sort(key=_KEY if ascii_only else lambda entry: to_bytes(entry.key))
        except ObjectNotFound as error:
            if isinstance(self._store, LocalStore) and self._store.root.is_file():
                raise SourceNotFound(
                    f"{self.uri!r} is a file, not a folder of images: give --kind ilsvrc for "
                    "a tar, --kind listing for a table, --kind records for shards"
                ) from None
            raise SourceNotFound(f"{error} (check --source)") from None
        except OSError as error:
            why = str(error).removeprefix(f"{self.uri}: ")
            raise SourceError(f"cannot list {self.uri}: {why}") from None
        if not entries:
            raise SourceNotFound(f"no files in {self.uri!r}: nothing lies there (check --source)")
        return self._listing(entries)

    def _listing(self, entries: Sequence[ObjectInfo]) -> Listing:
        problems = {
            row: problem
            for row, entry in enumerate(entries)
            if (is_clutter(entry.key) or entry.problem) and (problem := entry_problem(entry))
        }

        def rule(visible: Sequence[str]) -> ClassRule:
            return ClassRule(visible, self.uri, self._advise)

        def is_image(row: int) -> bool:
            return entries[row].bytes > 0 and self._looks_like_an_image(entries[row].key)

        names = [entry.key for entry in entries]
        classes, found, promising = classify(names, problems, rule, is_image)
        if not promising:
            raise SourceNotFound(
                f"no class folders with images in {self.uri!r}: expected CLASS/IMAGE.JPEG below "
                "it (or --kind flat, where a file tells the classes)" + commonest(problems)
            )
        # An object store has no folders without objects.
        root = self._store.root if isinstance(self._store, LocalStore) else None
        samples = [name for row, name in enumerate(names) if row not in found]
        return Listing(
            names=names,
            sizes=np.array([entry.bytes for entry in entries], dtype=np.int64),
            classes=classes,
            problems=found,
            notes=(
                *empty_folders(names, classes, found, root),
                *(doubled_folders(samples, root) if root else ()),
            ),
        )

    def _advise(self, folder: str) -> str:
        return f"--source {self.uri.rstrip('/')}/{folder}"

    def _looks_like_an_image(self, key: str) -> bool:
        try:
            return begins_as_image(self._store.get_range(key, 0, 16))
        except OSError:
            return False


def entry_problem(entry: ObjectInfo) -> Problem | None:
    """Why a file is no sample, whatever it holds."""
    if is_clutter(entry.key):
        return Problem("skipped", CLUTTER)
    if entry.problem:
        return Problem("failed", entry.problem)
    return None
