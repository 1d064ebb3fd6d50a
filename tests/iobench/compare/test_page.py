"""A comparison as a page."""

from __future__ import annotations

import pytest

from iobench.compare import compare, trend
from iobench.compare.exported import comparison_object
from iobench.compare.page import comparison_page, trend_page
from iobench.report import render_page
from iobench.report.model.shapes import Report, Table
from tests.iobench.compare.saved_runs import (
    MACHINE,
    NOISY,
    STEADY,
    params,
    repeats,
    saved,
    scaled,
    stopped,
)
from tests.iobench.report.results import HOSTILE

BASE = saved(*repeats(STEADY), *repeats(NOISY, params("raw")), where="kept.json")
NEW = saved(
    *repeats(scaled(STEADY, 0.8)),
    *repeats(NOISY, params("raw")),
    *stopped("failed", HOSTILE, loader="null"),
    where="tonight",
    started="2026-11-22T14:35:00+00:00",
    environment={**MACHINE, "kernel": "Linux 6.9.0"},
)
LATER = saved(*repeats(scaled(STEADY, 0.9)), where="last", started="2026-11-23T14:35:00+00:00")
TWO = compare(BASE, NEW, 0.05)


def tables(report: Report) -> dict[str, list[list[str]]]:
    """Rows of text by title."""
    return {
        block.title: [[entry.text for entry in row] for row in block.rows]
        for section in report.sections
        for block in section.blocks
        if isinstance(block, Table)
    }


def test_what_differs_comes_before_the_ratios() -> None:
    """And the verdict before both, as in a terminal."""
    report = comparison_page(TWO)
    assert report.verdict.startswith("Regression: 1 of 2 figures is worse")
    assert [section.id for section in report.sections] == [
        *("differences", "ratios", "apart", "definitions"),
    ]
    assert report.figures == ()
    assert report.facts[0].startswith("base: kept.json, 2026-11-21")
    texts = [badge.text for badge in report.badges]
    assert texts == ["drift between the runs not excluded", "1 regression", "1 underpowered"]


def test_every_figure_is_in_the_table() -> None:
    """With medians, change, ratio and verdict."""
    rows = tables(comparison_page(TWO))["Every figure"]
    assert [row[1] for row in rows] == ["samples/s", "samples/s"]
    assert [row[2] for row in rows] == ["regression", "underpowered"]
    assert rows[0][3] == "-20.0 %"


def test_a_trend_has_a_column_a_run() -> None:
    """And the newest against the base; a run that lacks a point leaves its place empty."""
    report = trend_page(trend(BASE, [LATER, NEW], 0.05))
    rows = tables(report)["Medians in order of time"]
    assert [row[4:] for row in rows] == [["100", "80.1", "90.1"], ["102", "102", ""]]
    assert rows[0][2:4] == ["-10.0 %", "+12.5 %"]
    assert [section.id for section in report.sections][:3] == ["runs", "differences", "ratios"]


def test_unlike_machines_are_a_badge() -> None:
    """The first one."""
    other = saved(*repeats(STEADY), environment={**MACHINE, "processors": 2})
    report = comparison_page(compare(BASE, other, 0.05, force=True))
    assert (report.badges[0].text, report.badges[0].tone) == ("unlike machines", "alert")


@pytest.mark.parametrize(
    "report", [comparison_page(TWO), trend_page(trend(BASE, [NEW, LATER], 0.05))]
)
def test_a_page_is_one_file_in_which_names_are_text(report: Report) -> None:
    """What it calls itself, and the data that it offers, are its own."""
    page = render_page(report, comparison_object(TWO)).decode()
    assert f"iobench {report.kind}</span>" in page
    assert 'download="comparison.json"' in page
    assert HOSTILE not in page
    assert "&lt;script&gt;alert(1)" in page or report.kind == "trend"
    assert len(page) < 6e6
