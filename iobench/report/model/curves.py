"""PURE. Measured cells as curves over one of their params."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from iobench.report.model.cells import Cell
from iobench.report.model.drawings import Curve, Curves, Point
from iobench.report.model.numbers import is_number
from iobench.report.model.params import NAMES, joined, varying
from iobench.report.model.shapes import Chart, Key
from iobench.report.model.tips import tip

MARKS = "●■▲◆▼★⬢✚"
_MOST_CURVES = 8
_CACHE = "cache"


@dataclass(frozen=True, slots=True)
class Sweep:
    """How cells become charts.

    ``x``: the param along the axis. ``metric`` in ``unit``: what is drawn. ``facets``: params
    that get charts of their own. ``identity``: params that stay apart where there are too many
    curves; of the others the best is then taken at each x. ``marks`` rings the first point at
    95 % of its curve's peak; a curve that still rises at its end has none.
    """

    what: str
    x: str
    metric: str
    unit: str
    facets: Sequence[str]
    identity: Sequence[str]
    say_x: Callable[[float], str]
    marks: bool = False
    min_points: int = 2


def charts(sweep: Sweep, measured: Sequence[Cell]) -> tuple[Chart, ...]:
    """A chart for each facet in which anything varies along x."""
    facets: dict[tuple[str, ...], list[Cell]] = {}
    for cell in measured:
        if is_number(cell.params.get(sweep.x)) and cell.figure(sweep.metric):
            key = tuple(str(cell.params.get(name, "")) for name in sweep.facets)
            facets.setdefault(key, []).append(cell)
    made: list[Chart] = []
    for names, members in facets.items():
        made.extend(_facet(sweep, " · ".join(filter(None, names)), members))
    return tuple(made)


def _facet(sweep: Sweep, name: str, members: Sequence[Cell]) -> list[Chart]:
    apart = [
        key
        for key in dict.fromkeys(key for cell in members for key in cell.params)
        if key not in (sweep.x, *sweep.facets)
    ]
    lines = _lines(sweep, members, apart)
    best = len(lines) > _MOST_CURVES
    if best:
        lines = _lines(sweep, members, [key for key in apart if key in sweep.identity])
    parts = [lines[i : i + _MOST_CURVES] for i in range(0, len(lines), _MOST_CURVES)]
    return [
        _chart(sweep, name + (f" ({i} of {len(parts)})" if len(parts) > 1 else ""), part, best)
        for i, part in enumerate(parts, start=1)
    ]


def _lines(
    sweep: Sweep, members: Sequence[Cell], apart: Sequence[str]
) -> list[tuple[Mapping[str, Any], list[Cell]]]:
    """Cells by the params that stay apart; at each x the best of them, in order of x."""
    lines: dict[str, tuple[dict[str, Any], dict[float, Cell]]] = {}
    for cell in members:
        params = {key: cell.params[key] for key in apart if key in cell.params}
        if cell.cache:
            params[_CACHE] = cell.cache
        _, places = lines.setdefault(repr(sorted(params.items())), (params, {}))
        x = float(cell.params[sweep.x])
        if x not in places or _median(cell, sweep.metric) > _median(places[x], sweep.metric):
            places[x] = cell
    return [
        (params, [places[x] for x in sorted(places)])
        for params, places in lines.values()
        if len(places) >= sweep.min_points
    ]


def _chart(
    sweep: Sweep, name: str, lines: Sequence[tuple[Mapping[str, Any], list[Cell]]], best: bool
) -> Chart:
    differ, alike = varying([params for params, _ in lines])
    curves = tuple(
        _curve(
            sweep,
            joined(params, differ) or joined(params, sweep.identity) or sweep.what,
            colour,
            line,
        )
        for colour, (params, line) in enumerate(lines)
    )
    xs = sorted({point.x for curve in curves for point in curve.points})
    ys = [point.y for curve in curves for point in curve.points if point.y > 0]
    drawing = Curves(
        NAMES.get(sweep.x, sweep.x.replace("_", " ")),
        sweep.unit,
        curves,
        tuple((x, sweep.say_x(x)) for x in xs),
        log_x=xs[0] > 0 and xs[-1] / xs[0] >= 8,
        log_y=bool(ys) and max(ys) / min(ys) > 20,
    )
    keys = [Key(curve.name, MARKS[curve.colour], curve.colour) for curve in curves]
    if any(point.marked for curve in curves for point in curve.points):
        keys.append(Key("first point at 95 % of its curve's peak", "◯", None))
    constant = joined(lines[0][1][0].params if best else lines[0][0], alike)
    said = [f"All with {constant}." if constant and not best else constant and f"{constant}."]
    if best:
        said.append("Of the other settings the best at each point.")
    title = f"{sweep.what}: {name}" if name else sweep.what
    return Chart(title, drawing, tuple(keys), " ".join(filter(None, said)))


def _curve(sweep: Sweep, name: str, colour: int, line: Sequence[Cell]) -> Curve:
    peak = max(_median(cell, sweep.metric) for cell in line)
    points, ringed = [], not sweep.marks
    for cell in line:
        found = cell.figure(sweep.metric)
        if found is None:
            continue
        x = float(cell.params[sweep.x])
        mark = not ringed and cell is not line[-1] and found.median >= 0.95 * peak
        ringed = ringed or mark
        shown = tip(f"{name}, {sweep.say_x(x)}", found, sweep.unit, cell.shown)
        points.append(Point(x, found.median, found.low, found.high, shown, mark))
    return Curve(name, colour, tuple(points))


def _median(cell: Cell, metric: str) -> float:
    found = cell.figure(metric)
    return found.median if found else 0.0
