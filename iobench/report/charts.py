"""PURE. Draw charts as HTML and SVG.

The charts need no script and are readable in print, in dark mode and by screen readers. A colour is
a class of the style sheet. Classes such as ``device``, ``decode`` and ``storage`` stand for a part
of a training step.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from iobench.report.typesetting import typeset
from iobench.results.numbers import percent

_WIDTH, _HEIGHT = 520, 260
"""The size of a chart with curves, in units of its SVG."""
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 14, 12, 42
"""The space around the axes, for their texts, in units of the SVG."""
_MARGIN = 8  # free space between the vertical axis and the first point, and at the other end
_SMALLEST = 1e-12  # avoids a division by zero if all values are zero
_PERCENT_PER_LETTER = 0.8  # estimated width of a letter in the stacked bar, in percent of the bar

SERIES = ("s0", "s1", "s2", "s3", "s4", "s5")
"""The colours of curves and bars that do not stand for a part of a training step."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of a chart.

    Attributes:
        label: the name of the bar.
        value: the value that the length of the bar shows.
        text: the value as text, with its interval or unit.
        colour: a class of the style sheet.
        low, high: the ends of the interval, which is drawn as a line; None without an interval.
    """

    label: str
    value: float
    text: str
    colour: str
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Point:
    """A point with its interval.

    Attributes:
        x, y: the values on the two axes.
        low, high: the ends of the interval of ``y``, drawn as a line; None without an interval.
        tooltip: the text that is shown while the mouse is over the point.
    """

    x: float
    y: float
    low: float | None = None
    high: float | None = None
    tooltip: str = ""


@dataclass(frozen=True, slots=True)
class Curve:
    """Points joined by lines.

    Attributes:
        name: the name in the legend.
        colour: a class of the style sheet.
        points: the points, from left to right.
        marks: whether each point has a mark.
        breaks: x values at which the line is interrupted, because nothing was measured for a while
            after them.
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
    """Draw horizontal bars that begin at 0, as an HTML table with a bar in each row.

    Args:
        rows: the bars, from top to bottom.
        caption: the text above the bars, such as the unit of the values.
    """
    ends = [row.high or row.value for row in rows]
    maximum = max([*ends, _SMALLEST])
    table_rows = [_drawn_bar(row, maximum) for row in rows]
    return Markup('<table class="bars"><caption>{}</caption>{}</table>').format(
        caption, Markup("").join(table_rows)
    )


def _drawn_bar(row: Bar, maximum: float) -> Markup:
    """A row of the table: the label, the bar with its interval, and the text.

    Args:
        row: the bar.
        maximum: the value of a bar that takes the whole width.
    """
    whisker = Markup("")
    if row.low is not None and row.high is not None and row.high > row.low:
        left = _percent_of(row.low, maximum)
        width = _percent_of(row.high - row.low, maximum)
        whisker = Markup('<i class="whisker" style="left:{}%;width:{}%"></i>').format(left, width)
    return Markup(
        '<tr><th scope="row">{}</th><td class="track"><b class="fill {}" style="width:{}%"></b>{}'
        "</td><td class=n>{}</td></tr>"
    ).format(row.label, row.colour, _percent_of(row.value, maximum), whisker, typeset(row.text))


def _percent_of(value: float, maximum: float) -> str:
    """A value in percent of the maximum, for the style sheet."""
    return f"{max(0.0, value) / maximum * 100:.2f}"


def stacked_bar(parts: Sequence[Bar], label: str) -> Markup:
    """Draw a stacked bar with a legend.

    If a part is too narrow for its text, the text is only in the legend, which has all parts.

    Args:
        parts: the parts, from left to right.
        label: the text for screen readers.
    """
    total = sum(part.value for part in parts) or 1.0
    spans = []
    for part in parts:
        share = part.value / total
        text = typeset(f"{part.label} {percent(share, 0)}")
        fits = share * 100 > _PERCENT_PER_LETTER * len(text)
        width = _percent_of(part.value, total)
        span = Markup('<span class="fill {}" style="flex:{}">{}</span>')
        spans.append(span.format(part.colour, width, text if fits else ""))
    bar = Markup('<div class="pile" role="img" aria-label="{}">{}</div>').format(
        typeset(label), Markup("").join(spans)
    )
    legend = _legend([(part.colour, f"{part.label} {typeset(part.text)}") for part in parts])
    return bar + legend


def _legend(entries: Sequence[tuple[str, str]]) -> Markup:
    """A list of texts, each with a mark in its colour.

    Args:
        entries: pairs of a class of the style sheet and a text.
    """
    items = [Markup('<li><i class="fill {}"></i>{}</li>').format(*entry) for entry in entries]
    return Markup('<ul class="legend">{}</ul>').format(Markup("").join(items))


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
    """Draw curves. The vertical axis is linear and begins at 0.

    Args:
        curves: the curves; at least one of them has a point.
        x_label: the name of the horizontal axis.
        y_label: the name of the vertical axis.
        label: the text for screen readers.
        guides: horizontal lines across the chart.
        log_x: whether the horizontal axis is logarithmic. All x values must then be positive.
        x_ticks: pairs of a value and the text of its tick; without them, about five round numbers.
    """
    points = [point for curve in curves for point in curve.points]
    xs = [point.x for point in points]
    tops = [point.high or point.y for point in points]
    tops += [guide.y for guide in guides]
    # 5 % of the height remain free above the highest value.
    frame = _Frame(min(xs), max(xs), max([*tops, _SMALLEST]) * 1.05, log_x)
    drawn = [
        *_horizontal_lines(frame),
        *_tick_texts(frame, x_ticks),
        _axis_names(x_label, y_label),
        *[_drawn_guide(frame, guide) for guide in guides],
        *[_drawn_curve(frame, curve) for curve in curves],
    ]
    chart = Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        _WIDTH, _HEIGHT, typeset(label), Markup("").join(drawn)
    )
    return chart + _legend([(curve.colour, curve.name) for curve in curves])


