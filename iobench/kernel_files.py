"""Small files of ``/proc`` and ``/sys``: what cannot be read is empty, never an error."""

from __future__ import annotations

import re
from pathlib import Path

_LONGEST_WORD = 60


def text(path: Path) -> str:
    """What stands there, without white space and NULs at its ends."""
    try:
        return path.read_text(errors="replace").strip("\0 \n\t")
    except (OSError, ValueError):
        return ""


def word(path: Path) -> str:
    """What stands there as one line of plain characters, 60 at most: firmware says anything."""
    plain = "".join(sign if sign.isascii() and sign.isprintable() else " " for sign in text(path))
    return " ".join(plain.split())[:_LONGEST_WORD]


def number(path: Path) -> int | None:
    """The whole number that stands there and nothing else; None where it is another thing."""
    found = text(path)
    return int(found) if re.fullmatch(r"\d{1,30}", found, re.ASCII) else None
