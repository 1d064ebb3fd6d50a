"""Parts of the page's appendix: tables of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text; a cell that begins with a digit is set to the right."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """One collapsed part: tables, lines of text, and code."""

    id: str
    title: str
    tables: Sequence[Table] = ()
    lines: Sequence[str] = ()
    code: str = ""
    terms: Mapping[str, str] | None = None
