"""The parts of the page's appendix: tables and sections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Table:
    """A table of text.

    Numbers are aligned to the right. A table without rows is not shown.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the appendix, which is collapsed at first.

    Args:
        id: the anchor of the section in links.
        title: its heading.
        tables: its tables.
        lines: sentences below the tables.
        code: text in a fixed-width font, such as a config.
        terms: terms with their definitions; None if the section has none.
    """

    id: str
    title: str
    tables: Sequence[Table] = ()
    lines: Sequence[str] = ()
    code: str = ""
    terms: Mapping[str, str] | None = None
