"""Charts of rows: a label above each bar, and what it comes to at its end."""

from __future__ import annotations

from collections.abc import Sequence

from bokeh.core.properties import value
from bokeh.plotting import figure

from iobench.report.charts.look import (
    FONT,
    SIZE,
    canvas,
    plain,
    round_ticks,
    shortened,
    ticked,
    tinted,
)

MIDDLE = 0.7
"""Where a row's bar lies, as a part of its height, from its top."""
_LABEL = 0.28


def row_canvas(rows: int, row_px: int, unit: str, low: float, high: float) -> figure:
    """An empty figure of so many rows, numbered from the top, over ``low`` to ``high``."""
    made = canvas(rows * row_px + 56, x_range=(low, high), y_range=(rows, 0))
    made.yaxis.visible = False
    made.ygrid.visible = False
    made.xaxis.axis_label = plain(unit)
    ticked(made.xaxis, made.xgrid, *round_ticks(low, high))
    return made


def written(
    made: figure, low: float, labels: Sequence[str], ends: Sequence[float], said: Sequence[str]
) -> None:
    """``labels`` above the bars, from ``low`` on; what is ``said`` behind their ``ends``."""
    for x, at, words, colour, away in (
        ([low] * len(labels), _LABEL, list(map(shortened, labels)), "ink", 0),
        (list(ends), MIDDLE, list(said), "quiet", 6),
    ):
        texts = made.text(
            x=x,
            y=[place + at for place in range(len(labels))],
            text=list(map(plain, words)),
            text_font=value(FONT),
            text_font_size=SIZE,
            text_baseline="middle",
            x_offset=away,
            level="annotation",  # over the lines that reach as far
        )
        texts.glyph.update(padding=1)
        tinted(texts.glyph, text_color=colour, background_fill_color="paper")
