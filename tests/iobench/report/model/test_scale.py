"""The section of more processes and more machines."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from iobench.held import held
from iobench.report.model.scale import section
from iobench.report.model.shapes import Table, Words
from iobench.result import Result
from tests.iobench.scale.made import disk, loader, run
from tests.iobench.summary.made import result

ASKED = {"devices": 256, "images_per_s": 171_000.0, "devices_per_host": 8}


def blocks(found: Result, kind: type[Any]) -> list[Any]:
    """Those of a kind in the section."""
    made = section(found)
    assert made is not None
    return [block for block in made.blocks if isinstance(block, kind)]


def test_processes_stand_beside_one() -> None:
    """With their efficiency."""
    (table,) = blocks(held(run(loader(100.0), loader(150.0, processes=2))), Table)
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["1", "torch-map", "100", "100\u00a0%", ""],
        ["2", "torch-map", "150", "75.0\u00a0%", ""],
    ]


def test_a_cluster_is_drawn_where_one_is_asked_for() -> None:
    """What it needs, part by part, and what that rests on."""
    found = held(replace(run(loader(4_000), disk(1_000)), config={"scale": ASKED}))
    (table,) = blocks(found, Table)
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["processors", "4\u202f000", "5.99", "43"],
        ["disk", "20\u202f000", "29.9", "9"],
    ]
    said = blocks(found, Words)
    assert "43 hosts" in said[0].lines[1]
    assert "unknown: store: no GET was measured (object_store)" in said[2].lines


def test_what_cannot_be_told_is_said() -> None:
    """Without a table."""
    found = held(replace(run(), config={"scale": ASKED}))
    assert blocks(found, Table) == []


def test_older_results_have_no_such_section() -> None:
    """Nor has a run that asked for nothing."""
    assert section(result([])) is None
    assert section(held(run(loader(1.0)))) is None
