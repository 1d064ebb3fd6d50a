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
    """A collapsed part of the appendix.

    Args:
        id: the name by which links lead to the section.
        title: its heading.
        tables: its tables.
        lines: sentences below the tables.
        code: text that is shown as it is, such as a config.
        terms: definitions by their term.
    """

    id: str
    title: str
    tables: Sequence[Table] = ()
    lines: Sequence[str] = ()
    code: str = ""
    terms: Mapping[str, str] | None = None
