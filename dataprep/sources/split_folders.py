"""PURE. Find folders that look like splits of a data set, not like classes.

If folders such as ``train`` and ``val`` were read as class folders, they would become classes.
Therefore the source is refused, and the error has a command for each way to read it. The same holds
for folders that are named after the kind of their files, such as ``images`` and ``masks``. This
module calls both *unclear folders*.
"""

from __future__ import annotations

import os
import re
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from dataprep.labels import is_synset
from dataprep.sources.exclusion import literal_glob
from dataprep.sources.split_names import (
    is_named_after_files,
    is_not_a_class,
    is_one_split_word,
    names_of_splits,
    split_of,
)

_MAX_SIBLINGS_SHOWN = 5

_PathBelow: TypeAlias = tuple[str, ...]
"""A path from a folder down to an image: the names of the folders below that folder."""


@dataclass(frozen=True)
class UnclearFolder:
    """A folder that looks like a split, or is named after the kind of its files.

    Attributes:
        name: how the message names the folder.
        path: the path of the folder with the classes or images, below the source; empty for the
            source itself.
        split: a name for the split, valid for ``--split``; empty if the folder is no split.
        is_flat: whether it has images and no class folders.
        exclude: globs that leave out the other splits, if each class folder contains folders of
            the splits; else empty.
    """

    name: str
    path: str
    split: str
    is_flat: bool
    exclude: tuple[str, ...] = ()


@dataclass(frozen=True)
class UnclearFolders:
    """Sibling folders that look like splits, or are named after the kinds of their files.

    Attributes:
        depth: the number of folders above them in a path.
        folders: the folders.
        siblings: the names of the folders beside them that are not unclear.
        predicate: the rest of the sentence "SOURCE has folders that …" in the message.
        are_in_classes: whether each class folder contains folders of the splits.
    """

    depth: int
    folders: tuple[UnclearFolder, ...]
    siblings: tuple[str, ...]
    predicate: str = "look like splits, not classes"
    are_in_classes: bool = False

    @property
    def splits(self) -> set[str]:
        """The different splits that the folders look like."""
        return {split_of(folder.split) for folder in self.folders} - {""}

    def message(self, uri: str, advise: Callable[[str], str], *, has_classes: bool = True) -> str:
        """Return an error message for the source, with a command for each way to read it.

        Args:
            uri: the address of the source.
            advise: returns the command-line options that read one folder of the source.
                ``advise("")`` returns those for the whole source.
            has_classes: whether folders can be classes in this kind of source.
        """
        names = ", ".join(repr(folder.name) for folder in self.folders)
        beside = ""
        if self.siblings:
            siblings = ", ".join(repr(name) for name in self.siblings[:_MAX_SIBLINGS_SHOWN])
            beside = f" (beside {siblings})"
        lines = [f"{uri!r} has folders that {self.predicate}: {names}{beside}."]
        if self._are_splits:
            lines.append("To shard them, one split at a time:")
        else:
            lines.append("To shard one at a time:")
        options = [_options(folder, advise, has_classes) for folder in self.folders]
        lines.extend(f"  dataprep shard {text}" for text in options)
        if not has_classes or any(folder.is_flat for folder in self.folders):
            lines.append(
                "If a file gives the classes of images, write --set labels.ground_truth=FILE in "
                "place of --unlabelled."
            )
        if has_classes:
            lines.append(f"If {self._possible_classes()} are the classes:")
        else:
            lines.append("To read all as one split:")
        lines.append(
            f"  dataprep shard {advise('')} --set labels.split_folders=classes --output OUTPUT"
        )
        return "\n".join(lines)

    @property
    def _are_splits(self) -> bool:
        """Whether at least one of the folders looks like a split."""
        return any(folder.split for folder in self.folders)

    def _possible_classes(self) -> str:
        """The folders that become the classes if the user wants so, in the words of the message."""
        if self.are_in_classes:
            return "the folders above them"
        is_single = len(self.folders) == 1 and not self.siblings
        if is_single and self._are_splits:
            return "the folders in it"
        return "these folders"


def _options(folder: UnclearFolder, advise: Callable[[str], str], has_classes: bool) -> str:
    """The options of ``dataprep shard`` that read one of these folders."""
    options = advise(folder.path)
    if folder.is_flat or not has_classes:
        if " --kind " not in options:
            options = f"{options} --kind flat"
        options = f"{options} --unlabelled"
    for glob in folder.exclude:
        options = f"{options} --exclude {shlex.quote(glob)}"
    if folder.split:
        options = f"{options} --split {folder.split}"
    return f"{options} --output OUTPUT"