@dataclass(frozen=True, slots=True)
class _Frame:
    """Converts values to positions in a chart, in units of its SVG.

    Attributes:
        first, last: the values at the two ends of the horizontal axis.
        top: the value at the upper end of the vertical axis.
        log_x: whether the horizontal axis is logarithmic.
    """

    first: float
    last: float
    top: float
    log_x: bool

    def x(self, value: float) -> float:
        """The horizontal position of a value."""
        first, last = self.first, self.last
        if self.log_x:
            first, last, value = math.log(first), math.log(last), math.log(value)
        share = 0.5 if last <= first else (value - first) / (last - first)
        inner_width = _WIDTH - _LEFT - _RIGHT - 2 * _MARGIN
        return round(_LEFT + _MARGIN + share * inner_width, 1)

    def y(self, value: float) -> float:
        """The vertical position of a value. A value outside the chart is drawn at its edge."""
        share = min(1.0, max(0.0, value / self.top))
        return round(_HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM), 1)


def _drawn_guide(frame: _Frame, guide: Guide) -> Markup:
    """A horizontal line with its name above its right end, as SVG."""
    y, right = frame.y(guide.y), _WIDTH - _RIGHT
    return Markup(
        '<line class="guide" x1="{}" x2="{}" y1="{}" y2="{}"/>'
        '<text class="guide" x="{}" y="{}" text-anchor="end">{}</text>'
    ).format(_LEFT, right, y, y, right, max(y - 5, 10), guide.name)


def _drawn_curve(frame: _Frame, curve: Curve) -> Markup:
    """The line of a curve with its marks and intervals, as SVG."""
    lines_between_breaks: dict[int, list[str]] = {}
    for point in curve.points:
        breaks_before = bisect.bisect_left(curve.breaks, point.x)
        line = lines_between_breaks.setdefault(breaks_before, [])
        line.append(f"{frame.x(point.x)},{frame.y(point.y)}")
    drawn = [
        Markup('<polyline class="line {}" points="{}"/>').format(curve.colour, " ".join(positions))
        for positions in lines_between_breaks.values()
    ]
    if not curve.marks:
        return Markup("").join(drawn)
    for point in curve.points:
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
            ).format(curve.colour, x, y, typeset(point.tooltip))
        )
    return Markup("").join(drawn)


def _horizontal_lines(frame: _Frame) -> Iterator[Markup]:
    """The lines of the grid at round values, each with its value on the left."""
    for value in round_ticks(0.0, frame.top):
        y = frame.y(value)
        yield Markup(
            '<line class="grid" x1="{}" x2="{}" y1="{}" y2="{}"/>'
            '<text x="{}" y="{}" text-anchor="end">{}</text>'
        ).format(_LEFT, _WIDTH - _RIGHT, y, y, _LEFT - 6, y + 4, _tick(value))


def _tick_texts(frame: _Frame, ticks: Sequence[tuple[float, str]]) -> Iterator[Markup]:
    """The texts below the horizontal axis. A text that would overlap the one before is left out.

    Args:
        frame: converts values to positions.
        ticks: pairs of a value and its text; without them, about five round numbers.
    """
    if not ticks:
        ticks = [(value, _tick(value)) for value in round_ticks(frame.first, frame.last)]
    last_x = -math.inf
    for value, text in ticks:
        x = frame.x(value)
        if x - last_x > 6 * len(text) + 8:  # A letter is about 6 units wide.
            last_x = x
            yield Markup('<text x="{}" y="{}" text-anchor="middle">{}</text>').format(
                x, _HEIGHT - _BOTTOM + 16, text
            )


def _axis_names(x_label: str, y_label: str) -> Markup:
    """The name of the horizontal axis below the chart, and of the vertical axis on its left."""
    horizontal = Markup('<text x="{}" y="{}" text-anchor="middle" class="axis">{}</text>').format(
        (_WIDTH + _LEFT) / 2, _HEIGHT - 6, x_label
    )
    centre_y = (_HEIGHT - _BOTTOM) / 2
    vertical = Markup(
        '<text x="{}" y="{}" transform="rotate(-90 12 {})" text-anchor="middle" class="axis">{}'
        "</text>"
    ).format(12, centre_y, centre_y, y_label)
    return horizontal + vertical


def _tick(value: float) -> str:
    """A value of an axis: ``0.5``, ``1,500``."""
    return f"{round(value, 6):,}".removesuffix(".0")


def round_ticks(low: float, high: float) -> list[float]:
    """About five round values between two values: multiples of 1, 2 or 5 times a power of ten."""
    if high <= low:
        return [low]
    rough = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    steps = [factor * power for factor in (1, 2, 5, 10)]
    # The tolerance accepts a step that is smaller only because of rounding.
    step = min(step for step in steps if step >= rough * 0.999)
    first, last = math.ceil(low / step), math.floor(high / step)
    return [count * step for count in range(first, last + 1)]


def thinned(points: Sequence[Point], max_points: int) -> list[Point]:
    """Reduce a curve to at most ``max_points`` points.

    The points are divided into groups of neighbours. Each group keeps its lowest and its highest
    point, so that peaks stay visible.
    """
    if len(points) <= max_points:
        return list(points)
    group_size = math.ceil(len(points) * 2 / max_points)
    kept: list[Point] = []
    for start in range(0, len(points), group_size):
        group = points[start : start + group_size]
        ys = [point.y for point in group]
        extremes = sorted({ys.index(min(ys)), ys.index(max(ys))})
        kept += [group[index] for index in extremes]
    return kept
