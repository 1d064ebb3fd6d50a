"""Supplies as bars, with what is consumed as lines across them all."""

from __future__ import annotations

from bokeh.core.properties import value
from bokeh.models import ColumnDataSource
from bokeh.models.annotations import BoxAnnotation, Span
from bokeh.plotting import figure

from iobench.report.charts.look import (
    FONT,
    SIZE,
    canvas,
    columns,
    hover,
    log_ticks,
    palette,
    plain,
    round_ticks,
    shortened,
    ticked,
    tinted,
)
from iobench.report.model.drawings import Bars
from iobench.report.model.numbers import number

_ROW = 42  # pixels of a label and its bar
_HEAD = 0.5  # of a row, for a line's label
_ROOM = {False: 1.22, True: 1.9}  # to the right of the longest, for its value


def draw(bars: Bars) -> figure:
    """One row a supply: its label above its bar, its value behind it."""
    low, high = _ends(bars)
    top = -_HEAD * len(bars.lines) - 0.1
    height = round((len(bars.rows) - top) * _ROW) + 52
    kind = "log" if bars.log else "linear"
    made = canvas(height, x_axis_type=kind, x_range=(low, high), y_range=(len(bars.rows), top))
    made.yaxis.visible = False
    made.ygrid.visible = False
    made.xaxis.axis_label = plain(bars.unit)
    if bars.log:
        ticked(made.xaxis, made.xgrid, *log_ticks(low, high))
    else:
        ticked(made.xaxis, made.xgrid, *round_ticks(low, high))
    _rows(made, bars, low)
    _lines(made, bars, low, high)
    _texts(made, bars, low)
    return made


def _ends(bars: Bars) -> tuple[float, float]:
    """The axis' ends, with room for values behind the bars."""
    values = [*(row.high for row in bars.rows), *(line.high for line in bars.lines)]
    high = max([*values, 1e-9]) * _ROOM[bars.log]
    least = [row.low for row in bars.rows] + [line.low for line in bars.lines]
    if bars.origin is not None and not bars.log:
        low, reach = min(*least, bars.origin), max(values)
        return low - 0.06 * (reach - low), reach + 0.2 * (reach - low)
    if not bars.log:
        return 0.0, high
    return min([value for value in least if value > 0], default=1.0) / 2, high


def _rows(made: figure, bars: Bars, start: float) -> None:
    rows = bars.rows
    middles = [place + 0.7 for place in range(len(rows))]
    drawn = []
    for colour in sorted({row.colour for row in rows}):
        at = [place for place, row in enumerate(rows) if row.colour == colour]
        source = ColumnDataSource(
            {
                "y": [middles[place] for place in at],
                "left": [start if bars.origin is None else bars.origin] * len(at),
                "right": [max(rows[place].value, start) for place in at],
                **columns([rows[place].tip for place in at]),
            }
        )
        bar = made.hbar(
            y="y", left="left", right="right", height=0.34, line_color=None, source=source
        )
        tinted(bar.glyph, fill_color=palette(colour))
        drawn.append(bar)
    lows, highs = [row.low for row in rows], [row.high for row in rows]
    whiskers = made.segment(x0=lows, x1=highs, y0=middles, y1=middles, line_width=1.5)
    tinted(whiskers.glyph, line_color="ink")
    for ends in (lows, highs):
        cap = made.segment(
            x0=ends,
            x1=ends,
            y0=[y - 0.1 for y in middles],
            y1=[y + 0.1 for y in middles],
            line_width=1.5,
        )
        tinted(cap.glyph, line_color="ink")
    words = dict(zip(("name", "value"), bars.hover, strict=True))
    hover(made, drawn, [row.tip for row in rows], words)


def _texts(made: figure, bars: Bars, start: float) -> None:
    rows = bars.rows
    middles = [place + 0.7 for place in range(len(rows))]
    labels = made.text(
        x=[start] * len(rows),
        y=[place + 0.3 for place in range(len(rows))],
        text=[plain(shortened(row.label)) for row in rows],
        text_font=value(FONT),
        text_font_size=SIZE,
        text_baseline="middle",
        level="annotation",
    )
    labels.glyph.update(padding=1)
    tinted(labels.glyph, text_color="ink", background_fill_color="paper")
    values = made.text(
        x=[max(row.high, row.value, bars.origin or start) for row in rows],
        y=middles,
        text=[number(row.value) for row in rows],
        text_font=value(FONT),
        text_font_size=SIZE,
        text_baseline="middle",
        x_offset=6,
        level="annotation",
    )
    values.glyph.update(padding=1)
    tinted(values.glyph, text_color="quiet", background_fill_color="paper")


def _lines(made: figure, bars: Bars, low: float, high: float) -> None:
    for place, line in enumerate(bars.lines):
        span = Span(location=line.value, dimension="height", line_width=2, level="glyph")
        tinted(span, line_color="demand")
        made.add_layout(span)
        if line.high > line.low:
            band = BoxAnnotation(
                left=line.low,
                right=line.high,
                fill_alpha=0.15,
                line_color=None,
                level="glyph",
            )
            tinted(band, fill_color="demand")
            made.add_layout(band)
        share = _share(line.value, low, high, bars.log)
        at_right = share < 0.5
        label = made.text(
            x=[line.value],
            y=[-_HEAD * (len(bars.lines) - place) + 0.12],
            text=[plain(line.label)],
            text_font=value(FONT),
            text_font_size=SIZE,
            text_font_style="bold",
            text_baseline="middle",
            text_align="left" if at_right else "right",
            x_offset=6 if at_right else -6,
            level="annotation",
        )
        label.glyph.update(padding=1)
        tinted(label.glyph, text_color="demand", background_fill_color="paper")


def _share(value: float, low: float, high: float, log: bool) -> float:
    """How far along the axis a value lies, 0 to 1."""
    from math import log as ln

    if log:
        return ln(value / low) / ln(high / low)
    return (value - low) / (high - low)
