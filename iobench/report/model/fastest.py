"""PURE. Which loader, with which settings, is the fastest, and what cannot be told from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from iobench.loaders.own import SYNTHETIC, UNDECODED
from iobench.report.model.cells import Cell, cells
from iobench.report.model.loader_use import USE, is_known, memory_words, use_of
from iobench.report.model.numbers import between, number
from iobench.report.model.params import joined, varying
from iobench.report.model.shapes import Entry, Table
from iobench.result import Result
from iobench.stats import Estimate

_ENOUGH = 0.98
_SHOWN = 2  # of what it takes: memory and processor time
_APART = ("loader", "data", "cache")


def fastest(result: Result) -> tuple[Table, ...]:
    """A row for each data and state of the cache; empty where there is no choice.

    Loaders that decode are compared with each other, and what only reads with its like.
    """
    groups: dict[tuple[str, str, bool], list[Cell]] = {}
    for cell in cells(result.trials, "loader"):
        if cell.figure("samples_per_s") and cell.params.get("loader") not in SYNTHETIC:
            key = (str(cell.params.get("data", "")), cell.cache, _decodes(cell.params))
            groups.setdefault(key, []).append(cell)
    chosen = {key: members for key, members in groups.items() if len(members) > 1}
    if not chosen:
        return ()
    known = is_known(cell for members in chosen.values() for cell in members)
    columns = (
        *("data", "cache shown", "fastest", "settings", "samples/s"),
        *(USE[:_SHOWN] if known else ()),
        *("fewest workers within 2 %", "not told apart from it"),
    )
    rows = tuple(_row(key, members, known) for key, members in chosen.items())
    return (Table("The fastest settings", columns, rows),)


def _row(key: tuple[str, str, bool], members: Sequence[Cell], known: bool) -> tuple[Entry, ...]:
    data, _, decodes = key
    ranked = sorted(members, key=lambda cell: -_rate(cell).median)
    best, others = ranked[0], ranked[1:]
    found = _rate(best)
    differ = [name for name in varying([cell.params for cell in members])[0] if name not in _APART]
    close = [cell for cell in others if _rate(cell).high >= found.low]
    fewest = _fewest_workers(best, members)
    return (
        Entry(data),
        best.cache_entry,
        Entry(str(best.params["loader"]) + ("" if decodes else " (nothing decoded)")),
        Entry(joined(best.params, differ)),
        Entry(number(found.median), repr(found.median), True, between(found)),
        *(use_of(best)[:_SHOWN] if known else ()),
        Entry(str(fewest.params.get("workers", 0)), None, True, memory_words(fewest)),
        Entry(_told(close, differ)),
    )


def _told(close: Sequence[Cell], differ: Sequence[str]) -> str:
    """The first that the intervals do not separate from the fastest, and how many more."""
    if not close:
        return "none"
    first = joined(close[0].params, ("loader", *differ))
    more = f", and {len(close) - 1} more" if len(close) > 1 else ""
    return f"{first} ({number(_rate(close[0]).median)}){more}"


def _fewest_workers(best: Cell, members: Sequence[Cell]) -> Cell:
    alike = _but_workers(best.params)
    enough = _ENOUGH * _rate(best).median
    close = [
        cell
        for cell in members
        if _but_workers(cell.params) == alike and _rate(cell).median >= enough
    ]
    return min(close, key=lambda cell: int(cell.params.get("workers", 0)))


def _but_workers(params: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in params.items() if key != "workers"}


def _decodes(params: Mapping[str, Any]) -> bool:
    return params.get("loader") not in UNDECODED and bool(params.get("decode", True))


def _rate(cell: Cell) -> Estimate:
    found = cell.figure("samples_per_s")
    assert found is not None  # noqa: S101  only such cells are compared
    return found
