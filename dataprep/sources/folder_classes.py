"""PURE. Find the class of each file from the folders in its path."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence, Set

from dataprep.errors import SourceError, SourceNotFound
from dataprep.labels import is_synset
from dataprep.sources.file_names import advice_for, lacks_extension, promises_image
from dataprep.sources.protocol import Problem, Problems
from dataprep.sources.split_folders import find_unclear_folders

NO_CLASS = "in no class folder"
"""The reason why a file outside all class folders is not a sample."""

_NO_IMAGES = "its folder holds no images"
_NO_IMAGE_NAME = "not named as an image"
_DEPTH_OF_SYNSET = -1
"""A value in place of a depth: the class is the first folder that is named by a synset."""


def most_common_reason(problems: Problems) -> str:
    """The most frequent reason why entries are not samples, as the end of an error message."""
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
    no_samples_message: str,
    *,
    splits_are_classes: bool = False,
) -> list[str]:
    """Return the class of each file; empty if it has none.

    Files in no class folder, and files in a class folder without images, are added to ``problems``.
    If no file has the extension of an image, files without an extension are expected to be images.

    Args:
        names: the paths of the files, below the source.
        problems: why files are not samples for other reasons, by their row.
        uri: the address of the source, for errors.
        advise: returns the command-line options that read one folder of the source. ``advise("")``
            returns those for the whole source.
        no_samples_message: the error message if there are no samples.
        splits_are_classes: whether folders that look like splits are read as classes.

    Raises:
        SourceNotFound: no file is a sample.
        SourceError: the folders look like splits and may not be classes, or some folders are
            synsets and others are not.
    """
    reason_before = most_common_reason(problems)
    skipped = {row for row, problem in problems.items() if problem.status == "skipped"}
    visible = [name for row, name in enumerate(names) if row not in skipped]
    is_likely_image = _likely_image_pattern(visible)
    folders = {_folders_of(name) for name in filter(is_likely_image, visible)}
    unclear = find_unclear_folders(folders)
    if unclear and not splits_are_classes:
        raise SourceError(unclear.message(uri, advise))
    # Folders that look like splits are the classes, if there are at least two of them.
    if unclear and len(unclear.folders) > 1:
        depth = unclear.depth
    else:
        depth = _class_depth(folders, uri, advise)
    classes = [""] * len(names)
    with_images = set()
    for row, name in enumerate(names):
        if row not in skipped:
            classes[row] = _class_of(_folders_of(name), depth)
        if is_likely_image(name):
            with_images.add(classes[row])
    _skip_files_without_class(classes, with_images, problems)
    if len(problems) == len(names):
        raise SourceNotFound(no_samples_message + reason_before)
    return classes


def _skip_files_without_class(
    classes: list[str], with_images: Set[str], problems: Problems
) -> None:
    """Add files to ``problems`` that are in no class folder, or in a class folder without images.

    Args:
        classes: the class of each file. It is set to an empty text if the class has no images.
        with_images: the classes that have images.
        problems: why files are not samples, by their row.
    """
    for row, class_name in enumerate(classes):
        if row in problems:
            continue
        if not class_name:
            problems[row] = Problem("skipped", NO_CLASS)
        elif class_name not in with_images:
            problems[row] = Problem("skipped", _NO_IMAGES)
            classes[row] = ""


def _likely_image_pattern(names: Sequence[str]) -> Callable[[str], object]:
    """The function that recognises likely images by their names.

    Names with the extension of an image are likely images. If there is no such name, and no name
    suggests another kind of source, names without an extension are likely images.
    """
    if any(map(promises_image, names)) or advice_for(names):
        return promises_image
    return lacks_extension


def unclassified(names: Sequence[str], problems: Problems) -> list[str]:
    """Return an empty class for each file.

    Files that are not named as images are added to ``problems``.
    """
    for row, name in enumerate(names):
        if row not in problems and not promises_image(name):
            problems[row] = Problem("skipped", _NO_IMAGE_NAME)
    return [""] * len(names)


def _folders_of(name: str) -> tuple[str, ...]:
    """The folders in the path of a file."""
    return tuple(name.split("/")[:-1])


def _class_of(folders: Sequence[str], depth: int) -> str:
    """The class among the folders of a path; empty if the path is in no class folder.

    Args:
        folders: the folders of the path, from the outermost one.
        depth: the result of ``_class_depth``.
    """
    if depth != _DEPTH_OF_SYNSET:
        return folders[depth] if len(folders) > depth else ""
    for folder in folders:
        if is_synset(folder):
            return folder
    return ""


def _class_depth(folders: Set[tuple[str, ...]], uri: str, advise: Callable[[str], str]) -> int:
    """The depth of the class folder: the number of folders above it, or ``_DEPTH_OF_SYNSET``.

    A folder that is named by a WordNet synset is the class. Without such folders, the class is the
    first folder in which paths differ. If paths differ in no folder, it is the last folder that all
    of them share.

    Args:
        folders: the folders of the files that are likely images.
        uri: the address of the source, for errors.
        advise: as for ``classify``.

    Raises:
        SourceError: some paths have a folder named by a synset, and others do not.
    """
    inside = sorted(names for names in folders if any(map(is_synset, names)))
    outside = sorted(folders - {*inside} - {()})
    if inside and outside:
        raise SourceError(
            f"{uri!r} mixes WordNet folders such as {'/'.join(inside[0])!r} with others such "
            f"as {'/'.join(outside[0])!r}, and either could be the classes: move one of them "
            f"elsewhere, or read one folder alone, as in {advise('FOLDER')}"
        )
    return _DEPTH_OF_SYNSET if inside else _depth_of_first_difference(folders)


def _depth_of_first_difference(folders: Iterable[tuple[str, ...]]) -> int:
    """The depth of the first folder in which paths differ, or of the last folder that all share."""
    paths = [names for names in folders if names]
    shared = len(os.path.commonprefix(paths))  # noqa: RUF071  they are tuples
    next_names = {names[shared] for names in paths if len(names) > shared}
    if len(next_names) > 1:
        return shared
    # There is a single class.
    return max(0, shared - 1)
