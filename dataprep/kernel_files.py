"""Small files of ``/proc`` and ``/sys``. A file that cannot be read is empty, never an error."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path("/")
_LONGEST_WORD = 60


def text(path: Path) -> str:
    """The file's text, without white space and NULs at its ends."""
    try:
        return path.read_text(errors="replace").strip("\0 \n\t")
    except (OSError, ValueError):
        return ""


def word(path: Path) -> str:
    """The file's text as one line of at most 60 plain characters: firmware may contain anything."""
    return " ".join(re.sub(r"[^ -~]", " ", text(path)).split())[:_LONGEST_WORD]


def number(path: Path) -> int | None:
    """The whole number that is all of the file; None for anything else."""
    found = text(path)
    return int(found) if re.fullmatch(r"\d{1,30}", found, re.ASCII) else None


def names(folder: Path) -> list[str]:
    """The names in a folder, sorted."""
    try:
        return sorted(path.name for path in folder.iterdir())
    except OSError:
        return []
