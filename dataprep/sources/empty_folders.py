"""Folders that stand beside those of the classes and hold no images."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from itertools import filterfalse
from pathlib import Path

from dataprep.labels import is_synset
from dataprep.names import by_bytes
from dataprep.sources.classes import NO_IMAGES, is_clutter
from dataprep.sources.protocol import Problem


def empty_folders(
    names: Sequence[str], classes: Sequence[str], problems: Mapping[int, Problem], root: Path | None
) -> tuple[str, ...]:
    """A note of them, or none. ``root`` is the source where it is a directory.

    A class that lost its images shifts the labels of those after it, so a person should hear of it.
    """
    first = dict(zip(classes, names, strict=True))
    first.pop("", None)
    folders: set[str] = set()
    above_classes = set()
    for group, name in first.items():
        parts = name.split("/")
        above_classes.add("/".join([*parts[: parts.index(group)], ""]))
    for above in above_classes:
        without = [names[row] for row, found in problems.items() if found.reason == NO_IMAGES]
        inside = [name.removeprefix(above) for name in without if name.startswith(above)]
        folders.update(name.partition("/")[0] for name in inside if "/" in name)
        if root is not None:
            folders.update(_folders_in(root / above))
    folders -= first.keys()
    if all(map(is_synset, first)):
        folders = set(filter(is_synset, folders))
    return _in_words(by_bytes(filterfalse(is_clutter, folders)))


def _folders_in(path: Path) -> list[str]:
    try:
        with os.scandir(path) as entries:
            return [entry.name for entry in entries if entry.is_dir()]
    except OSError:
        return []  # what could not be listed has failed already


def _in_words(folders: Sequence[str]) -> tuple[str, ...]:
    if not folders:
        return ()
    shown = ", ".join(map(repr, folders[:3]))
    more = f" and {len(folders) - 3:,} more" if len(folders) > 3 else ""
    holding = "folder without images makes" if len(folders) == 1 else "folders without images make"
    return (f"{len(folders):,} {holding} no class: {shown}{more}",)
