"""What is handed to Bokeh."""

from __future__ import annotations

import json
from typing import Any

import pytest
from bokeh.models import ColumnDataSource, FixedTicker, HBar, HoverTool, Segment
from bokeh.models.annotations import Span
from bokeh.models.renderers import GlyphRenderer
from hypothesis import example, given
from hypothesis import strategies as st

from iobench.report.charts import as_items, draw
from iobench.report.charts.look import log_ticks, plain, round_ticks, shortened
from iobench.report.model import build
from iobench.report.model.drawings import Bars, Fall, Part, Pile, Piles, Tip, Waterfall
from iobench.report.series import by_trial
from tests.iobench.report import results

pytestmark = pytest.mark.slow

RUN = results.full(repeats=2)
REPORT = build(RUN.result(), by_trial(RUN.table()))


def test_every_chart_has_units_on_its_axes_and_no_tools_but_hovering() -> None:
    """A page is scrolled: nothing in it may catch the wheel or the finger."""
    for chart in REPORT.charts:
        made = draw(chart.drawing)
        assert all(axis.axis_label for axis in made.axis if axis.visible)
        assert all(isinstance(axis.ticker, FixedTicker) for axis in made.axis if axis.visible)
        assert [type(tool) for tool in made.tools] == [HoverTool]
        assert made.sizing_mode == "stretch_width"


def test_hovering_names_columns_only() -> None:
    """No name stands in a tooltip's template, and none is let through as markup."""
    for chart in REPORT.charts:
        (hover,) = draw(chart.drawing).tools
        templates = {template for _, template in hover.properties_with_values()["tooltips"]}
        assert "@name" in templates
        assert templates <= {"@name", "@value", "@interval", "@repeats", "@cache"}


def test_each_demand_is_a_line_across_the_bars() -> None:
    """At its value."""
    (drawing,) = [c.drawing for c in REPORT.charts if isinstance(c.drawing, Bars)]
    spans = [model for model in draw(drawing).center if isinstance(model, Span)]
    assert [span.location for span in spans] == [line.value for line in drawing.lines]
    assert spans


def test_every_colour_is_a_name_of_the_page() -> None:
    """So that light, dark and paper can each have their own."""
    for chart in REPORT.charts:
        for renderer in draw(chart.drawing).renderers:
            assert isinstance(renderer, GlyphRenderer)
            assert renderer.glyph.tags


def test_a_part_keeps_its_colour_where_another_row_lacks_one_before_it() -> None:
    """Stacked bars whose parts are not the same."""
    parts = [Part(1.0, colour, Tip("", "")) for colour in (5, 6, 1)]
    rows = (Pile("all", tuple(parts), ""), Pile("one less", (parts[0], parts[2]), ""))
    drawn = set()
    for bars in draw(Piles("s", rows)).renderers:
        assert isinstance(bars, GlyphRenderer)
        assert isinstance(bars.data_source, ColumnDataSource)
        values = bars.data_source.data
        if "left" in values:
            (colour,) = [tag for tag in bars.glyph.tags if tag.startswith("fill_color=")]
            drawn |= {(colour, *place) for place in zip(values["y"], values["left"], strict=True)}
    assert drawn == {
        ("fill_color=c5", 0.7, 0.0), ("fill_color=c6", 0.7, 1.0), ("fill_color=c1", 0.7, 2.0),
        ("fill_color=c5", 1.7, 0.0), ("fill_color=c1", 1.7, 1.0),
    }  # fmt: skip


def test_items_are_numbered_anew() -> None:
    """Bokeh's own counter does not show."""
    charts = REPORT.charts[:3]
    first = as_items(charts)
    assert json.dumps(as_items(charts)) == json.dumps(first)
    assert [item["target_id"] for item in first] == ["chart-0", "chart-1", "chart-2"]


@given(st.text(alphabet="$\\()[]ab", max_size=12))
@example("$$$")
def test_no_text_is_a_formula(text: str) -> None:
    """Bokeh's marks of TeX are taken apart, and all characters stay."""
    shown = plain(text)
    assert not any(mark in shown for mark in ("$$", "\\(", "\\)", "\\[", "\\]"))
    assert shown.replace("\u2060", "") == text


@given(st.text(), st.integers(2, 60))
def test_labels_are_short_and_on_one_line(text: str, most: int) -> None:
    """What is cut ends in an ellipsis."""
    shown = shortened(text, most)
    assert len(shown) <= most
    assert "\n" not in shown


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_ticks_lie_within_their_axis(low: float, span: float) -> None:
    """At least two, at most eight, each with its word."""
    ticks, words = round_ticks(low, low + span)
    assert 2 <= len(ticks) <= 8
    assert all(low - span * 1e-6 <= tick <= low + span * (1 + 1e-6) for tick in ticks)
    assert set(words) == set(ticks)


@given(st.floats(1e-3, 1e6), st.floats(8, 1e6))
def test_log_ticks_lie_within_their_axis(low: float, times: float) -> None:
    """At least one a decade."""
    ticks, _ = log_ticks(low, low * times)
    assert ticks
    assert all(low * 0.98 <= tick <= low * times * 1.02 for tick in ticks)


def columns_of(drawn: GlyphRenderer[Any]) -> Any:
    """What it is drawn from."""
    assert isinstance(drawn.data_source, ColumnDataSource)
    return drawn.data_source.data


def test_a_waterfall_draws_every_stretch_where_it_lies() -> None:
    """Backwards ones thin, those that cannot be told pale, whiskers where there is an interval."""
    tip = Tip("n", "v")
    rows = (
        Fall("a", 0.0, 2.0, 2.0, 2.0, "2 s", 2, tip),
        Fall("b", 2.0, 1.5, 1.0, 1.8, "-0.5 s", 4, tip),
        Fall("c", 1.5, 1.6, 1.4, 1.7, "0.1 s", 4, tip, pale=True),
        Fall("d", 0.0, 1.6, 1.6, 1.6, "1.6 s", 0, tip),
    )
    made = draw(Waterfall("s", rows))
    items = [item for item in made.renderers if isinstance(item, GlyphRenderer)]
    bars = [item for item in items if isinstance(item.glyph, HBar)]
    drawn = sorted(
        (y, left, right, bar.glyph.height, bar.glyph.fill_alpha)
        for bar in bars
        for y, left, right in zip(
            *(columns_of(bar)[name] for name in ("y", "left", "right")), strict=True
        )
    )
    assert drawn == [
        (0.7, 0.0, 2.0, 0.4, 1.0),
        (1.7, 2.0, 1.5, 0.2, 1.0),
        (2.7, 1.5, 1.6, 0.4, 0.4),
        (3.7, 0.0, 1.6, 0.4, 1.0),
    ]
    lines = [columns_of(item) for item in items if isinstance(item.glyph, Segment)]
    joined, whiskers = lines[:2]
    assert list(joined["x0"]) == [2.0, 1.5]
    assert list(zip(whiskers["x0"], whiskers["x1"], strict=True)) == [(1.0, 1.8), (1.4, 1.7)]
