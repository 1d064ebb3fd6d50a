"""Read small files in ``/proc`` and ``/sys``. A file that cannot be read counts as empty."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path("/")
_MAX_LINE_CHARACTERS = 60


def text(path: Path) -> str:
    """Return the text of a file, without white space and NULs at its ends."""
    try:
        return path.read_text(errors="replace").strip("\0 \n\t")
    except (OSError, ValueError):
        return ""


def one_line(path: Path) -> str:
    """Return the text of a file as one line of at most 60 ASCII characters.

    Firmware may write any bytes into such a file.
    """
    printable = re.sub(r"[^ -~]", " ", text(path))
    return " ".join(printable.split())[:_MAX_LINE_CHARACTERS]


def number(path: Path) -> int | None:
    """Return the whole number that a file contains; None if it contains anything else."""
    content = text(path)
    if re.fullmatch(r"\d{1,30}", content, re.ASCII):
        return int(content)
    return None


def names(folder: Path) -> list[str]:
    """Return the names of the entries of a folder, sorted."""
    try:
        return sorted(path.name for path in folder.iterdir())
    except OSError:
        return []
