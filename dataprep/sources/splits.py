"""PURE. Find folders and files that look like splits of a data set, not like classes.

If folders such as ``train`` and ``val`` were read as class folders, they would become classes.
Therefore the source is refused, and the error has a command for each way to read it. The same holds
for folders that are named after the kind of their files, such as ``images`` and ``masks``, and for
archives or Parquet files of different splits in one folder.
"""

from __future__ import annotations

import os
import re
import shlex
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass

from dataprep.counted import listed
from dataprep.errors import SourceError
from dataprep.labels import is_synset
from dataprep.sources.exclusion import Exclusion

_SPLIT_BY_WORD = {
    "train": "train",
    "training": "train",
    "trainval": "train",
    "val": "validation",
    "valid": "validation",
    "validation": "validation",
    "test": "test",
    "testing": "test",
    "dev": "dev",
    "eval": "eval",
    "evaluation": "eval",
    "holdout": "holdout",
    "trn": "train",
    "tst": "test",
}
"""The split that each word stands for, with the name for ``--split``."""

_split_into_words = re.compile(r"[_\-.\s]+|(?<=[a-z])(?=[A-Z])").split
_split_word = re.compile(
    rf"({'|'.join(_SPLIT_BY_WORD)})(?:set|data|images|imgs)?\d*", re.IGNORECASE
)

_FILE_KINDS = frozenset(
    {
        *("data", "dataset", "file", "files", "image", "images", "img", "imgs", "jpegimages"),
        *("jpg", "jpgs", "jpeg", "jpegs", "png", "pngs", "photo", "photos", "pic", "pics"),
        *("picture", "pictures", "annotation", "annotations", "label", "labels", "mask", "masks"),
        *("segmentation", "segmentations", "segmentationclass", "segmentationobject", "trimaps"),
        *("groundtruth", "gt", "bboxes", "boundingboxes"),
    }
)
"""Names of folders that describe the files, not what the images show. They have only letters."""

_is_revision = re.compile(r"[0-9a-f]{40}").fullmatch
"""Whether a folder is named by the revision of a repository, as in a download cache."""

_MAX_OTHERS_SHOWN = 5

_PathBelow = tuple[str, ...]
"""A path from a folder down to an image: the names of the folders below that folder."""


@dataclass(frozen=True)
class SplitFolder:
    """A folder that looks like a split, or is named after the kind of its files.

    Attributes:
        name: the folder, as the message calls it.
        path: the path of the folder with the classes or images, below the source; empty for the
            source itself.
        split: a name for the split, valid for ``--split``; empty if the folder is no split.
        is_flat: whether it has images and no class folders.
        exclude: globs that leave out the other splits, if the split is spread over several
            folders.
    """

    name: str
    path: str
    split: str
    is_flat: bool
    exclude: tuple[str, ...] = ()


@dataclass(frozen=True)
class SplitFolders:
    """Sibling folders that look like splits, or are named after the kinds of their files.

    Attributes:
        depth: the number of folders above them in a path.
        folders: the folders.
        siblings: the names of folders beside them that do not look like splits.
        predicate: what the message says about the folders, after "has folders that".
    """

    depth: int
    folders: tuple[SplitFolder, ...]
    siblings: tuple[str, ...]
    predicate: str = "look like splits, not classes"

    @property
    def splits(self) -> set[str]:
        """The different splits that the folders look like."""
        return {split_of(folder.split) for folder in self.folders} - {""}

    def message(self, uri: str, advise: Callable[[str], str], *, has_classes: bool = True) -> str:
        """Return an error message for the source, with a command for each way to read it.

        Args:
            uri: the address of the source.
            advise: returns the command-line options that read one folder of the source. For an
                empty folder name, they read the whole source.
            has_classes: whether folders can be classes in this kind of source.
        """
        names = ", ".join(repr(folder.name) for folder in self.folders)
        beside = ""
        if self.siblings:
            siblings = ", ".join(repr(name) for name in self.siblings[:_MAX_OTHERS_SHOWN])
            beside = f" (beside {siblings})"
        lines = [f"{uri!r} has folders that {self.predicate}: {names}{beside}."]
        are_splits = any(folder.split for folder in self.folders)
        if are_splits:
            lines.append("To shard them, one split at a time:")
        else:
            lines.append("To shard one at a time:")
        lines.extend(
            f"  dataprep shard {_options(folder, advise, has_classes)}" for folder in self.folders
        )
        if not has_classes or any(folder.is_flat for folder in self.folders):
            lines.append(
                "If a file gives the classes of images, write --set labels.ground_truth=FILE in "
                "place of --unlabelled."
            )
        is_inside = len(self.folders) == 1 and not self.siblings and are_splits
        if self.folders[0].exclude:
            class_folders = "the folders above them"
        elif is_inside:
            class_folders = "the folders in it"
        else:
            class_folders = "these folders"
        if has_classes:
            lines.append(f"If {class_folders} are the classes:")
        else:
            lines.append("To read all as one split:")
        lines.append(
            f"  dataprep shard {advise('')} --set labels.split_folders=classes --output OUTPUT"
        )
        return "\n".join(lines)