def find_unclear_folders(folders: Set[tuple[str, ...]]) -> UnclearFolders | None:
    """Find the topmost unclear folders; None if there are none.

    Sibling folders are unclear in these cases:

    - all of them look like splits or are named after the kind of their files;
    - some of them look like splits, and their content confirms it;
    - each of them contains folders that look like splits.

    A single folder that is named after the kind of its files is unclear only if it contains only
    images.

    The search begins at the top of the source. If there is only one folder, and it is not unclear,
    the search goes on inside it, unless it contains images directly or is named by a synset.

    Args:
        folders: the folders of all likely images, below the source. Each is a tuple of names.
    """
    paths = sorted(folders - {()})
    depth = 0
    while paths:
        level = _level_at(depth, paths)
        unclear = _unclear_among(level)
        if unclear is not None:
            return unclear
        if len(level.paths_by_folder) > 1:
            return _splits_in_each(level)
        ((name, paths_below),) = level.paths_by_folder.items()
        if () in paths_below or is_synset(name):
            return None
        depth += 1
    return None


class _Level(NamedTuple):
    """The folders at one depth. All of them are in the same folder.

    Attributes:
        depth: the number of folders above them in a path.
        above: the path of the folder that contains them, with a slash at the end, or empty.
        paths_by_folder: the paths from each folder down to its images.
    """

    depth: int
    above: str
    paths_by_folder: Mapping[str, Set[_PathBelow]]


def _level_at(depth: int, paths: Sequence[tuple[str, ...]]) -> _Level:
    """The folders at a depth. All paths must have the same folders above this depth."""
    paths_by_folder: dict[str, set[_PathBelow]] = {}
    for names in paths:
        paths_by_folder.setdefault(names[depth], set()).add(names[depth + 1 :])
    above = "".join(f"{name}/" for name in paths[0][:depth])
    return _Level(depth, above, paths_by_folder)


def _unclear_among(level: _Level) -> UnclearFolders | None:
    """Find unclear folders among the folders of one level; None if there are none."""
    depth, above, paths_by_folder = level
    splits = {name: paths_by_folder[name] for name in names_of_splits(paths_by_folder)}
    siblings = {name: paths_by_folder[name] for name in paths_by_folder if name not in splits}
    if all(is_named_after_files(name) for name in siblings):
        if splits:
            return UnclearFolders(depth, _unclear_folders(above, paths_by_folder), ())
        are_several = len(paths_by_folder) > 1
        if are_several or [*paths_by_folder.values()] == [{()}]:
            predicate = "are named after the kind of their files, not after classes"
            return UnclearFolders(depth, _unclear_folders(above, paths_by_folder), (), predicate)
        return None
    if splits and _contents_confirm_splits(splits, siblings):
        return UnclearFolders(depth, _unclear_folders(above, splits), tuple(siblings))
    return None


def find_different_splits(folders: Set[tuple[str, ...]]) -> UnclearFolders | None:
    """Find folders that look like two or more different splits; None if there are none.

    This is for kinds of source whose folders are not classes. In such sources, folders that look
    like splits count even if there are other folders beside them.

    Args:
        folders: as for ``find_unclear_folders``.
    """
    splits = find_unclear_folders(folders)
    if splits is None:
        # Look again, at only the folders that look like splits where the paths first differ.
        # For tuples, ``commonprefix`` compares whole names of folders.
        shared = len(os.path.commonprefix([*folders - {()}]))  # noqa: RUF071  only wrong for texts
        like_splits = set()
        for names in folders:
            if len(names) > shared and split_of(names[shared]):
                like_splits.add(names)
        splits = find_unclear_folders(like_splits)
    if splits is None or len(splits.splits) < 2:
        return None
    return splits


def _splits_in_each(level: _Level) -> UnclearFolders | None:
    """Find splits inside sibling folders, such as ``cat/train`` and ``dog/train``, or return None.

    Each sibling must contain only folders, and at least one of these must look like a split. All
    siblings together must have two different splits.
    """
    depth, above, paths_by_folder = level
    names = set()
    for paths_below in paths_by_folder.values():
        if () in paths_below:
            return None
        inner_names = {path_below[0] for path_below in paths_below}
        if not any(split_of(name) for name in inner_names):
            return None
        names |= inner_names
    inner_splits = {name: {()} for name in sorted(names) if split_of(name)}
    if len({split_of(name) for name in inner_splits}) < 2:
        return None
    first = next(iter(paths_by_folder))
    folders = []
    for folder in _unclear_folders("", inner_splits):
        other_names = sorted(names - {folder.name})
        exclude = tuple(f"{literal_glob(above)}*/{literal_glob(name)}" for name in other_names)
        title = f"{above}{first}/{folder.name}"
        folders.append(UnclearFolder(title, "", folder.split, is_flat=False, exclude=exclude))
    predicate = "look like splits, inside each folder of a class"
    return UnclearFolders(depth, tuple(folders), (), predicate, are_in_classes=True)


