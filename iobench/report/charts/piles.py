"""Where a loop's time goes, as stacked bars."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from bokeh.models import ColumnDataSource
from bokeh.plotting import figure

from iobench.report.charts.look import columns, hover, palette, tinted
from iobench.report.charts.rows import row_canvas, written
from iobench.report.model.drawings import Part, Piles, Tip

_ROW = 48


def draw(piles: Piles) -> figure:
    """One row a loop: parts end to end from 0; a negative part lies, thin, on what it undoes."""
    ends = [_reached(pile.parts) for pile in piles.rows]
    high = max([*(value for reached in ends for value in reached), 1e-9]) * 1.2
    low = min(0.0, *(value for reached in ends for value in reached))
    made = row_canvas(len(piles.rows), _ROW, piles.unit, low, high)
    _parts(made, piles)
    written(
        made,
        low,
        [pile.label for pile in piles.rows],
        [max(reached) for reached in ends],
        [pile.total for pile in piles.rows],
    )
    return made


def _parts(made: figure, piles: Piles) -> None:
    drawn: list[object] = []
    tips: list[Tip] = []
    colours = sorted({part.colour for pile in piles.rows for part in pile.parts})
    most = max(len(pile.parts) for pile in piles.rows)
    for index, colour, back in product(range(most), colours, (False, True)):
        rows = [
            (place, pile)
            for place, pile in enumerate(piles.rows)
            if index < len(pile.parts)
            and pile.parts[index].colour == colour
            and (pile.parts[index].value < 0) is back
        ]
        if not rows:
            continue
        starts = [_reached(pile.parts)[index] for _, pile in rows]
        parts = [pile.parts[index] for _, pile in rows]
        source = ColumnDataSource(
            {
                "y": [place + 0.7 for place, _ in rows],
                "left": starts,
                "right": [a + p.value for a, p in zip(starts, parts, strict=True)],
                **columns([part.tip for part in parts]),
            }
        )
        bar = made.hbar(
            y="y",
            left="left",
            right="right",
            height=0.2 if back else 0.4,
            source=source,
            line_width=1,
        )
        tinted(bar.glyph, fill_color=palette(colour), line_color="paper")
        drawn.append(bar)
        tips.extend(part.tip for part in parts)
    hover(made, drawn, tips, {"name": "part", "interval": "is", "value": "takes"})


def _reached(parts: Sequence[Part]) -> list[float]:
    """Where each part begins, and where the last ends."""
    reached = [0.0]
    for part in parts:
        reached.append(reached[-1] + part.value)
    return reached