def _options(folder: SplitFolder, advise: Callable[[str], str], has_classes: bool) -> str:
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


def split_of(name: str) -> str:
    """The split that a folder looks like, with the name for ``--split``; empty for other folders.

    A folder looks like a split if its name, or a word of its name, is for instance ``train``,
    ``Validation`` or ``test2017``.
    """
    for word in _split_into_words(name):
        match = _split_word.fullmatch(word)
        if match:
            return _SPLIT_BY_WORD[match[1].lower()]
    return ""


def is_named_after_files(name: str) -> bool:
    """Whether a folder is named after the kind of its files, such as ``images``, ``JPEGImages``."""
    letters = re.sub("[^a-z]+", "", name.lower())
    return letters in _FILE_KINDS or bool(_is_revision(name))


def is_not_a_class(name: str) -> bool:
    """Whether a folder has the name of a split, or is named after the kind of its files."""
    return bool(split_of(name)) or is_named_after_files(name)


def find_splits(folders: Set[tuple[str, ...]]) -> SplitFolders | None:
    """Find the topmost folders that look like splits or kinds of files; None if there are none.

    Sibling folders count as splits in these cases:

    - all of them look like splits or kinds of files;
    - some of them look like splits, and the folders in them confirm this;
    - each of them contains folders that look like splits.

    A single folder that is named after the kind of its files counts only if it contains images
    directly. A level with only one folder is skipped.

    Args:
        folders: the folders of all likely images, below the source. Each is a tuple of names.
    """
    paths = sorted(folders - {()})
    depth = 0
    while paths:
        paths_by_folder: dict[str, set[_PathBelow]] = {}
        for names in paths:
            paths_by_folder.setdefault(names[depth], set()).add(names[depth + 1 :])
        above = "".join(f"{name}/" for name in paths[0][:depth])
        splits = {name: paths_by_folder[name] for name in _names_of_splits(paths_by_folder)}
        siblings = {name: paths_by_folder[name] for name in paths_by_folder if name not in splits}
        only_name = next(iter(paths_by_folder))
        if all(is_named_after_files(name) for name in siblings):
            if splits:
                return SplitFolders(depth, _split_folders(above, paths_by_folder), ())
            if len(paths_by_folder) > 1 or paths_by_folder[only_name] == {()}:
                predicate = "are named after the kind of their files, not after classes"
                return SplitFolders(depth, _split_folders(above, paths_by_folder), (), predicate)
        elif splits and _are_above_classes(splits, siblings):
            return SplitFolders(depth, _split_folders(above, splits), tuple(siblings))
        if len(paths_by_folder) > 1:
            return _splits_in_each(depth, above, paths_by_folder)
        if () in paths_by_folder[only_name] or is_synset(only_name):
            return None
        depth += 1
    return None


def _names_of_splits(names: Collection[str]) -> list[str]:
    """The names that look like splits."""
    # There may be a million names. One search can show that no name contains the word for a split.
    if not _split_word.search("\n".join(names)):
        return []
    return [name for name in names if split_of(name)]


def find_different_splits(folders: Set[tuple[str, ...]]) -> SplitFolders | None:
    """Find folders that look like two or more different splits; None if there are none.

    This is for kinds of source whose folders are not classes. There, folders that look like splits
    count even if there are other folders beside them.

    Args:
        folders: as for ``find_splits``.
    """
    splits = find_splits(folders)
    if splits is None:
        shared = len(os.path.commonprefix([*folders - {()}]))  # noqa: RUF071  they are tuples
        like_splits = set()
        for names in folders:
            if len(names) > shared and split_of(names[shared]):
                like_splits.add(names)
        splits = find_splits(like_splits)
    if splits is None or len(splits.splits) < 2:
        return None
    return splits


def _splits_in_each(
    depth: int, above: str, paths_by_folder: Mapping[str, Set[_PathBelow]]
) -> SplitFolders | None:
    """Find splits inside sibling folders, such as ``cat/train`` and ``dog/train``, or return None.

    Each sibling must contain only folders, and at least one of these must look like a split. All
    siblings together must have two different splits.
    """
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
    for folder in _split_folders("", inner_splits):
        exclude = tuple(f"{above}*/{name}" for name in sorted(names) if name != folder.name)
        title = f"{above}{first}/{folder.name}"
        folders.append(SplitFolder(title, "", folder.split, is_flat=False, exclude=exclude))
    predicate = "look like splits, inside each folder of a class"
    return SplitFolders(depth, tuple(folders), (), predicate)


