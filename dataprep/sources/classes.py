"""PURE. Which class a file belongs to, by the folders it lies in."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePosixPath

from dataprep.errors import SourceError
from dataprep.labels import is_synset
from dataprep.sources.protocol import Problem
from dataprep.stores.protocol import LEAVES

IMAGE_EXTENSIONS = frozenset(
    (
        *(".jpeg", ".jpg", ".jpe", ".jfif", ".png", ".gif", ".bmp", ".dib", ".tif", ".tiff"),
        *(".webp", ".ppm", ".pgm", ".pbm", ".pnm", ".jp2", ".j2k", ".avif", ".heic", ".heif"),
    )
)
"""Names that promise an image. The content decides the codec; the name only decides whether
something else is a failure or clutter."""

NO_CLASS = "in no class folder"
CLUTTER = "hidden or system file"
NO_IMAGES = "its folder holds no images"
NOT_NAMED_AS_IMAGE = "not named as an image"
SPLITS = frozenset({"train", "training", "val", "valid", "validation", "test"})
"""Folders that are splits, not classes."""

_REMEDIES = {
    LEAVES: " (copy what they lead to with cp -rL, or list it: --kind listing takes absolute paths)"
}
_MAGIC = (b"\xff\xd8\xff", b"\x89PNG", b"GIF8", b"RIFF", b"BM", b"II*\0", b"MM\0*")


_EXTENSIONS = "|".join(sorted(extension[1:] for extension in IMAGE_EXTENSIONS))
# Patterns, since a function of Python for each of a million names takes seconds.
promises_image = re.compile(rf"[^/]\.(?:{_EXTENSIONS})\Z", re.IGNORECASE | re.ASCII).search
"""Whether a file of this name is expected to be an image: a match, or None."""

is_clutter = re.compile(r"(?:\A|/)(?:\.|(?:Thumbs\.db|desktop\.ini|__MACOSX)(?:/|\Z))").search
"""Whether a path is hidden, or what an operating system leaves behind: a match, or None."""


def begins_as_image(first: bytes) -> bool:
    """Whether these are the first bytes of a common kind of image."""
    return first.startswith(_MAGIC)


def commonest(problems: dict[int, Problem]) -> str:
    """The commonest reason why entries are no samples, with a remedy, to append to an error."""
    counts = Counter(problem.reason for problem in problems.values())
    if not counts:
        return ""
    reason, count = counts.most_common(1)[0]
    return f"; {count:,} of its files: {reason}{_REMEDIES.get(reason, '')}"


def classify(
    names: Sequence[str],
    problems: Mapping[int, Problem],
    rule: Callable[[Sequence[str]], Callable[[str], str]],
    is_image: Callable[[int], bool],
) -> tuple[list[str], dict[int, Problem], set[str]]:
    """The class of each file, the problems with those added that classes make, and all classes.

    Args:
        names: paths.
        problems: what is known to be no sample.
        rule: makes a rule of paths to classes, from those that are to decide it.
        is_image: whether the file in a row begins as an image; asked of one file of each class
            in which no name promises images, where it has no extension.
    """
    found = dict(problems)
    visible = [
        name for row, name in enumerate(names) if row not in found or found[row].status == "failed"
    ]
    class_of = rule(visible)
    classes = [
        "" if row in found and found[row].status == "skipped" else class_of(name)
        for row, name in enumerate(names)
    ]
    promising = {
        group for group, name in zip(classes, names, strict=True) if group and promises_image(name)
    }
    first: dict[str, int] = {}
    for row, (group, name) in enumerate(zip(classes, names, strict=True)):
        undecided = group and group not in promising and row not in found
        if undecided and not PurePosixPath(name).suffix:
            first.setdefault(group, row)
    promising |= {group for group, row in first.items() if is_image(row)}
    for row, group in enumerate(classes):
        if row not in found and group not in promising:
            found[row] = Problem("skipped", NO_IMAGES if group else NO_CLASS)
            classes[row] = ""
    return classes, found, promising


class ClassRule:
    """Which folder of a path is its class; only files that promise images decide.

    Where a path has a folder named as a WordNet synset, that is the class. Otherwise folders
    that everything has in common are passed over, and the first that differs is the class.
    ``advise`` says how one folder alone is taken.

    Raises:
        SourceError: several splits, or two kinds of classes.
    """

    def __init__(self, keys: Sequence[str], uri: str, advise: Callable[[str], str]) -> None:
        folders = [key.split("/")[:-1] for key in keys if promises_image(key)]
        inside = [parts for parts in folders if any(map(is_synset, parts))]
        outside = [parts for parts in folders if parts and not any(map(is_synset, parts))]
        self._by_synset = bool(inside) and not outside
        self._depth = 0 if self._by_synset else _first_difference(folders)
        splits = self._splits(folders)
        if len(splits) > 1:
            first = "train" if "train" in splits else min(splits)
            raise SourceError(
                f"{uri!r} holds several splits ({', '.join(sorted(splits))}): shard one at a "
                f"time, as in {advise(splits[first])} --split {first}"
            )
        if inside and outside:
            above = next(parts[:i] for parts in inside for i, p in enumerate(parts) if is_synset(p))
            way_out = (
                f"take one, as in {advise('/'.join(above))}" if above else "move one elsewhere"
            )
            raise SourceError(
                f"{uri!r} mixes WordNet folders such as {'/'.join(inside[0])!r} with others such "
                f"as {'/'.join(outside[0])!r}, and either could be the classes: {way_out}"
            )

    def _splits(self, folders: Sequence[Sequence[str]]) -> dict[str, str]:
        """The path of each folder that is named as a split and holds class folders."""
        if not self._by_synset:
            groups = {self._group(parts): "/".join(parts[: self._depth + 1]) for parts in folders}
            groups.pop("", None)
            return groups if groups.keys() <= SPLITS else {}
        return {
            parts[i - 1]: "/".join(parts[:i])
            for parts in folders
            for i, part in enumerate(parts)
            if i and is_synset(part) and parts[i - 1] in SPLITS
        }

    def __call__(self, key: str) -> str:
        """The class of a path; empty where it lies in none."""
        return self._group(key.split("/")[:-1])

    def _group(self, parts: Sequence[str]) -> str:
        if self._by_synset:
            return next(filter(is_synset, parts), "")
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
