"""PURE. Folders that look like the splits of a data set, which are no classes."""

from __future__ import annotations

import re
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
}
_between_words = re.compile(r"[_\-.\s]+|(?<=[a-z])(?=[A-Z])").split
_split_word = re.compile(rf"({'|'.join(_ROLES)})(?:set|data|images|imgs)?\d*", re.IGNORECASE)

_Tail = tuple[str, ...]
"""The folders below a folder that lead to images."""


@dataclass(frozen=True)
class SplitFolder:
    """A folder that looks like a split.

    Attributes:
        path: the folder that holds its classes or images, below the source.
        split: a name for it, as ``--split`` takes one.
        is_flat: whether it holds images and no class folders.
    """

    path: str
    split: str
    is_flat: bool


@dataclass(frozen=True)
class SplitFolders:
    """Folders beside each other that look like splits.

    Attributes:
        depth: how many folders are above them.
        folders: each of them.
        others: names of folders beside them that do not.
    """

    depth: int
    folders: tuple[SplitFolder, ...]
    others: tuple[str, ...]

    def message(self, uri: str, advise: Callable[[str], str]) -> str:
        """Refuse the source at ``uri``, with a command for each way to read it.

        ``advise`` gives the options that take one of its folders; of an empty name, all of it.
        """
        names = ", ".join(repr(folder.path) for folder in self.folders)
        beside = f" (beside {', '.join(map(repr, self.others[:5]))})" if self.others else ""
        lines = [f"{uri!r} has folders that look like splits, not classes: {names}{beside}."]
        lines.append("To shard them, one split at a time:")
        for folder in self.folders:
            options = advise(folder.path)
            if folder.is_flat:
                kind = "" if " --kind " in options else " --kind flat"
                options = f"{options}{kind} --unlabelled"
            lines.append(f"  dataprep shard {options} --split {folder.split} --output OUTPUT")
        what = "these folders" if len(self.folders) > 1 or self.others else "the folders in it"
        lines.append(f"If {what} are the classes:")
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


def find_splits(folders: Set[tuple[str, ...]]) -> SplitFolders | None:
    """The uppermost folders that look like splits, or None.

    All folders beside each other look like splits; or some do, and what is below them says so too.
    Folders that hold nothing but one folder are passed over.

    Args:
        folders: the folders of all files that promise images, below the source.
    """
    paths = sorted(parts for parts in folders if parts)
    depth = 0
    while paths:
        tails: dict[str, set[_Tail]] = {}
        for parts in paths:
            tails.setdefault(parts[depth], set()).add(parts[depth + 1 :])
        splits = {name: tails[name] for name in tails if role_of(name)}
        others = {name: tails[name] for name in tails if name not in splits}
        if splits and (not others or _are_above_classes(splits, others)):
            above = "".join(f"{name}/" for name in paths[0][:depth])
            return SplitFolders(depth, _named(above, splits), tuple(others))
        only = next(iter(tails))
        if len(tails) > 1 or () in tails[only] or is_synset(only):
            return None
        depth += 1
    return None


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
    """The folders in order, each with a name of its own."""
    roles = Counter(map(role_of, splits))
    folders = []
    for name, tails in splits.items():
        role = role_of(name)
        split = role if roles[role] == 1 else re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_")
        inner, held = _unwrapped(name, tails)
        is_flat = held == {()}
        folders.append(SplitFolder(f"{above}{inner}", split or role, is_flat))
    return tuple(sorted(folders, key=lambda folder: folder.split != "train"))


def _unwrapped(name: str, tails: Set[_Tail]) -> tuple[str, Set[_Tail]]:
    """The path and the content of a split; folders that hold only their namesake are opened."""
    path, last = name, name
    while True:
        inner = {tail[0] for tail in tails if tail}
        only = next(iter(inner), "")
        is_wrapper = len(inner) == 1 and () not in tails
        if not is_wrapper or not (only.lower() == last.lower() or role_of(only)):
            return path, tails
        path, last = f"{path}/{only}", only
        tails = {tail[1:] for tail in tails}
