"""PURE. Which class a file belongs to, by its folders."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence, Set

from dataprep.errors import SourceError, SourceNotFound
from dataprep.labels import is_synset
from dataprep.sources.other_kinds import advice_for
from dataprep.sources.protocol import Problem, Problems
from dataprep.sources.splits import find_splits

NO_CLASS = "in no class folder"
CLUTTER = "hidden or system file"

_SYNSET = -1  # stands for a depth: the class is the folder named as a synset
_EXTENSIONS = (
    "avif|bmp|dib|gif|heic|heif|j2k|jfif|jp2|jpe|jpeg|jpg|pbm|pgm|png|pnm|ppm|tif|tiff|webp"
)

# Patterns, since a function of Python for each of a million names takes seconds.
promises_image = re.compile(rf"[^/]\.(?:{_EXTENSIONS})\Z", re.IGNORECASE | re.ASCII).search
"""Whether a file of this name is expected to be an image: a match, or None. The content decides
the codec; the name only decides whether something else is a failure or is skipped."""

_lacks_extension = re.compile(r"(?:\A|/)[^./]*\Z").search

_SYSTEM_NAMES = "|".join(
    (
        r"(?:eh)?thumbs\.db",
        r"desktop\.ini",
        "__MACOSX",
        r"lost\+found",
        r"\$RECYCLE\.BIN",
        "System Volume Information",
        "@eaDir",  # Synology; so are the next two
        "#recycle",
        "#snapshot",
        "@Recycle",  # QNAP
        "@Recently-Snapshot",
        r"\.Trash[^/]*",
        r"\.ipynb_checkpoints",
        r"\.DS_Store",
        r"\._[^/]*",
    )
)

is_system = re.compile(rf"(?:\A|/)(?:{_SYSTEM_NAMES})(?:/|\Z)", re.IGNORECASE | re.ASCII).search
"""Whether a path is what an operating system or a NAS leaves behind: a match, or None."""

is_clutter = re.compile(
    rf"(?:\A|/)(?:\.|(?:{_SYSTEM_NAMES})(?:/|\Z))", re.IGNORECASE | re.ASCII
).search
"""Whether a path is hidden, or what a system leaves behind: a match, or None."""


def commonest(problems: Problems) -> str:
    """The most frequent reason why entries are no samples, to append to an error."""
    counts = Counter(problem.reason for problem in problems.values())
    if not counts:
        return ""
    reason, count = counts.most_common(1)[0]
    return f"; {count:,} of its files: {reason}"


def classify(
    names: Sequence[str],
    problems: Problems,
    uri: str,
    advise: Callable[[str], str],
    absent: str,
    *,
    splits_are_classes: bool = False,
) -> list[str]:
    """The class of each file. Files that are in no class of images join ``problems``.

    Where no name of the source has the extension of an image, names without any extension promise
    one.

    Args:
        names: paths.
        problems: what is known to be no sample.
        uri: the source, for errors.
        advise: gives the options that take one folder of the source alone; of an empty one, all.
        absent: the error where there is no sample in the end.
        splits_are_classes: whether folders that look like splits are read as classes.

    Raises:
        SourceNotFound: every entry has a problem.
        SourceError: several splits, or two kinds of classes.
    """
    why = commonest(problems)
    skipped = {row for row, problem in problems.items() if problem.status == "skipped"}
    visible = [name for row, name in enumerate(names) if row not in skipped]
    # Names without an extension are images only where nothing calls for another kind of source.
    are_plain = not any(map(promises_image, visible)) and not advice_for(visible)
    promises = _lacks_extension if are_plain else promises_image
    folders = {tuple(name.split("/")[:-1]) for name in filter(promises, visible)}
    splits = find_splits(folders)
    if splits and not splits_are_classes:
        raise SourceError(splits.message(uri, advise))
    if splits and len(splits.folders) > 1:
        depth = splits.depth
    else:
        depth = _class_depth(folders, uri, advise)
    classes = [""] * len(names)
    promising = {""}
    for row, name in enumerate(names):
        if row not in skipped:
            classes[row] = _class_of(name.split("/")[:-1], depth)
        if promises(name):
            promising.add(classes[row])
    for row, group in enumerate(classes):
        if row not in problems and not group:
            problems[row] = Problem("skipped", NO_CLASS)
        elif row not in problems and group not in promising:
            problems[row] = Problem("skipped", "its folder holds no images")
            classes[row] = ""
    if len(problems) == len(names):
        raise SourceNotFound(absent + why)
    return classes


def unclassified(names: Sequence[str], problems: Problems) -> list[str]:
    """No class for each file. Files that are not named as images join ``problems``."""
    for row, name in enumerate(names):
        if row not in problems and not promises_image(name):
            problems[row] = Problem("skipped", "not named as an image")
    return [""] * len(names)


def _class_of(parts: Sequence[str], depth: int) -> str:
    """The class among the folders of a path; empty for a path in no class folder."""
    if depth == _SYNSET:
        return next(filter(is_synset, parts), "")
    return parts[depth] if len(parts) > depth else ""


def _class_depth(folders: Set[tuple[str, ...]], uri: str, advise: Callable[[str], str]) -> int:
    """How many folders are above the class in a path, or ``_SYNSET``.

    Where a path has a folder named as a WordNet synset, that is the class. Otherwise folders
    that all paths have in common are passed over, and the first that differs is the class.
    ``folders`` are those of files that promise images.
    """
    inside = sorted(parts for parts in folders if any(map(is_synset, parts)))
    outside = sorted(folders - {*inside} - {()})
    depth = _SYNSET if inside and not outside else _first_difference(folders)
    if inside and outside:
        raise SourceError(
            f"{uri!r} mixes WordNet folders such as {'/'.join(inside[0])!r} with others such "
            f"as {'/'.join(outside[0])!r}, and either could be the classes: move one elsewhere, or "
            f"take the folder of one, as in {advise('FOLDER')}"
        )
    return depth


def _first_difference(folders: Iterable[tuple[str, ...]]) -> int:
    """How many folders all paths share before the class folder."""
    paths = [parts for parts in folders if parts]
    shared = len(os.path.commonprefix(paths))  # noqa: RUF071  they are tuples
    below = {parts[shared] for parts in paths if len(parts) > shared}
    # One folder more is a class, or is in one.
    return shared if len(below) > 1 else max(0, shared - 1)
