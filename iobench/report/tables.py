"""The parts of which the page's appendix consists: tables and sections."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from iobench.results.numbers import with_interval
from iobench.results.statistics import Estimate

MAX_ROWS = 400
"""The maximum number of rows of ``first_rows``, so that the page of a large run stays small."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of text.

    Columns of numbers are aligned to the right. A table without rows is not shown.

    Args:
        title: the heading; empty for a table without a heading.
        columns: the names of the columns.
        rows: the cells of each row, in the order of the columns.
        note: sentences below the table.
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


def first_rows(
    columns: Sequence[str], rows: Sequence[Sequence[str]], content: str, notes: Sequence[str] = ()
) -> Table:
    """A table without a heading that ends after ``MAX_ROWS`` rows. A note then says so.

    Args:
        columns: the names of the columns.
        rows: the cells of all rows.
        content: the content of the rows in the plural, for the note.
        notes: sentences below the table, before that note.
    """
    sentences = list(notes)
    if len(rows) > MAX_ROWS:
        sentences.append(
            f"These are the first {MAX_ROWS} of {len(rows):,} {content}. The raw result has all."
        )
    return Table("", columns, rows[:MAX_ROWS], " ".join(sentences))


def estimate_cell(estimate: Mapping[str, Any] | None, text_of: Callable[[float], str]) -> str:
    """The cell of an estimate with its interval; empty if there is no estimate.

    Args:
        estimate: the fields of an ``Estimate``, as the summary has them; None without an estimate.
        text_of: returns the text of a value.
    """
    return with_interval(Estimate(**estimate), text_of) if estimate else ""
