"""PURE. Refuse archives or Parquet files of different splits in one folder."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence

from dataprep.errors import SourceError
from dataprep.message_text import listed
from dataprep.sources.exclusion import Exclusion, literal_glob
from dataprep.sources.split_names import split_of


def refuse_file_splits(
    uri: str, kind: str, noun: str, ending: re.Pattern[str], keys: Sequence[str]
) -> None:
    """Refuse the files of a folder if their names show that they belong to different splits.

    Args:
        uri: the address of the source.
        kind: the kind of the source.
        noun: the name of the files in the message, in the plural, such as ``tars``.
        ending: the pattern of the end of a key, which is not part of the names.
        keys: the keys of the files. The folders in a key count, too.

    Raises:
        SourceError: there are two or more splits. The message has a command for each split.
    """
    files_by_split = _files_by_split(ending, keys)
    splits = sorted(files_by_split.keys() - {""}, key=lambda split: (split != "train", split))
    if len(splits) < 2:
        return
    examples = [files_by_split[split][0] for split in splits]
    source = f"--source {shlex.quote(uri)} --kind {kind}"
    lines = [
        f"{uri!r} has {noun} of different splits: {listed(examples, len(examples))}.",
        "To shard them, one split at a time:",
    ]
    for split in splits:
        options = source
        for glob in _exclusions(split, files_by_split):
            options += f" --exclude {shlex.quote(glob)}"
        lines.append(f"  dataprep shard {options} --split {split} --output OUTPUT")
    lines.append("To read all as one split:")
    lines.append(f"  dataprep shard {source} --set labels.split_folders=classes --output OUTPUT")
    raise SourceError("\n".join(lines))


def _files_by_split(ending: re.Pattern[str], keys: Sequence[str]) -> dict[str, list[str]]:
    """The files of each split. Files with no split in their key, or several, are under ``""``."""
    files_by_split: dict[str, list[str]] = {}
    for key in keys:
        splits = {split_of(name) for name in ending.sub("", key).split("/")} - {""}
        split = splits.pop() if len(splits) == 1 else ""
        files_by_split.setdefault(split, []).append(key)
    return files_by_split


def _exclusions(split: str, files_by_split: Mapping[str, Sequence[str]]) -> Sequence[str]:
    """Globs that match the files of all other splits, and no file of this split.

    Files whose names show no split, or several, are not among the files of other splits.

    Numbers are replaced by stars, so that one glob matches many files. If a glob with stars would
    match a file of this split, each glob matches one file.
    """
    other_files: list[str] = []
    for other_split, files in files_by_split.items():
        if other_split not in ("", split):
            other_files.extend(files)
    file_globs = [literal_glob(file) for file in other_files]
    globs = tuple(dict.fromkeys(re.sub(r"\d+", "*", file) for file in file_globs))
    exclusion = Exclusion(globs)
    if any(exclusion.by_glob(file) for file in files_by_split[split]):
        return file_globs
    return globs
