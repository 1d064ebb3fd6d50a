"""PURE. Folders that are no classes by their names: splits of a data set, or kinds of its files."""

from __future__ import annotations

import os
import re
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass

from dataprep.labels import is_synset

_ROLES = {
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
_between_words = re.compile(r"[_\-.\s]+|(?<=[a-z])(?=[A-Z])").split
_split_word = re.compile(rf"({'|'.join(_ROLES)})(?:set|data|images|imgs)?\d*", re.IGNORECASE)

_FILE_KINDS = frozenset(
    {
        *("data", "dataset", "file", "files", "image", "images", "img", "imgs", "jpegimages"),
        *("jpg", "jpgs", "jpeg", "jpegs", "png", "pngs", "photo", "photos", "pic", "pics"),
        *("picture", "pictures", "annotation", "annotations", "label", "labels", "mask", "masks"),
        *("segmentation", "segmentations", "segmentationclass", "segmentationobject", "trimaps"),
        *("groundtruth", "gt", "bboxes", "boundingboxes"),
    }
)
"""Names of folders, letters alone, that say what their files are, not what is in the pictures."""

_is_revision = re.compile(r"[0-9a-f]{40}").fullmatch  # of a repository, in a download cache

_Tail = tuple[str, ...]
"""The folders below a folder that lead to images."""


@dataclass(frozen=True)
class SplitFolder:
    """A folder that looks like a split, or is called after the kind of its files.

    Attributes:
        name: the folder, as the message calls it.
        path: the folder that holds its classes or images, below the source; empty for the source.
        split: a name for it, as ``--split`` takes one; empty where it is no split.
        is_flat: whether it holds images and no class folders.
        exclude: globs that leave out the other splits, where a split is not a folder of its own.
    """

    name: str
    path: str
    split: str
    is_flat: bool
    exclude: tuple[str, ...] = ()


@dataclass(frozen=True)
class SplitFolders:
    """Folders beside each other that look like splits, or are called after kinds of files.

    Attributes:
        depth: how many folders are above what would be classes otherwise.
        folders: each of them.
        others: names of folders beside them that do not.
        looks: what they look like, in words.
    """

    depth: int
    folders: tuple[SplitFolder, ...]
    others: tuple[str, ...]
    looks: str = "look like splits, not classes"

    @property
    def roles(self) -> set[str]:
        """The different splits that they look like."""
        return {role_of(folder.split) for folder in self.folders} - {""}

    def message(self, uri: str, advise: Callable[[str], str], *, has_classes: bool = True) -> str:
        """Refuse the source at ``uri``, with a command for each way to read it.

        ``advise`` gives the options that take one of its folders; of an empty name, all of it.
        ``has_classes`` is false for a kind of source whose folders are no classes.
        """
        names = ", ".join(repr(folder.name) for folder in self.folders)
        beside = f" (beside {', '.join(map(repr, self.others[:5]))})" if self.others else ""
        lines = [f"{uri!r} has folders that {self.looks}: {names}{beside}."]
        are_splits = any(folder.split for folder in self.folders)
        lines.append(f"To shard {'them, one split' if are_splits else 'one'} at a time:")
        for folder in self.folders:
            options = advise(folder.path)
            if folder.is_flat or not has_classes:
                kind = "" if " --kind " in options else " --kind flat"
                options = f"{options}{kind} --unlabelled"
            for glob in folder.exclude:
                options = f"{options} --exclude {shlex.quote(glob)}"
            if folder.split:
                options = f"{options} --split {folder.split}"
            lines.append(f"  dataprep shard {options} --output OUTPUT")
        if not has_classes or any(folder.is_flat for folder in self.folders):
            lines.append(
                "If a file gives the classes of images, write --set labels.ground_truth=FILE in "
                "place of --unlabelled."
            )
        is_inside = len(self.folders) == 1 and not self.others and are_splits
        what = "the folders in it" if is_inside else "these folders"
        if self.folders[0].exclude:
            what = "the folders above them"
        whole = f"If {what} are the classes:" if has_classes else "To read all as one split:"
        lines.append(whole)
        lines.append(
            f"  dataprep shard {advise('')} --set labels.split_folders=classes --output OUTPUT"
        )
        return "\n".join(lines)


def role_of(name: str) -> str:
    """Which split a folder looks like by its name, as ``--split`` calls it; empty for none.

    Its name, or one of the words that it consists of, is ``train``, ``Validation``, ``test2017``.
    """
    for word in _between_words(name):
        if match := _split_word.fullmatch(word):
            return _ROLES[match[1].lower()]
    return ""


def is_kind_of_files(name: str) -> bool:
    """Whether a folder is called after the kind of its files: ``images``, ``JPEGImages``."""
    return re.sub("[^a-z]+", "", name.lower()) in _FILE_KINDS or bool(_is_revision(name))


def is_no_class(name: str) -> bool:
    """Whether a folder is called as a split, or after the kind of its files."""
    return bool(role_of(name)) or is_kind_of_files(name)


def find_splits(folders: Set[tuple[str, ...]]) -> SplitFolders | None:
    """The uppermost folders that look like splits or kinds of files, or None.

    All folders beside each other look like splits; or some do, and what is below them says so too.
    Each of several folders may have splits in it. All folders beside each other may be called after
    the kind of their files; a single one counts if its images are in no other folder. Folders that
    hold nothing but one folder are passed over.

    Args:
        folders: the folders of all files that promise images, below the source.
    """
    paths = sorted(folders - {()})
    depth = 0
    while paths:
        tails: dict[str, set[_Tail]] = {}
        for parts in paths:
            tails.setdefault(parts[depth], set()).add(parts[depth + 1 :])
        above = "".join(f"{name}/" for name in paths[0][:depth])
        # Most names of a million folders mention no split, which one search tells.
        may_be_splits = tails if _split_word.search("\n".join(tails)) else {}
        splits = {name: tails[name] for name in may_be_splits if role_of(name)}
        others = {name: tails[name] for name in tails if name not in splits}
        only = next(iter(tails))
        if all(map(is_kind_of_files, others)):
            if splits:
                return SplitFolders(depth, _named(above, tails), ())
            if len(tails) > 1 or tails[only] == {()}:
                looks = "are called after the kind of their files, not after classes"
                return SplitFolders(depth, _named(above, tails), (), looks)
        elif splits and _are_above_classes(splits, others):
            return SplitFolders(depth, _named(above, splits), tuple(others))
        if len(tails) > 1:
            return _splits_in_each(depth, above, tails)
        if () in tails[only] or is_synset(only):
            return None
        depth += 1
    return None


def find_different_splits(folders: Set[tuple[str, ...]]) -> SplitFolders | None:
    """The folders that look like two or more different splits, or None.

    Where folders are no classes, splits are splits also if other folders are beside them.
    """
    splits = find_splits(folders)
    if splits is None:
        shared = len(os.path.commonprefix([*folders - {()}]))  # noqa: RUF071  they are tuples
        splits = find_splits(
            {parts for parts in folders if len(parts) > shared and role_of(parts[shared])}
        )
    return splits if splits is not None and len(splits.roles) > 1 else None


def _splits_in_each(depth: int, above: str, tails: Mapping[str, Set[_Tail]]) -> SplitFolders | None:
    """The splits inside folders beside each other, if each of these has nothing but folders.

    Each has at least one that looks like a split, and there are different splits.
    """
    if () in set().union(*tails.values()):
        return None
    inner = {name: {tail[:1] for tail in held} for name, held in tails.items()}
    if any(() in held or not any(role_of(*part) for part in held) for held in inner.values()):
        return None
    names = sorted({part[0] for held in inner.values() for part in held})
    splits = {name: {()} for name in names if role_of(name)}
    if len({*map(role_of, splits)}) < 2:
        return None
    first = next(iter(tails))
    folders = []
    for folder in _named("", splits):
        exclude = tuple(f"{above}*/{name}" for name in names if name != folder.name)
        folders.append(
            SplitFolder(f"{above}{first}/{folder.name}", "", folder.split, False, exclude)
        )
    return SplitFolders(
        depth, tuple(folders), (), "look like splits, inside each folder of a class"
    )


def _are_above_classes(splits: Mapping[str, Set[_Tail]], others: Mapping[str, Set[_Tail]]) -> bool:
    """Whether folders beside others are splits by what is below them.

    Different splits have a class in common, or synsets. A single one that has class folders is a
    split if none of the others has any.
    """
    below = {name: _unwrapped(name, tails)[1] for name, tails in splits.items()}
    classes = {name: {tail[0] for tail in tails if tail} for name, tails in below.items()}
    roles = {role_of(name) for name, held in classes.items() if held}
    if len(roles) > 1:
        counts = Counter(name for held in classes.values() for name in held)
        return any(count > 1 or is_synset(name) for name, count in counts.items())
    (name,) = list(splits)[:1]
    is_alone = len(splits) == 1 and _split_word.fullmatch(name) is not None
    has_folders = bool(classes[name]) and () not in below[name]
    others_have = any(tail for tails in others.values() for tail in tails)
    return is_alone and has_folders and not others_have and not any(map(is_synset, classes[name]))


def _named(above: str, splits: Mapping[str, Set[_Tail]]) -> tuple[SplitFolder, ...]:
    """The folders in order, each with a name of its own; without one if none is a split."""
    roles = Counter(map(role_of, splits))
    are_splits = any(roles)
    folders = []
    for name, tails in splits.items():
        split = role_of(name)
        if roles[split] > 1 or not split:
            split = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or split
        inner, held = _unwrapped(name, tails)
        path = f"{above}{inner}"
        folders.append(SplitFolder(path, path, split if are_splits else "", held == {()}))
    return tuple(sorted(folders, key=lambda folder: folder.split != "train"))


def _unwrapped(name: str, tails: Set[_Tail]) -> tuple[str, Set[_Tail]]:
    """The path and the content of a split; folders that hold only their namesake are opened.

    So are folders that are called after the kind of their files.
    """
    path, last = name, name
    while True:
        inner = {tail[0] for tail in tails if tail}
        only = next(iter(inner), "")
        is_wrapper = len(inner) == 1 and () not in tails
        is_same = only.lower() == last.lower() or bool(role_of(only)) or is_kind_of_files(only)
        if not is_wrapper or not is_same:
            return path, tails
        path, last = f"{path}/{only}", only
        tails = {tail[1:] for tail in tails}
