"""A heat map: tiles over two settings, each with its value in it."""

from __future__ import annotations

from bokeh.core.properties import value
from bokeh.models import ColumnDataSource
from bokeh.plotting import figure

from iobench.report.charts.look import (
    FONT,
    SIZE,
    canvas,
    columns,
    hover,
    palette,
    plain,
    ticked,
    tinted,
)
from iobench.report.model.drawings import Heat
from iobench.report.model.numbers import number

_ROW = 44
_FAINT, _FULL = 0.06, 0.6  # ink must be read on the darkest


def draw(drawing: Heat) -> figure:
    """Rows from below, as an axis has them."""
    wide, high = len(drawing.columns), len(drawing.rows)
    made = canvas(high * _ROW + 56, x_range=(-0.5, wide - 0.5), y_range=(-0.5, high - 0.5))
    made.xaxis.axis_label, made.yaxis.axis_label = plain(drawing.x_label), plain(drawing.y_label)
    made.xgrid.visible = made.ygrid.visible = False
    _named(made.xaxis, made.xgrid, drawing.columns)
    _named(made.yaxis, made.ygrid, drawing.rows)
    least = min((tile.share for tile in drawing.tiles), default=0.0)
    source = ColumnDataSource(
        {
            "x": [tile.column for tile in drawing.tiles],
            "y": [tile.row for tile in drawing.tiles],
            "alpha": [_alpha(tile.share, least) for tile in drawing.tiles],
            "said": [number(tile.value) for tile in drawing.tiles],
            **columns([tile.tip for tile in drawing.tiles]),
        }
    )
    tiles = made.rect("x", "y", 0.96, 0.92, source=source, fill_alpha="alpha", line_color=None)
    tinted(tiles.glyph, fill_color=palette(0))
    said = made.text(
        "x",
        "y",
        "said",
        source=source,
        text_font=value(FONT),
        text_font_size=SIZE,
        text_align="center",
        text_baseline="middle",
    )
    tinted(said.glyph, text_color="ink")
    hover(made, [tiles], [tile.tip for tile in drawing.tiles], {"name": "of", "value": "is"})
    return made


def _named(axis: object, grid: object, words: tuple[str, ...]) -> None:
    ticks = [float(place) for place in range(len(words))]
    ticked(axis, grid, ticks, {tick: plain(word) for tick, word in zip(ticks, words, strict=True)})


def _alpha(share: float, least: float) -> float:
    """From faint for the slowest to full for the fastest."""
    span = 1.0 - least
    return _FULL if span <= 0 else _FAINT + (_FULL - _FAINT) * (share - least) / span
