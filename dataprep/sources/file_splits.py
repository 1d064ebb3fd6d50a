"""PURE. Files of one folder that belong to different splits by their names."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from dataprep.errors import SourceError
from dataprep.sources.exclusion import Exclusion
from dataprep.sources.splits import role_of


def refuse_file_splits(
    uri: str, kind: str, noun: str, ending: re.Pattern[str], files: Sequence[str]
) -> None:
    """Refuse files of different splits, with a command for each split.

    Args:
        uri: the source.
        kind: its kind.
        noun: what the files are, in the plural.
        ending: what ends the names of such files.
        files: their keys, of which the folders count too.

    Raises:
        SourceError: it names a file of each split.
    """
    splits: dict[str, list[str]] = {}
    for file in files:
        roles = {role_of(part) for part in ending.sub("", file).split("/")} - {""}
        splits.setdefault(roles.pop() if len(roles) == 1 else "", []).append(file)
    roles_found = sorted({*splits} - {""}, key=lambda role: (role != "train", role))
    if len(roles_found) < 2:
        return
    examples = ", ".join(repr(splits[role][0]) for role in roles_found)
    source = f"--source {shlex.quote(uri)} --kind {kind}"
    lines = [
        f"{uri!r} has {noun} of different splits: {examples}.",
        "To shard them, one split at a time:",
    ]
    for role in roles_found:
        others = [file for name, held in splits.items() if name not in ("", role) for file in held]
        globs = [f"--exclude {shlex.quote(glob)}" for glob in _globs(others, splits[role])]
        lines.append(
            f"  dataprep shard {' '.join([source, *globs])} --split {role} --output OUTPUT"
        )
    lines.append("To read all as one split:")
    lines.append(f"  dataprep shard {source} --set labels.split_folders=classes --output OUTPUT")
    raise SourceError("\n".join(lines))


def _globs(others: Sequence[str], kept: Sequence[str]) -> Sequence[str]:
    """Globs that match ``others`` and none of ``kept``: numbers in names become stars."""
    globs = tuple(dict.fromkeys(re.sub(r"\d+", "*", file) for file in others))
    return others if any(map(Exclusion(globs).by_glob, kept)) else globs
