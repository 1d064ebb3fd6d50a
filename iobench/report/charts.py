"""PURE. Charts as HTML and SVG: no script, readable in print, in dark mode and by screen readers.

Colours are classes of the style sheet, each with one meaning (``device``, ``decode``, ``storage``).
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

_WIDTH, _HEIGHT = 520, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 14, 12, 42
_PERCENT_A_LETTER = 0.8
SERIES = ("s0", "s1", "s2", "s3", "s4", "s5")
"""Classes of curves that have no meaning of their own."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A row of a bar chart; ``text`` is its value in words."""

    label: str
    value: float
    text: str
    colour: str
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Point:
    """A point with its interval; ``tip`` is shown on hovering."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None
    tip: str = ""


@dataclass(frozen=True, slots=True)
class Curve:
    """Points joined by lines, with a mark on each where ``marks``.

    No line crosses a number of ``breaks``: nothing was measured after it for a while.
    """

    name: str
    colour: str
    points: Sequence[Point]
    marks: bool = True
    breaks: Sequence[float] = ()


@dataclass(frozen=True, slots=True)
class Guide:
    """A horizontal line across the chart, such as the device's rate."""

    name: str
    y: float


def bars(rows: Sequence[Bar], caption: str) -> Markup:
    """Horizontal bars from 0 on a linear axis, as a table with a bar in each row."""
    most = max([*(row.high or row.value for row in rows), 1e-12])
    made = [_bar(row, most) for row in rows]
    return Markup('<table class="bars"><caption>{}</caption>{}</table>').format(
        caption, Markup("").join(made)
    )


def _bar(row: Bar, most: float) -> Markup:
    whisker = Markup("")
    if row.low is not None and row.high is not None and row.high > row.low:
        left, width = _share(row.low, most), _share(row.high - row.low, most)
        whisker = Markup('<i class="whisker" style="left:{}%;width:{}%"></i>').format(left, width)
    return Markup(
        '<tr><th scope="row">{}</th><td class="track"><b class="fill {}" style="width:{}%"></b>{}'
        "</td><td class=n>{}</td></tr>"
    ).format(row.label, row.colour, _share(row.value, most), whisker, row.text)


def _share(value: float, most: float) -> str:
    return f"{max(0.0, value) / most * 100:.2f}"


def pile(parts: Sequence[Bar], label: str) -> Markup:
    """One stacked bar; parts too short for their text carry none, the legend has them all."""
    total = sum(part.value for part in parts) or 1.0
    spans = []
    for part in parts:
        percent = part.value / total * 100
        text = f"{part.label} {percent:.0f} %"
        shown = text if percent > _PERCENT_A_LETTER * len(text) else ""
        span = Markup('<span class="fill {}" style="flex:{}">{}</span>')
        spans.append(span.format(part.colour, f"{percent:.2f}", shown))
    keys = [
        Markup('<li><i class="fill {}"></i>{} {}</li>').format(part.colour, part.label, part.text)
        for part in parts
    ]
    return Markup(
        '<div class="pile" role="img" aria-label="{}">{}</div><ul class="legend">{}</ul>'
    ).format(label, Markup("").join(spans), Markup("").join(keys))


def lines(
    curves: Sequence[Curve],
    x_label: str,
    y_label: str,
    *,
    label: str,
    guides: Sequence[Guide] = (),
    log_x: bool = False,
    x_ticks: Sequence[tuple[float, str]] = (),
) -> Markup:
    """Curves from 0 on a linear axis upwards; ``label`` is the text alternative."""
    xs = [point.x for curve in curves for point in curve.points]
    tops = [point.high or point.y for curve in curves for point in curve.points]
    top = max([*tops, *(guide.y for guide in guides), 1e-12]) * 1.05
    frame = _Frame(min(xs), max(xs), top, log_x)
    drawn = [_grid(frame, x_label, y_label, x_ticks)]
    for guide in guides:
        y = frame.y(guide.y)
        drawn.append(
            Markup(
                '<line class="guide" x1="{}" x2="{}" y1="{}" y2="{}"/>'
                '<text class="guide" x="{}" y="{}" text-anchor="end">{}</text>'
            ).format(_LEFT, _WIDTH - _RIGHT, y, y, _WIDTH - _RIGHT, max(y - 5, 10), guide.name)
        )
    drawn += [_curve(frame, curve) for curve in curves]
    keys = [
        Markup('<li><i class="fill {}"></i>{}</li>').format(curve.colour, curve.name)
        for curve in curves
    ]
    return Markup(
        '<svg viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg><ul class="legend">{}</ul>'
    ).format(_WIDTH, _HEIGHT, label, Markup("").join(drawn), Markup("").join(keys))


