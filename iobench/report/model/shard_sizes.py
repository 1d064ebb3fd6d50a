"""PURE. The same images as small files and as shards of several sizes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from iobench.report.model.cells import Cell, cells
from iobench.report.model.curves import Sweep, charts
from iobench.report.model.numbers import size
from iobench.report.model.shapes import Chart
from iobench.result import Result
from iobench.trial import Params

_SIZED = re.compile(
    r"^(?P<what>shards|files)(?:-(?P<count>[0-9.]+) ?(?P<unit>[kM]i?B|B))?@(?P<at>.*)$"
)
_UNITS = {"B": 1, "kB": 10**3, "KiB": 2**10, "kiB": 2**10, "MB": 10**6, "MiB": 2**20}


def shard_bytes(data: str) -> tuple[str, float | None, str] | None:
    """``shards-4MB@disk`` as ``("shards", 4e6, "disk")``; None for another name.

    Files have no such size; shards without one in their name are not of a sweep.
    """
    match = _SIZED.match(data)
    if match is None or (match["what"] == "shards" and match["count"] is None):
        return None
    if match["count"] is None:
        return match["what"], None, match["at"]
    try:
        return match["what"], float(match["count"]) * _UNITS[match["unit"]], match["at"]
    except ValueError:
        return None


def shard_sizes(result: Result) -> tuple[Chart, ...]:
    """Samples/s over shard size, small files as the leftmost point; where sizes differ.

    Sizes are what shards have on average: those asked for at the bounds of 1 and 128 MB are
    made with a margin.
    """
    places: dict[str, list[tuple[Cell, float | None]]] = {}
    for kind in ("loader", "layout"):
        for cell in cells(result.trials, kind):
            named = shard_bytes(str(cell.params.get("data", "")))
            if named is not None:
                places.setdefault(named[2], []).append((cell, named[1]))
    made: list[Chart] = []
    for at, members in places.items():
        real = _real_sizes(members)
        if len(real) > 1:
            placed = [(cell, real[asked] if asked else None) for cell, asked in members]
            made.extend(_over_shard_size(at, placed, min(real.values()) / 4))
    return tuple(made)


def _real_sizes(members: Sequence[tuple[Cell, float | None]]) -> dict[float, float]:
    """What shards have on average, by what was asked: formats differ by a percent at most.

    Whoever reads them, they share a place on the axis.
    """
    found: dict[float, list[float]] = {}
    for cell, asked in members:
        if asked:
            figure = cell.figure("mean_object_bytes")
            found.setdefault(asked, []).extend([figure.median] if figure else [])
    return {
        asked: float(f"{median(means):.2g}") if means else asked for asked, means in found.items()
    }


def _over_shard_size(
    at: str, members: Sequence[tuple[Cell, float | None]], files_at: float
) -> tuple[Chart, ...]:
    moved = []
    for cell, size_bytes in members:
        params = {k: v for k, v in cell.params.items() if k not in ("data", "loader", "access")}
        params["reader"] = _reader(cell.params)
        params |= {"at": at, "shard_bytes": size_bytes or files_at}
        moved.append(replace(cell, params=params))
    sweep = Sweep(
        "Samples over shard size",
        "shard_bytes",
        "samples_per_s",
        "samples/s",
        ("at",),
        ("reader",),
        lambda x: "small files" if x == files_at else size(x),
        min_points=1,
    )
    return charts(sweep, moved)


def _reader(params: Params) -> str:
    """A loader, with its mode of access where it has one, or what is read without any."""
    loader, access = params.get("loader"), params.get("access")
    if loader is None:
        return f"read {access}"
    return f"{loader}, {access}" if access else str(loader)
