"""A ladder as a waterfall: each rung begins where the one above it ended."""

from __future__ import annotations

from itertools import product

from bokeh.models import ColumnDataSource
from bokeh.plotting import figure

from iobench.report.charts.look import columns, hover, palette, tinted
from iobench.report.charts.rows import MIDDLE, row_canvas, written
from iobench.report.model.drawings import Fall, Waterfall

_ROW = 42
_PALE = 0.4


def draw(fall: Waterfall) -> figure:
    """One row a stretch: label above, whiskers at its end; thin where it reaches back."""
    rows = fall.rows
    reached = [x for row in rows for x in (row.start, row.end, row.low, row.high)]
    high = max([*reached, 1e-9]) * 1.25
    low = min(0.0, *reached)
    made = row_canvas(len(rows), _ROW, fall.unit, low, high)
    _joined(made, rows)
    _bars(made, rows)
    _whiskers(made, rows)
    ends = [max(row.start, row.end, row.high) for row in rows]
    written(made, low, [row.label for row in rows], ends, [row.said for row in rows])
    return made


def _bars(made: figure, rows: tuple[Fall, ...]) -> None:
    drawn: list[object] = []
    colours = sorted({row.colour for row in rows})
    for colour, back, pale in product(colours, (False, True), (False, True)):
        chosen = [
            (place, row)
            for place, row in enumerate(rows)
            if (row.colour, row.end < row.start, row.pale) == (colour, back, pale)
        ]
        if not chosen:
            continue
        source = ColumnDataSource(
            {
                "y": [place + MIDDLE for place, _ in chosen],
                "left": [row.start for _, row in chosen],
                "right": [row.end for _, row in chosen],
                **columns([row.tip for _, row in chosen]),
            }
        )
        bar = made.hbar(
            y="y",
            left="left",
            right="right",
            height=0.2 if back else 0.4,
            fill_alpha=_PALE if pale else 1.0,
            source=source,
            line_width=1,
        )
        tinted(bar.glyph, fill_color=palette(colour), line_color="paper")
        drawn.append(bar)
    hover(made, drawn, [row.tip for row in rows], {"name": "rung", "value": "adds"})


def _joined(made: figure, rows: tuple[Fall, ...]) -> None:
    """A thin line from where a stretch ended to each that begins there."""
    ends = {row.end: place for place, row in reversed(list(enumerate(rows)))}
    steps = [
        (row.start, ends[row.start], place)
        for place, row in enumerate(rows)
        if row.start in ends and ends[row.start] < place
    ]
    line = made.segment(
        x0=[x for x, _, _ in steps],
        x1=[x for x, _, _ in steps],
        y0=[above + MIDDLE for _, above, _ in steps],
        y1=[place + MIDDLE for _, _, place in steps],
        line_width=1,
        line_dash="dotted",
    )
    tinted(line.glyph, line_color="quiet")


def _whiskers(made: figure, rows: tuple[Fall, ...]) -> None:
    shown = [(place, row) for place, row in enumerate(rows) if row.high > row.low]
    middles = [place + MIDDLE for place, _ in shown]
    lows, highs = [row.low for _, row in shown], [row.high for _, row in shown]
    above, below = [y - 0.1 for y in middles], [y + 0.1 for y in middles]
    for x0, x1, y0, y1 in (
        (lows, highs, middles, middles),
        (lows, lows, above, below),
        (highs, highs, above, below),
    ):
        line = made.segment(x0=x0, x1=x1, y0=y0, y1=y1, line_width=1.5)
        tinted(line.glyph, line_color="ink")
