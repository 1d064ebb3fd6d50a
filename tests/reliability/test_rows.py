"""The page shows what was seen: its tables are those of the saved rows, and no row loses data."""

from __future__ import annotations

from pathlib import Path

from tests.reliability.rows import PAGE, Row, Tried, load, load_all, page_with, save

TRIED = Tried("Killed", "python -m x", "2026-11-22", 7, (Row("a | b", "a folder", 1000, "ends"),))


def test_saved_rows_are_read_as_they_were(tmp_path: Path) -> None:
    """What JSON makes of a row is made a row again."""
    assert load(save("killed", TRIED, tmp_path)) == TRIED
    assert load_all(tmp_path) == [TRIED]


def test_the_tables_are_made_anew_between_the_marks() -> None:
    """What people wrote around them stays."""
    page = page_with(
        "above\n<!-- the table begins -->bygone<!-- the table ends -->\nbelow\n", [TRIED]
    )
    assert page.startswith("above\n")
    assert page.endswith("\nbelow\n")
    assert "bygone" not in page
    assert "`python -m x` (2026-11-22, seed 7)" in page
    assert "| a \\| b | a folder | 1,000 | ends | 0 |" in page
    assert page_with(page, [TRIED]) == page


def test_the_page_is_made_of_the_saved_rows() -> None:
    """``PYTHONPATH=. python -m tests.reliability`` after a long form."""
    text = PAGE.read_text()
    assert page_with(text, load_all()) == text


def test_nothing_is_lost() -> None:
    """No saved row has a time at which data was lost or wrong."""
    assert [row for tried in load_all() for row in tried.rows if row.lost] == []