@dataclass(frozen=True, slots=True)
class _Frame:
    """Places of values in the drawing."""

    first: float
    last: float
    top: float
    log_x: bool

    def x(self, value: float) -> float:
        low, high, at = self.first, self.last, value
        if self.log_x:
            low, high, at = math.log(low), math.log(high), math.log(value)
        share = 0.5 if high <= low else (at - low) / (high - low)
        inner = _WIDTH - _LEFT - _RIGHT - 16
        return round(_LEFT + 8 + share * inner, 1)

    def y(self, value: float) -> float:
        share = min(1.0, max(0.0, value / self.top))
        return round(_HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM), 1)


def _curve(frame: _Frame, curve: Curve) -> Markup:
    parts: dict[int, list[str]] = {}
    for point in curve.points:
        part = bisect.bisect_left(curve.breaks, point.x)
        parts.setdefault(part, []).append(f"{frame.x(point.x)},{frame.y(point.y)}")
    drawn = [
        Markup('<polyline class="line {}" points="{}"/>').format(curve.colour, " ".join(places))
        for places in parts.values()
    ]
    for point in curve.points if curve.marks else ():
        x, y = frame.x(point.x), frame.y(point.y)
        if point.low is not None and point.high is not None and point.high > point.low:
            drawn.append(
                Markup('<line class="line {}" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(
                    curve.colour, x, x, frame.y(point.low), frame.y(point.high)
                )
            )
        drawn.append(
            Markup(
                '<circle class="mark {}" cx="{}" cy="{}" r="4"><title>{}</title></circle>'
            ).format(curve.colour, x, y, point.tip)
        )
    return Markup("").join(drawn)


def _grid(
    frame: _Frame, x_label: str, y_label: str, x_ticks: Sequence[tuple[float, str]]
) -> Markup:
    drawn = []
    for value in round_ticks(0.0, frame.top):
        y = frame.y(value)
        drawn.append(
            Markup(
                '<line class="grid" x1="{}" x2="{}" y1="{}" y2="{}"/>'
                '<text x="{}" y="{}" text-anchor="end">{}</text>'
            ).format(_LEFT, _WIDTH - _RIGHT, y, y, _LEFT - 6, y + 4, _tick(value))
        )
    ticks = x_ticks or [(v, _tick(v)) for v in round_ticks(frame.first, frame.last)]
    last = -math.inf
    for value, words in ticks:
        x = frame.x(value)
        if x - last > 6 * len(words) + 8:  # those that would overlap are left out
            last = x
            drawn.append(
                Markup('<text x="{}" y="{}" text-anchor="middle">{}</text>').format(
                    x, _HEIGHT - _BOTTOM + 16, words
                )
            )
    drawn.append(
        Markup(
            '<text x="{}" y="{}" text-anchor="middle" class="axis">{}</text>'
            '<text x="{}" y="{}" transform="rotate(-90 12 {})" text-anchor="middle" class="axis">{}'
            "</text>"
        ).format(
            (_WIDTH + _LEFT) / 2,
            _HEIGHT - 6,
            x_label,
            12,
            (_HEIGHT - _BOTTOM) / 2,
            (_HEIGHT - _BOTTOM) / 2,
            y_label,
        )
    )
    return Markup("").join(drawn)


def _tick(value: float) -> str:
    """``0.5``, ``1,500``."""
    return f"{round(value, 6):,}".removesuffix(".0")


def round_ticks(low: float, high: float) -> list[float]:
    """About five ticks at multiples of 1, 2 or 5 times a power of ten."""
    if high <= low:
        return [low]
    rough = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(times * power for times in (1, 2, 5, 10) if times * power >= rough * 0.999)
    return [k * step for k in range(math.ceil(low / step), math.floor(high / step) + 1)]


def thinned(points: Sequence[Point], most: int) -> list[Point]:
    """Reduce to at most so many points; each group keeps its least and greatest."""
    if len(points) <= most:
        return list(points)
    group = math.ceil(len(points) * 2 / most)
    kept: list[Point] = []
    for start in range(0, len(points), group):
        part = points[start : start + group]
        ends = {id(min(part, key=lambda p: p.y)), id(max(part, key=lambda p: p.y))}
        kept += [point for point in part if id(point) in ends]
    return kept
