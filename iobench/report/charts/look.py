"""What all charts share: type, grid, colours by name, text that is only text.

Colours are names of the page's custom properties (``c0``, ``ink``). They travel as tags such as
``fill_color=c0``, which the page's script resolves for light, dark and paper.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import ceil, floor, log10
from typing import Any, TypeAlias

from bokeh.models import FixedTicker, HoverTool, Model, NoOverlap
from bokeh.plotting import figure

from iobench.report.model.drawings import Tip
from iobench.report.model.numbers import tick_words

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
SIZE = "12px"
MARKERS = ("circle", "square", "triangle", "diamond", "inverted_triangle", "star", "hex", "plus")
COLOURS = 8
# What Bokeh would take for TeX, and go to the network for its typesetter.
_TEX = re.compile(r"\$(?=\$)|\\(?=[()\[\]])")


def plain(text: str) -> str:
    """Text in which Bokeh finds no formula: a word joiner goes between the marks of one."""
    return _TEX.sub(lambda found: f"{found[0]}\u2060", text)


def shortened(text: str, most: int = 50) -> str:
    """At most ``most`` characters, on one line; what hovering shows is whole."""
    flat = " ".join(text.split())
    return flat if len(flat) <= most else flat[: most - 1] + "…"


def tinted(model: Model, **colours: str) -> None:
    """Have the page's script colour these properties."""
    model.tags = [*model.tags, *(f"{name}={colour}" for name, colour in colours.items())]


def palette(index: int) -> str:
    """The name of a colour of the palette."""
    return f"c{index % COLOURS}"


def canvas(height: int, **options: Any) -> figure:
    """An empty figure as wide as its place, without tools."""
    made = figure(
        height=height,
        sizing_mode="stretch_width",
        tools="",
        toolbar_location=None,
        min_border_left=4,
        min_border_right=14,
        min_border_top=4,
        min_border_bottom=4,
        outline_line_color=None,
        background_fill_color=None,
        border_fill_color=None,
        **options,
    )
    for axis in (*made.xaxis, *made.yaxis):
        axis.axis_label_text_font = axis.major_label_text_font = FONT
        axis.axis_label_text_font_size = axis.major_label_text_font_size = SIZE
        axis.axis_label_text_font_style = "normal"
        axis.minor_tick_line_color = None
        axis.major_tick_in = 0
        axis.major_tick_out = 4
        tinted(
            axis,
            axis_label_text_color="quiet",
            major_label_text_color="quiet",
            axis_line_color="rule",
            major_tick_line_color="rule",
        )
    for grid in (*made.xgrid, *made.ygrid):
        tinted(grid, grid_line_color="grid")
    return made


def columns(tips: Sequence[Tip]) -> dict[str, list[str]]:
    """The columns that hovering shows."""
    names = ("name", "value", "interval", "repeats", "cache")
    return {name: [plain(getattr(tip, name)) for tip in tips] for name in names}


def hover(
    made: figure, renderers: Sequence[Any], tips: Sequence[Tip], words: Mapping[str, str]
) -> None:
    """Show the tips of ``renderers``, those columns of them that say something.

    Placeholders without a format are escaped by Bokeh; names come only in as column values.
    """
    shown = [
        (words.get(name, name), f"@{name}")
        for name in ("name", "value", "interval", "repeats", "cache")
        if any(getattr(tip, name) for tip in tips)
    ]
    made.add_tools(HoverTool(renderers=list(renderers), tooltips=shown))


Ticks: TypeAlias = tuple[list[float], dict[float, str]]


def ticked(axis: Any, grid: Any, ticks: Sequence[float], words: Mapping[float, str]) -> None:
    """Ticks where they are wanted, in the page's words; those that would overlap are left out."""
    axis.ticker = grid.ticker = FixedTicker(ticks=list(ticks))
    axis.major_label_overrides = dict(words)
    axis.major_label_policy = NoOverlap(min_distance=6)


def round_ticks(low: float, high: float) -> Ticks:
    """About six ticks at multiples of 1, 2 or 5 times a power of ten."""
    rough = (high - low) / 6
    power = 10.0 ** floor(log10(rough))
    step = next(times * power for times in (1, 2, 5, 10) if times * power >= rough * 0.999)
    ticks = [k * step for k in range(ceil(low / step), floor(high / step) + 1)]
    return ticks, {tick: tick_words(tick) for tick in ticks}


def log_ticks(low: float, high: float) -> Ticks:
    """Ticks at 1, 2 and 5 of each decade, or at its beginning where decades are many."""
    steps = (1, 2, 5) if log10(high / low) <= 3.3 else (1,)
    decades = range(floor(log10(low)), ceil(log10(high)) + 1)
    ticks = [step * 10.0**power for power in decades for step in steps]
    ticks = [tick for tick in ticks if low * 0.99 <= tick <= high * 1.01]
    return ticks, {tick: tick_words(tick) for tick in ticks}
