"""Class folders, local or on S3: ImageNet's trees, Caltech-256's, and plain ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import PurePosixPath

import numpy as np

from dataprep.errors import ObjectNotFound, SourceError, SourceNotFound
from dataprep.labels import is_synset
from dataprep.names import to_bytes
from dataprep.sources.files import read_file
from dataprep.sources.protocol import REMOTE_READS, Listing, Located, Problem
from dataprep.stores import ObjectInfo, StoreOptions, open_store
from dataprep.stores.local import LocalStore

IMAGE_EXTENSIONS = frozenset(
    (
        *(".jpeg", ".jpg", ".jpe", ".jfif", ".png", ".gif", ".bmp", ".dib", ".tif", ".tiff"),
        *(".webp", ".ppm", ".pgm", ".pbm", ".pnm", ".jp2", ".j2k", ".avif", ".heic", ".heif"),
    )
)
"""Names that promise an image. The content decides the codec; the name only decides whether
something else is a failure or clutter."""

NO_CLASS = "in no class folder"
_MAGIC = (b"\xff\xd8\xff", b"\x89PNG", b"GIF8", b"RIFF", b"BM", b"II*\0", b"MM\0*")
_SPLITS = frozenset({"train", "training", "val", "valid", "validation", "test"})
_CLUTTER = frozenset({"Thumbs.db", "desktop.ini", "__MACOSX"})


def promises_image(name: str) -> bool:
    """Whether a file of this name is expected to be an image."""
    return PurePosixPath(name).suffix.lower() in IMAGE_EXTENSIONS


class ImageFolder:
    """One folder a class.

    Where a path has a folder named as a WordNet synset, that is the class. Otherwise folders
    that everything has in common are passed over, and the first that differs is the class.
    """

    def __init__(self, uri: str, options: StoreOptions | None = None) -> None:
        self._store = open_store(uri, options)
        self.concurrency = 1 if isinstance(self._store, LocalStore) else REMOTE_READS

    @property
    def uri(self) -> str:
        """Where the folder lies."""
        return self._store.uri

    def read(self, item: Located) -> bytes:
        """One file's bytes."""
        return read_file(self._store, item.name, self.uri)

    def list(self) -> Listing:
        """All files below the folder, sorted by the bytes of their names."""
        try:
            entries = sorted(self._store.list(), key=lambda entry: to_bytes(entry.key))
        except ObjectNotFound as error:
            if isinstance(self._store, LocalStore) and self._store.root.is_file():
                raise SourceNotFound(
                    f"{self.uri!r} is a file, not a folder of images: for a table of them give "
                    "--kind listing, for shards --kind records"
                ) from None
            raise SourceNotFound(f"{error} (check --source)") from None
        except OSError as error:
            raise SourceError(f"cannot list {self.uri}: {error}") from None
        if not entries:
            raise SourceNotFound(f"no files in {self.uri!r}: nothing lies there (check --source)")
        return self._listing(entries)

    def _listing(self, entries: Sequence[ObjectInfo]) -> Listing:
        problems = {row: p for row, entry in enumerate(entries) if (p := entry_problem(entry))}
        visible = [
            entry.key
            for row, entry in enumerate(entries)
            if row not in problems or problems[row].status == "failed"
        ]
        classes_of = _ClassRule(visible, self.uri)
        classes = [
            "" if row in problems and problems[row].status == "skipped" else classes_of(entry.key)
            for row, entry in enumerate(entries)
        ]
        promising = {
            group
            for group, entry in zip(classes, entries, strict=True)
            if group and promises_image(entry.key)
        }
        promising |= self._promising_by_content(entries, classes, promising, problems)
        if not promising:
            raise SourceNotFound(
                f"no class folders with images in {self.uri!r}: expected CLASS/IMAGE.JPEG below "
                "it (or --kind flat, where a file tells the classes)" + commonest(problems)
            )
        for row, group in enumerate(classes):
            if row not in problems and group not in promising:
                where = NO_CLASS if not group else "its folder holds no images"
                problems[row] = Problem("skipped", where)
                classes[row] = ""
        return Listing(
            names=[entry.key for entry in entries],
            sizes=np.array([entry.bytes for entry in entries], dtype=np.int64),
            classes=classes,
            problems=problems,
        )

    def _promising_by_content(
        self,
        entries: Sequence[ObjectInfo],
        classes: Sequence[str],
        promising: set[str],
        problems: dict[int, Problem],
    ) -> set[str]:
        """Classes whose files have no extension at all, of which the first one is an image."""
        first: dict[str, str] = {}
        for row, (group, entry) in enumerate(zip(classes, entries, strict=True)):
            undecided = group and group not in promising and row not in problems
            if undecided and entry.bytes and not PurePosixPath(entry.key).suffix:
                first.setdefault(group, entry.key)
        return {group for group, key in first.items() if self._looks_like_an_image(key)}

    def _looks_like_an_image(self, key: str) -> bool:
        try:
            return self._store.get_range(key, 0, 16).startswith(_MAGIC)
        except OSError:
            return False


