"""Curves with whiskers over one param, and steps over time."""

from __future__ import annotations

from bokeh.models import ColumnDataSource
from bokeh.plotting import figure

from iobench.report.charts.look import (
    MARKERS,
    canvas,
    columns,
    hover,
    log_ticks,
    palette,
    plain,
    round_ticks,
    ticked,
    tinted,
)
from iobench.report.model.drawings import Curve, Curves

_HEIGHT = 300
_SIZES = {"star": 13, "diamond": 11}  # those that look smaller than they are
_DASHES = ("solid", "dashed", "dotdash", "dotted")


def draw(drawing: Curves) -> figure:
    """Curves from 0, or on a log axis where they span too much for one."""
    x_low, x_high = _x_ends(drawing)
    y_low, y_high = _y_ends(drawing)
    made = canvas(
        _HEIGHT,
        x_axis_type="log" if drawing.log_x else "linear",
        y_axis_type="log" if drawing.log_y else "linear",
        x_range=(x_low, x_high),
        y_range=(y_low, y_high),
    )
    made.xaxis.axis_label = plain(drawing.x_label)
    made.yaxis.axis_label = plain(drawing.y_label)
    made.xgrid.visible = not drawing.markers
    if drawing.x_ticks:
        words = {x: plain(said) for x, said in drawing.x_ticks}
        ticked(made.xaxis, made.xgrid, list(words), words)
    else:
        ticked(made.xaxis, made.xgrid, *round_ticks(x_low, x_high))
    y_ticks = log_ticks if drawing.log_y else round_ticks
    ticked(made.yaxis, made.ygrid, *y_ticks(y_low, y_high))
    guides = [curve for curve in drawing.curves if curve.guide]
    for curve in guides:
        _guide(made, curve)
    told = [curve for curve in drawing.curves if not curve.guide]
    drawn = [_curve(made, curve, drawing.markers) for curve in reversed(told)]
    tips = [point.tip for curve in told for point in curve.points]
    hover(made, drawn, tips, {"name": "of", "value": "is"})
    return made


def _x_ends(drawing: Curves) -> tuple[float, float]:
    xs = [point.x for curve in drawing.curves for point in curve.points]
    if drawing.x_range is not None and drawing.x_range[0] < drawing.x_range[1]:
        return drawing.x_range
    if drawing.log_x:
        return min(xs) / 1.3, max(xs) * 1.3
    span = max(xs) - min(xs) or max(abs(max(xs)), 1.0)
    margin = span * (0.06 if drawing.markers else 0.01)
    return min(xs) - margin, max(xs) + margin


def _y_ends(drawing: Curves) -> tuple[float, float]:
    points = [point for curve in drawing.curves for point in curve.points]
    high = max([*(point.high for point in points), 1e-12])
    if drawing.log_y:
        low = min(point.low if point.low > 0 else point.y for point in points if point.y > 0)
        return low / 1.4, high * 1.5
    low = min(point.low for point in points)
    if not drawing.zero:
        margin = 0.08 * ((high - low) or abs(high))
        return low - margin, high + margin
    return min(0.0, low), high * 1.08


def _guide(made: figure, curve: Curve) -> None:
    points = curve.points
    line = made.line([p.x for p in points], [p.y for p in points], line_width=1)
    tinted(line.glyph, line_color="ink")
    line.glyph.line_dash = "dashed" if curve.colour else "solid"


def _curve(made: figure, curve: Curve, markers: bool) -> object:
    points = curve.points
    source = ColumnDataSource(
        {
            "x": [point.x for point in points],
            "y": [point.y for point in points],
            "low": [point.low for point in points],
            "high": [point.high for point in points],
            **columns([point.tip for point in points]),
        }
    )
    colour = palette(curve.colour)
    if curve.joined:
        line = made.line("x", "y", source=source, line_width=2 if markers else 1.25)
        tinted(line.glyph, line_color=colour)
        if not markers:
            return line
        line.glyph.line_dash = _DASHES[curve.colour % len(_DASHES)]
    whiskers = made.segment("x", "low", "x", "high", source=source, line_width=1.25)
    tinted(whiskers.glyph, line_color=colour)
    ringed = [point for point in points if point.marked]
    if ringed:
        ring = made.scatter(
            [point.x for point in ringed],
            [point.y for point in ringed],
            size=17,
            fill_color=None,
            line_width=1.5,
            marker="circle",
        )
        tinted(ring.glyph, line_color="ink")
    marker = MARKERS[curve.colour % len(MARKERS)]
    marks = made.scatter(
        "x",
        "y",
        source=source,
        size=_SIZES.get(marker, 9),
        marker=marker,
        line_width=1,
    )
    tinted(marks.glyph, fill_color=colour, line_color="paper")
    return marks
