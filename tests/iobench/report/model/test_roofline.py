"""The section of measured rates and their limits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from iobench.held import held
from iobench.report.model import build
from iobench.report.model.roofline import badges, section
from iobench.report.model.shapes import Chart, Table, Words
from iobench.result import Result
from iobench.trial import Cold
from tests.iobench.summary.made import one, result

SATA = {"kind": "sata", "device": {"link_mb_per_s": 600.0, "transport": "sata"}}


def run(rate: float, **target: Any) -> Result:
    """A probe of a disk on SATA, and a loader that reads from it."""
    params = {"target": "data", "operation": "read", "pattern": "sequential", "cache": "direct"}
    disk = one("disk", params, mb_per_s=rate, cold=Cold("direct", "direct"))
    loader = one("loader", {"loader": "raw", "data": "shards@disk"}, mb_per_s=42, samples_per_s=1e3)
    made = result([disk, replace(loader, cold=Cold("cold", "cold"))])
    return held(replace(made, environment={"targets": {"data": target or SATA}}))


def blocks(found: Result, kind: type[Any]) -> list[Any]:
    """Those of a kind in the section."""
    made = section(found)
    assert made is not None
    return [block for block in made.blocks if isinstance(block, kind)]


def test_each_rate_stands_beside_its_limit() -> None:
    """With its share, and what it is."""
    (table,) = blocks(run(900.0), Table)
    texts = [[cell.text for cell in row] for row in table.rows]
    assert texts[0] == [
        "data",
        "sequential read, direct",
        "900",
        "600",
        "150.0\u00a0%",
        "beyond: a cache",
    ]
    assert texts[1][4:] == ["7.0\u00a0%", "within"]


def test_a_rate_beyond_its_limit_marks_the_page() -> None:
    """And one within it does not."""
    assert [badge.text for badge in badges(run(900.0))] == ["faster than its limit: data: a cache"]
    assert badges(run(500.0)) == ()


def test_the_roofline_is_drawn_where_a_limit_is_known() -> None:
    """The limit falls with the bytes of a sample; the loader is one point."""
    (chart,) = blocks(run(500.0), Chart)
    line, point = chart.drawing.curves
    assert [p.x * 1e3 * p.y for p in line.points] == [600e6, 600e6]
    assert [(p.x, p.y) for p in point.points] == [(42.0, 1000.0)]


def test_without_a_limit_there_is_a_table_alone() -> None:
    """Which names the key that would tell it."""
    found = run(500.0, kind="virtio", name="virtual disk")
    assert blocks(found, Chart) == []
    (table,) = blocks(found, Table)
    (words,) = blocks(found, Words)
    assert words.lines[0] == (
        "No limit is known for data: virtual disk tells none: give limits.targets.data.mb_per_s."
    )
    assert table.rows[0][5].text == "unknown"


def test_older_results_have_no_such_section() -> None:
    """Nothing falls over, and nothing is said."""
    old = result([])
    assert section(old) is None
    assert "roofline" not in {each.id for each in build(old, {}).sections}
