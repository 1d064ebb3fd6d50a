"""PURE. What charts draw: values, intervals, words; no pixels and no colours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Tip:
    """What hovering shows."""

    name: str
    value: str
    interval: str = ""
    repeats: str = ""
    cache: str = ""


@dataclass(frozen=True, slots=True)
class Bar:
    """A supply. ``colour`` counts palette entries."""

    label: str
    value: float
    low: float
    high: float
    colour: int
    tip: Tip


@dataclass(frozen=True, slots=True)
class Line:
    """A value that is drawn across all bars. ``label`` is short: it stands in the chart."""

    value: float
    low: float
    high: float
    label: str


@dataclass(frozen=True, slots=True)
class Bars:
    """Horizontal bars on one axis, from 0 or, where ``log``, from the axis' left end.

    With an ``origin`` they reach from there to both sides. ``hover`` words a bar's name and value.
    """

    unit: str
    rows: tuple[Bar, ...]
    lines: tuple[Line, ...] = ()
    log: bool = False
    origin: float | None = None
    hover: tuple[str, str] = ("supply", "supplies")


@dataclass(frozen=True, slots=True)
class Part:
    """One stretch of a stacked bar; a negative one reaches back."""

    value: float
    colour: int
    tip: Tip


@dataclass(frozen=True, slots=True)
class Pile:
    """A stacked bar. ``total`` is worded and stands at its end."""

    label: str
    parts: tuple[Part, ...]
    total: str


@dataclass(frozen=True, slots=True)
class Piles:
    """Stacked horizontal bars on one axis from 0."""

    unit: str
    rows: tuple[Pile, ...]


@dataclass(frozen=True, slots=True)
class Fall:
    """One stretch of a waterfall, from ``start`` to ``end``; one that ends below reaches back.

    ``low`` to ``high`` is where it may end. ``pale``: it cannot be told from none. ``said`` stands
    behind it.
    """

    label: str
    start: float
    end: float
    low: float
    high: float
    said: str
    colour: int
    tip: Tip
    pale: bool = False


@dataclass(frozen=True, slots=True)
class Waterfall:
    """Stretches below each other on one axis from 0, each beginning where one above it ended."""

    unit: str
    rows: tuple[Fall, ...]


@dataclass(frozen=True, slots=True)
class Point:
    """One place on a curve. ``marked`` points are ringed."""

    x: float
    y: float
    low: float
    high: float
    tip: Tip
    marked: bool = False


@dataclass(frozen=True, slots=True)
class Curve:
    """Points in order of x. ``colour`` chooses the marker too."""

    name: str
    colour: int
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Curves:
    """Curves over one x. ``x_ticks`` are values with their words; empty leaves them to the axis.

    Without ``markers`` there are too many points for them: a line alone. ``zero``: y begins there.
    ``x_range`` is that of charts that stand below each other; else the axis ends where its points
    do.
    """

    x_label: str
    y_label: str
    curves: tuple[Curve, ...]
    x_ticks: tuple[tuple[float, str], ...] = ()
    log_x: bool = False
    log_y: bool = False
    markers: bool = True
    zero: bool = True
    x_range: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Tile:
    """One place of a heat map: which column and row, its value, and its share of the best."""

    column: int
    row: int
    value: float
    share: float
    tip: Tip


@dataclass(frozen=True, slots=True)
class Heat:
    """Tiles over two settings, whose values are ``columns`` and ``rows`` in words."""

    x_label: str
    y_label: str
    columns: tuple[str, ...]
    rows: tuple[str, ...]
    tiles: tuple[Tile, ...]


Drawing: TypeAlias = Bars | Piles | Waterfall | Curves | Heat