def _are_above_classes(
    splits: Mapping[str, Set[_PathBelow]], siblings: Mapping[str, Set[_PathBelow]]
) -> bool:
    """Whether the content of folders that look like splits confirms that they are splits.

    There are other folders beside them. If there are different splits, they must have a class in
    common, or contain synsets. A single split must contain class folders, and its siblings must
    contain no folders.
    """
    contents = {name: _without_wrappers(name, paths)[1] for name, paths in splits.items()}
    classes = {}
    for name, paths in contents.items():
        classes[name] = {path_below[0] for path_below in paths if path_below}
    if len({split_of(name) for name in splits if classes[name]}) > 1:
        counts = Counter(group for groups in classes.values() for group in groups)
        return any(count > 1 or is_synset(group) for group, count in counts.items())
    if len(splits) > 1:
        return False
    (name,) = splits
    has_only_folders = bool(classes[name]) and () not in contents[name]
    has_synsets = any(is_synset(group) for group in classes[name])
    siblings_have_folders = any(path_below for paths in siblings.values() for path_below in paths)
    is_split = _split_word.fullmatch(name) is not None
    return is_split and has_only_folders and not has_synsets and not siblings_have_folders


def _split_folders(
    above: str, paths_by_folder: Mapping[str, Set[_PathBelow]]
) -> tuple[SplitFolder, ...]:
    """Describe folders that are refused. Folders of the split ``train`` come first.

    Each folder gets a different name of a split. All names are empty if no folder looks like a
    split.

    Args:
        above: the path of the folder that contains them, with a slash at the end, or empty.
        paths_by_folder: the paths from each folder down to its images.
    """
    counts = Counter(split_of(name) for name in paths_by_folder)
    are_splits = any(counts)
    folders = []
    for name, paths_below in paths_by_folder.items():
        split = split_of(name)
        if not split or counts[split] > 1:
            split = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or split
        inner_path, content = _without_wrappers(name, paths_below)
        path = f"{above}{inner_path}"
        is_flat = content == {()}
        folders.append(SplitFolder(path, path, split if are_splits else "", is_flat))
    return tuple(sorted(folders, key=lambda folder: folder.split != "train"))


def _without_wrappers(name: str, paths: Set[_PathBelow]) -> tuple[str, Set[_PathBelow]]:
    """The path and the content of a split, inside folders that only wrap it.

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


def refuse_file_splits(
    uri: str, kind: str, noun: str, ending: re.Pattern[str], keys: Sequence[str]
) -> None:
    """Refuse the files of a folder if their names show that they belong to different splits.

    Args:
        uri: the address of the source.
        kind: the kind of the source.
        noun: the kind of the files, in the plural.
        ending: a pattern of the file extension.
        keys: the keys of the files. The folders in a key count, too.

    Raises:
        SourceError: there are two or more splits. The message has a command for each split.
    """
    files_by_split: dict[str, list[str]] = {}
    for key in keys:
        splits = {split_of(name) for name in ending.sub("", key).split("/")} - {""}
        split = splits.pop() if len(splits) == 1 else ""
        files_by_split.setdefault(split, []).append(key)
    splits_in_order = sorted(
        (split for split in files_by_split if split), key=lambda split: (split != "train", split)
    )
    if len(splits_in_order) < 2:
        return
    examples = [files_by_split[split][0] for split in splits_in_order]
    source = f"--source {shlex.quote(uri)} --kind {kind}"
    lines = [
        f"{uri!r} has {noun} of different splits: {listed(examples, len(examples))}.",
        "To shard them, one split at a time:",
    ]
    for split in splits_in_order:
        other_files = []
        for other_split, files in files_by_split.items():
            if other_split not in ("", split):
                other_files.extend(files)
        globs = _globs(other_files, files_by_split[split])
        options = [source, *(f"--exclude {shlex.quote(glob)}" for glob in globs)]
        lines.append(f"  dataprep shard {' '.join(options)} --split {split} --output OUTPUT")
    lines.append("To read all as one split:")
    lines.append(f"  dataprep shard {source} --set labels.split_folders=classes --output OUTPUT")
    raise SourceError("\n".join(lines))


def _globs(excluded: Sequence[str], included: Sequence[str]) -> Sequence[str]:
    """Globs that match the excluded files and none of the included ones.

    Numbers are replaced by stars, so that one glob matches many files. If such globs would match an
    included file, the names of the excluded files are the globs.
    """
    globs = tuple(dict.fromkeys(re.sub(r"\d+", "*", file) for file in excluded))
    exclusion = Exclusion(globs)
    if any(exclusion.by_glob(file) for file in included):
        return excluded
    return globs