def commonest(problems: dict[int, Problem]) -> str:
    """The commonest reason why entries are no samples, to append to an error."""
    counts = Counter(problem.reason for problem in problems.values())
    if not counts:
        return ""
    reason, count = counts.most_common(1)[0]
    return f"; {count:,} of its files: {reason}"


def entry_problem(entry: ObjectInfo) -> Problem | None:
    """Why a file is no sample, whatever it holds."""
    if any(part.startswith(".") or part in _CLUTTER for part in entry.key.split("/")):
        return Problem("skipped", "hidden or system file")
    if entry.problem:
        return Problem("failed", entry.problem)
    return None


class _ClassRule:
    """Which folder of a path is its class; only files that promise images decide."""

    def __init__(self, keys: Sequence[str], uri: str) -> None:
        folders = [key.split("/")[:-1] for key in keys if promises_image(key)]
        inside = [parts for parts in folders if any(map(is_synset, parts))]
        outside = [parts for parts in folders if parts and not any(map(is_synset, parts))]
        self._by_synset = bool(inside) and not outside
        self._depth = 0 if self._by_synset else _first_difference(folders)
        splits = self._splits(folders)
        if len(splits) > 1:
            first = min(splits)
            raise SourceError(
                f"{uri!r} holds several splits ({', '.join(sorted(splits))}): shard one at a "
                f"time, as in --source {uri.rstrip('/')}/{splits[first]} --split {first}"
            )

        if inside and outside:
            raise SourceError(
                f"{uri!r} mixes WordNet folders such as {'/'.join(inside[0])!r} with others such "
                f"as {'/'.join(outside[0])!r}, and either could be the classes: move one of them "
                "elsewhere"
            )

    def _splits(self, folders: Sequence[Sequence[str]]) -> dict[str, str]:
        """The path of each folder that is named as a split and holds class folders."""
        if not self._by_synset:
            groups = {self._group(parts): "/".join(parts[: self._depth + 1]) for parts in folders}
            groups.pop("", None)
            return groups if groups.keys() <= _SPLITS else {}
        return {
            parts[i - 1]: "/".join(parts[:i])
            for parts in folders
            for i, part in enumerate(parts)
            if i and is_synset(part) and parts[i - 1] in _SPLITS
        }

    def __call__(self, key: str) -> str:
        return self._group(key.split("/")[:-1])

    def _group(self, parts: Sequence[str]) -> str:
        if self._by_synset:
            return next((part for part in parts if is_synset(part)), "")
        return parts[self._depth] if len(parts) > self._depth else ""


def _first_difference(folders: Sequence[Sequence[str]]) -> int:
    """How many folders all paths share before the class folder."""
    depth = 0
    while True:
        here = {parts[depth] for parts in folders if len(parts) > depth}
        below = {parts[depth + 1] for parts in folders if len(parts) > depth + 1}
        direct = any(len(parts) == depth + 1 for parts in folders)
        # Images and one folder more: that is a class with a folder in it.
        if len(here) != 1 or not below or (direct and len(below) == 1):
            return depth
        depth += 1
