"""What to change, and what if: sections of the page."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from iobench.report.model import advice, build
from iobench.report.model.drawings import Curves
from iobench.report.model.shapes import Chart, Section, Table, Words
from iobench.result import Result
from iobench.rundir import summarised
from tests.iobench.advice.made import forms, over_photos, run
from tests.iobench.whatif.made import fetched, loader, loop, together


def section(result: Result, name: str) -> Section | None:
    """One of the page of a run."""
    found = build(summarised(result), {}).sections
    return next((part for part in found if part.id == name), None)


def table(part: Section | None, title: str) -> list[dict[str, str]]:
    """Rows by column, notes behind the text."""
    assert part is not None
    (found,) = (b for b in part.blocks if isinstance(b, Table) and b.title.startswith(title))
    return [
        {
            column: f"{entry.text} | {entry.note}" if entry.note else entry.text
            for column, entry in zip(found.columns, row, strict=True)
        }
        for row in found.rows
    ]


RUN = run(forms(), over_photos())


def test_changes_stand_first_with_gain_basis_and_evidence() -> None:
    """Near the top: before all that was measured."""
    page = build(summarised(RUN), {})
    assert [part.id for part in page.sections][:2] == ["findings", "advice"]
    rows = table(section(RUN, "advice"), "Settings")
    assert rows[0]["setting"] == "resize beforehand | change"
    assert rows[0]["to"] == "256 pixels"
    assert rows[0]["times the rate"] == "1.67 × | 1.63 to 1.70, predicted by the model"
    assert "torch-folder over files 600" in rows[0]["evidence"]
    states = [row["setting"].partition(" | ")[2] for row in rows]
    assert states == sorted(states, key=["change", "leave as it is", "not known"].index)


def test_nothing_to_change_stands_behind_what_was_measured() -> None:
    """Whoever climbed a ladder looks for the ladder first."""
    measured = run(loader(300.0, 2), loop("synthetic", 500.0), loop("warm", 290.0))
    order = [part.id for part in build(summarised(measured), {}).sections]
    assert order.index("training") < order.index("advice") < order.index("trials")


def test_one_sentence_says_it_all() -> None:
    """And of a run that needs no change, that."""
    part = section(RUN, "advice")
    assert part is not None
    assert isinstance(part.blocks[0], Words)
    assert part.blocks[0].lines == (
        "Of g: resize beforehand to 256 pixels, shard size to 50 MB. Together 1.67 times the rate, "
        "predicted by the model.",
    )
    stored = {"state": "change", "of": "g", "setting": "sharding", "value": True}
    page = replace(RUN, summary={"advice": [stored]})
    told = advice.section(page)
    assert told is not None
    assert isinstance(told.blocks[0], Words)
    assert told.blocks[0].lines == ("Of g: pack into shards.",)
    still = section(run(loader(300.0, 2)), "advice")
    assert still is not None
    assert isinstance(still.blocks[0], Words)
    assert still.blocks[0].lines[0].endswith("nothing that was measured is worth a change.")


def test_a_rung_from_memory_is_called_so() -> None:
    """Beside the same loop from a warm cache, whose figure is another."""
    rungs = (loop("synthetic", 500.0), loop("decode", 295.0), loop("warm", 290.0))
    rows = table(section(run(loader(300.0, 2), *rungs), "whatif"), "Predicted and measured")
    assert [row["configuration"].split(" · ")[3] for row in rows][:2] == ["from memory", "warm"]


def test_predictions_stand_beside_what_was_measured() -> None:
    """With error, what limits, and the rate if nothing ran side by side."""
    (row,) = table(section(RUN, "whatif"), "Predicted and measured")
    assert row["configuration"].startswith("loop g · torch-folder · photos · warm · 2 workers")
    assert row["configuration"].endswith("| training loop")
    assert row["predicted, samples/s"] == "300 | 297 to 303"
    assert row["limited by"] == "decode"
    assert row["error"] == "+1.7\u00a0%"
    assert row["one after the other"] == "187"


def test_the_next_limit_is_told_where_the_model_holds() -> None:
    """Decoding is 300; without that limit the device would take 500."""
    (row,) = table(section(RUN, "whatif"), "If that part were no limit")
    assert (row["limited by"], row["then by"], row["at samples/s"]) == (
        "decode",
        "device",
        "500 | 495 to 505",
    )
    assert row["times the rate"] == "1.67 ×"
    denied = section(run(forms(), over_photos(150.0)), "whatif")
    assert denied is not None
    assert "If that part were no limit" not in [
        block.title for block in denied.blocks if isinstance(block, Table)
    ]


def test_an_error_that_is_too_large_is_marked() -> None:
    """Also in the table of what the model holds for, with a reason."""
    part = section(run(forms(), over_photos(150.0)), "whatif")
    (row,) = table(part, "Predicted and measured")
    assert row["error"] == "+100\u00a0% | above 10 %"
    (scope,) = table(part, "Where the model holds")
    assert (scope["of"], scope["the model holds"], scope["tests"]) == ("g", "no", "1")
    assert scope["why not"].startswith("300 samples/s predicted, 150 measured")


def test_the_chart_has_a_point_a_test_and_lines_to_hold_them_against() -> None:
    """Agreement, and 10 % to both sides."""
    part = section(run(forms(), forms(1), forms(4), over_photos()), "whatif")
    assert part is not None
    (chart,) = (block for block in part.blocks if isinstance(block, Chart))
    drawing = chart.drawing
    assert isinstance(drawing, Curves)
    guides = [curve for curve in drawing.curves if curve.guide]
    assert [round(c.points[1].y / c.points[1].x, 2) for c in guides] == [1, 0.9, 1.1]
    told = [curve for curve in drawing.curves if not curve.guide]
    assert [key.name for key in chart.keys] == [curve.name for curve in told]
    assert len(told[0].points) == 1
    assert all(not curve.joined for curve in told)
    assert sum(len(curve.points) for curve in told) == 1 + 4 * 3


def test_capacities_say_how_they_were_had() -> None:
    """Laws with their error, stores in the words of their requests."""
    points = [fetched(size, 2, 2 * size / (0.05 + size / 80e6)) for size in (10**6, 4 * 10**6)]
    law = together(loader(300.0, 1), loader(600.0, 2), loader(600.0, 4), loader(600.0, 8))
    rows = table(section(run(law, *points), "whatif"), "Capacities")
    assert rows[0]["samples/s"] == "1: 300, 2: 600, 4: 600, 8: 600 | by workers"
    assert rows[0]["how it was had"].startswith("proportional to the workers, up to 600; ")
    assert rows[1]["how it was had"] == "first byte after 50.0 ms, 80.0 MB/s a connection"


@pytest.mark.parametrize(
    "summary",
    [
        {},
        {"advice": [], "whatif": {}},
        {"advice": "odd", "whatif": []},
        {"advice": [{"state": "odd"}, 3], "whatif": {"capacities": []}},
    ],
)
def test_results_of_other_versions_have_no_such_sections(summary: dict[str, Any]) -> None:
    """And a page all the same."""
    ids = {part.id for part in build(replace(RUN, summary=summary), {}).sections}
    assert not ids & {"advice", "whatif"}