def _contents_confirm_splits(
    splits: Mapping[str, Set[_PathBelow]], siblings: Mapping[str, Set[_PathBelow]]
) -> bool:
    """Whether the content of folders that look like splits confirms that they are splits.

    This is called only if other folders are beside them. Their names alone could then be those of
    classes.

    - Folders of two or more different splits, with class folders in them, are confirmed if two of
      them have a class in common, or if a class is a synset.
    - Several folders are not confirmed if at most one split has class folders.
    - A single folder is confirmed if its name is one word for a split, it contains only folders,
      none of these is a synset, and its siblings contain no folders. If it contains synsets, it
      needs no confirmation, because synsets are found as classes in any folder.

    Args:
        splits: the paths below each folder that looks like a split.
        siblings: the paths below each other folder.
    """
    contents = {}
    classes = {}
    for name, paths_below in splits.items():
        _, contents[name] = _without_wrappers(name, paths_below)
        classes[name] = {path_below[0] for path_below in contents[name] if path_below}
    splits_with_classes = {split_of(name) for name in splits if classes[name]}
    if len(splits_with_classes) > 1:
        counts: Counter[str] = Counter()
        for class_names in classes.values():
            counts.update(class_names)
        return any(count > 1 or is_synset(name) for name, count in counts.items())
    if len(splits) > 1:
        return False
    (split,) = splits
    if not is_one_split_word(split):
        return False
    has_only_folders = bool(classes[split]) and () not in contents[split]
    has_synsets = any(is_synset(name) for name in classes[split])
    siblings_have_folders = any(any(paths_below) for paths_below in siblings.values())
    return has_only_folders and not has_synsets and not siblings_have_folders


def _unclear_folders(
    above: str, paths_by_folder: Mapping[str, Set[_PathBelow]]
) -> tuple[UnclearFolder, ...]:
    """Describe unclear folders. Folders of the split ``train`` come first.

    The ``split`` of a folder is the split that it looks like. If it looks like no split, or another
    folder looks like the same split, it is the name of the folder, with underscores where
    ``--split`` allows no other character. A number is added if another folder has this ``split``
    already. The ``split`` of all folders is empty if none looks like a split.

    Args:
        above: the path of the folder that contains them, with a slash at the end, or empty.
        paths_by_folder: the paths from each folder down to its images.
    """
    counts = Counter(split_of(name) for name in paths_by_folder)
    are_splits = any(counts)
    folders = []
    used_splits: set[str] = set()
    for name, paths_below in paths_by_folder.items():
        split = split_of(name)
        if not split or counts[split] > 1:
            split = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or split
        split = _unused(split, used_splits)
        used_splits.add(split)
        inner_path, content = _without_wrappers(name, paths_below)
        path = f"{above}{inner_path}"
        is_flat = content == {()}
        folders.append(UnclearFolder(path, path, split if are_splits else "", is_flat))
    return tuple(sorted(folders, key=lambda folder: folder.split != "train"))


def _unused(split: str, used_splits: Set[str]) -> str:
    """Return the name of a split, with a number after it if the name is used already."""
    number = 2
    unused = split
    while split and unused in used_splits:
        unused = f"{split}_{number}"
        number += 1
    return unused


def _without_wrappers(name: str, paths: Set[_PathBelow]) -> tuple[str, Set[_PathBelow]]:
    """The path and the content of a split, without folders that only wrap it.

    A wrapper contains only one folder. This folder has the name of the wrapper, the name of a
    split, or a name after the kind of its files.
    """
    path, last = name, name
    while True:
        inner_names = {path_inside[0] for path_inside in paths if path_inside}
        if len(inner_names) != 1 or () in paths:
            return path, paths
        (inner,) = inner_names
        if inner.lower() != last.lower() and not is_not_a_class(inner):
            return path, paths
        path, last = f"{path}/{inner}", inner
        paths = {path_inside[1:] for path_inside in paths}
