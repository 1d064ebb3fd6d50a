"""PURE. Loaders over two settings at once."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from iobench.report.model.cells import Cell, cells
from iobench.report.model.drawings import Heat, Tile
from iobench.report.model.numbers import is_number
from iobench.report.model.params import joined
from iobench.report.model.shapes import Chart
from iobench.report.model.tips import tip
from iobench.result import Result

_AXES = ("workers", "batch_size", "prefetch")
_NAMED = ("loader", "data", "cache")
_FEWEST = 2


def heat_maps(result: Result) -> tuple[Chart, ...]:
    """A chart for each loader, its data and other settings, where two of the axes vary."""
    groups: dict[str, list[Cell]] = {}
    for cell in cells(result.trials, "loader"):
        if cell.figure("samples_per_s") and is_number(cell.params.get("workers")):
            apart = {key: cell.params[key] for key in cell.params if key not in _AXES}
            groups.setdefault(repr([*sorted(apart.items()), cell.cache]), []).append(cell)
    return tuple(chart for members in groups.values() for chart in _charts(members))


def _charts(members: Sequence[Cell]) -> Iterator[Chart]:
    for across, up in itertools.combinations(_AXES, 2):
        others = [key for key in _AXES if key not in (across, up)]
        by_rest: dict[str, list[Cell]] = {}
        for cell in members:
            by_rest.setdefault(repr([cell.params.get(key) for key in others]), []).append(cell)
        for alike in by_rest.values():
            columns, rows = (_values(alike, key) for key in (across, up))
            if min(len(columns), len(rows)) >= _FEWEST:
                yield _chart(alike, across, up, columns, rows)


def _chart(
    members: Sequence[Cell], across: str, up: str, columns: Sequence[float], rows: Sequence[float]
) -> Chart:
    params: Mapping[str, Any] = members[0].params
    best = max(_median(cell) for cell in members)
    tiles = tuple(
        Tile(
            columns.index(cell.params[across]),
            rows.index(cell.params[up]),
            _median(cell),
            _median(cell) / best if best > 0 else 0.0,
            _tip(cell, across, up),
        )
        for cell in members
    )
    drawing = Heat(
        across.replace("_", " "),
        up.replace("_", " "),
        tuple(f"{value:g}" for value in columns),
        tuple(f"{value:g}" for value in rows),
        tiles,
    )
    named = {**params, "cache": members[0].cache or params.get("cache", "")}
    constant = [key for key in params if key not in (across, up, *_NAMED, "seconds")]
    alike = joined(named, constant)
    return Chart(
        f"{joined(named, _NAMED)}: samples/s by {drawing.x_label} and {drawing.y_label}",
        drawing,
        note="The fuller its colour, the faster." + (f" All with {alike}." if alike else ""),
    )


def _tip(cell: Cell, across: str, up: str) -> Any:
    found = cell.figure("samples_per_s")
    assert found is not None  # noqa: S101  only such cells are drawn
    return tip(joined(cell.params, (across, up)), found, "samples/s", cell.shown)


def _median(cell: Cell) -> float:
    found = cell.figure("samples_per_s")
    return found.median if found else 0.0


def _values(members: Sequence[Cell], key: str) -> list[float]:
    return sorted({cell.params[key] for cell in members if is_number(cell.params.get(key))})
