"""What charts draw, as Bokeh's JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bokeh.core.types import ID
from bokeh.embed import json_item
from bokeh.plotting import figure

from iobench.report.charts import bars, curves, heat, piles, waterfall
from iobench.report.model.drawings import Bars, Curves, Drawing, Heat, Piles, Waterfall
from iobench.report.model.shapes import Chart

__all__ = ["as_items", "draw"]


def draw(drawing: Drawing) -> figure:
    """A drawing as a figure."""
    match drawing:
        case Bars():
            return bars.draw(drawing)
        case Piles():
            return piles.draw(drawing)
        case Waterfall():
            return waterfall.draw(drawing)
        case Curves():
            return curves.draw(drawing)
        case Heat():
            return heat.draw(drawing)


def as_items(charts: Sequence[Chart]) -> list[dict[str, Any]]:
    """One embeddable item a chart, for elements ``chart-0``, ``chart-1``, ...

    Bokeh counts ids through a process; here they are counted anew, so that one result always
    gives the same page.
    """
    items: list[dict[str, Any]] = [
        dict(json_item(draw(chart.drawing), ID(f"chart-{i}"))) for i, chart in enumerate(charts)
    ]
    ids: dict[str, str] = {}
    for item in items:
        _collect(item, ids)
    renumbered: list[dict[str, Any]] = _renumbered(items, ids)
    return renumbered


def _collect(value: Any, ids: dict[str, str]) -> None:
    if isinstance(value, dict):
        found = value.get("id")
        if isinstance(found, str):
            ids.setdefault(found, f"m{len(ids)}")
        for below in value.values():
            _collect(below, ids)
    elif isinstance(value, list):
        for below in value:
            _collect(below, ids)


def _renumbered(value: Any, ids: dict[str, str], key: str = "") -> Any:
    if isinstance(value, dict):
        return {name: _renumbered(below, ids, name) for name, below in value.items()}
    if isinstance(value, list):
        return [_renumbered(below, ids, key) for below in value]
    if key in ("id", "root_id") and isinstance(value, str):
        return ids.get(value, value)
    return value
