"""Tests of iobench.sidebyside.table."""

from __future__ import annotations

import pytest

from iobench.sidebyside.contest import Contender, Contest, Goal, Measured
from iobench.sidebyside.table import figures_table, goals_table, page, worded
from iobench.stats import estimate

pytestmark = pytest.mark.slow

CONTEST = Contest(
    "speed",
    "Speed",
    "img",
    (Contender("ours", "m:f"), Contender("peer", "m:g"), Contender("absent", "m:h")),
    (Goal(1.5, "peer"), Goal(0.2, figure="seconds", bound="at most"), Goal(3, "absent")),
    notes=("On one core.",),
)
ROUNDS = {
    "ours": [Measured(1000, 0.1, {"peak_MB": 120.4})],
    "peer": [Measured(1000, 1.0, {"peak_MB": 2000.0})],
}


def test_goals() -> None:
    """What was asked, what was measured, whether it was reached; an absent peer is not hidden."""
    assert goals_table([(CONTEST, ROUNDS)]).splitlines()[2:] == [
        "| Speed | img/s | peer | at least 1.5 times | 10 | yes |",
        "| Speed | s |  | at most 0.2 | 0.1 | yes |",
        "| Speed | img/s | absent | at least 3 times |  | not measured |",
    ]


def test_figures() -> None:
    """A line for each contender that ran, with its other figures and the notes."""
    assert figures_table(CONTEST, ROUNDS).splitlines() == [
        "|  | img/s | peak MB |",
        "| --- | --- | --- |",
        "| ours | 10,000 | 120 |",
        "| peer | 1,000 | 2,000 |",
        "",
        "On one core.",
    ]


def test_page() -> None:
    """Goals first, then each contest under its title."""
    text = page([(CONTEST, ROUNDS)])
    assert text.startswith("| what | figure | beside | asked |")
    assert "### Speed\n" in text


def test_intervals() -> None:
    """Several rounds have one."""
    assert worded(estimate([1.0, 2.0, 3.0])) == "2 (1 to 3)"
    assert worded(estimate([1.0])) == "1"
    assert worded(None) == ""
