"""Ratios as charts."""

from __future__ import annotations

from typing import Any

from bokeh.models import ColumnDataSource, Range, Range1d
from bokeh.models.annotations import BoxAnnotation, Span
from bokeh.models.renderers import GlyphRenderer

from iobench.compare import Saved, compare, trend
from iobench.compare.charts import bars, curves
from iobench.report.charts import draw
from iobench.report.model.drawings import Bars, Curves
from tests.iobench.compare.saved_runs import NOISY, STEADY, params, repeats, saved, scaled


def run(*factors: float, day: int = 1) -> Saved:
    """A point a factor, every other one noisy."""
    trials = [
        trial
        for number, factor in enumerate(factors)
        for trial in repeats(
            scaled(NOISY if number % 2 else STEADY, factor), params(f"loader-{number}")
        )
    ]
    return saved(*trials, where=f"day {day}", started=f"2026-11-{day:02}T00:00:00+00:00")


def ends(axis: Range) -> tuple[float, float]:
    """Where an axis begins and ends."""
    assert isinstance(axis, Range1d)
    assert isinstance(axis.start, float)
    assert isinstance(axis.end, float)
    return axis.start, axis.end


def test_ratios_are_bars_from_1_with_their_intervals_the_worst_on_top() -> None:
    """Their colour is their verdict; the threshold is a band."""
    found = compare(run(1, 1, 1), run(0.8, 1.0, 1.2), 0.05)
    (chart,) = bars(found)
    drawing = chart.drawing
    assert isinstance(drawing, Bars)
    assert [round(row.value, 3) for row in drawing.rows] == [0.8, 1.0, 1.2]
    assert [(row.low, row.high) for row in drawing.rows] == [
        (change.ratio.low, change.ratio.high)
        for change in sorted(found.changes, key=lambda each: each.ratio.ratio)
    ]
    assert [key.name for key in chart.keys] == ["regression", "improvement", "underpowered"]
    assert len({row.colour for row in drawing.rows}) == 3
    assert (drawing.lines[0].low, drawing.lines[0].high) == (0.95, 1.05)


def test_a_bar_reaches_from_1_to_its_ratio() -> None:
    """To either side, within the axis."""
    (chart,) = bars(compare(run(1, 1, 1), run(0.8, 1.0, 1.2), 0.05))
    made = draw(chart.drawing)
    drawn = [each for each in made.renderers if isinstance(each, GlyphRenderer)][:3]
    sources = [each.data_source for each in drawn]
    columns: list[Any] = [each.data for each in sources if isinstance(each, ColumnDataSource)]
    assert {left for data in columns for left in data["left"]} == {1.0}
    assert sorted(round(right, 3) for data in columns for right in data["right"]) == [
        *(0.8, 1.0, 1.2),
    ]
    low, high = ends(made.x_range)
    assert low < 0.8
    assert high > 1.2
    assert [model.location for model in made.center if isinstance(model, Span)] == [1.0]
    (band,) = [model for model in made.center if isinstance(model, BoxAnnotation)]
    assert (band.left, band.right) == (0.95, 1.05)


def test_ratios_far_apart_are_drawn_on_a_log_axis() -> None:
    """A hundredfold beside a tenth would hide everything else."""
    (chart,) = bars(compare(run(1, 1), run(0.1, 100), 0.05))
    assert isinstance(chart.drawing, Bars)
    assert chart.drawing.log
    assert ends(draw(chart.drawing).x_range)[0] < 0.1


def test_a_chart_for_each_figure_and_no_more_bars_than_can_be_read() -> None:
    """How many there are is told."""
    many = run(*[1.0] * 60)
    (chart,) = bars(compare(many, many, 0.05))
    assert isinstance(chart.drawing, Bars)
    assert len(chart.drawing.rows) == 40
    assert "40 of 60 are drawn" in chart.note
    trials = repeats(STEADY, time_to_first_batch_s=0.5)
    assert [each.title for each in bars(compare(saved(*trials), saved(*trials), 0.05))] == [
        "loader: samples/s, new / base",
        "loader: time to first batch, new / base",
    ]


def test_a_trend_is_curves_over_the_runs() -> None:
    """The base at 1; eight curves a chart, those that are worst now first; y need not hold 0."""
    base, *others = (
        run(*[factor] * 9, 0.7 * factor, day=day + 1) for day, factor in enumerate((1.0, 0.98, 0.9))
    )
    first, second = curves(trend(base, others, 0.05))
    drawing = first.drawing
    assert isinstance(drawing, Curves)
    assert [len(each.drawing.curves) for each in (first, second)] == [8, 2]  # type: ignore[union-attr]
    curve = drawing.curves[0]
    assert [point.x for point in curve.points] == [1.0, 2.0, 3.0]
    assert [round(point.y, 3) for point in curve.points] == [1.0, 0.98, 0.9]
    assert [said for _, said in drawing.x_ticks] == ["#1 base", "#2", "#3"]
    assert ends(draw(drawing).y_range)[0] > 0.5
