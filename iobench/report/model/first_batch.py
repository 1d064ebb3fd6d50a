"""PURE. What loops and loaders waited for until their first batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dataprep.counted import counted
from iobench.loaders.own import SYNTHETIC
from iobench.report.model.cells import Cell, cells
from iobench.report.model.drawings import Part, Pile, Piles, Tip
from iobench.report.model.numbers import percent, seconds
from iobench.report.model.params import joined, varying
from iobench.report.model.shapes import Block, Chart, Entry, Key, Section, Table
from iobench.result import Result
from iobench.stats import Estimate

_MOST_PILES = 12
_NO_BREAK = "\u00a0"
_NOT_TOLD = "not told apart"
_APART = ("loader", "data", "cache", "seconds")
_NOTE = (
    "Medians of each part, which therefore need not add up to the median of the whole exactly, as "
    "the parts of each trial do. A trial looks at its data before its clock runs: local folders "
    "are listed from memory then, and take longer the first time."
)


class _Stage(NamedTuple):
    """A part: its metric, what the page calls it, what it means, its colour."""

    metric: str
    name: str
    meaning: str
    colour: int


_STAGES = (
    _Stage("listing", "listing", "folders listed, or manifest and tables read", 5),
    _Stage("worker_start", "worker start", "workers started, or a pipeline built", 6),
    _Stage("fetch", "first fetch", "its samples read", 1),
    _Stage("decode", "first decode", "its samples decoded and augmented", 4),
    _Stage("rest", "rest", "put together, handed over, and what is not told apart", 7),
)


class _Row(NamedTuple):
    """A loop or a loader with its settings, and the cell that was measured."""

    name: str
    cell: Cell
    whole: Estimate


_READ = ("warm", "cold", "store")
"""Inputs whose first batch is read; of samples in memory only the rest of it would be left."""


def section(result: Result) -> Section | None:
    """The longest as stacked bars, and a table of all; None where no loader told its parts."""
    rows = [*_loops(result), *_loaders(result)]
    told = [row for row in rows if any(_figure(row, stage) for stage in _STAGES)]
    if not told:
        return None
    blocks: tuple[Block, ...] = (_chart(told), _table(rows))
    return Section("first-batch", "Until the first batch", blocks)


def _loops(result: Result) -> Iterator[_Row]:
    for cell in cells(result.trials, "train"):
        if cell.params.get("input") in _READ:
            source, group = (cell.params.get(key, "") for key in ("input", "group"))
            yield from _row(f"{source}: {group}", cell)


def _loaders(result: Result) -> Iterator[_Row]:
    measured = cells(result.trials, "loader")
    differ = [key for key in varying([cell.params for cell in measured])[0] if key not in _APART]
    for cell in measured:
        yield from _row(joined(cell.params, ("loader", "data", *differ)), cell)


def _row(name: str, cell: Cell) -> Iterator[_Row]:
    whole = cell.figure("time_to_first_batch_s")
    if whole is not None and cell.params.get("loader") not in SYNTHETIC:
        yield _Row(name, cell, whole)


def _figure(row: _Row, stage: _Stage) -> Estimate | None:
    return row.cell.figure(f"first_batch_{stage.metric}_s")


def _chart(told: Sequence[_Row]) -> Chart:
    longest = sorted(told, key=lambda row: -row.whole.median)[:_MOST_PILES]
    title = "What the first batch waits for"
    if len(told) > len(longest):
        title = f"{title}: the {len(longest)} longest of {len(told)}"
    keys = tuple(Key(f"{stage.name} ({stage.meaning})", "■", stage.colour) for stage in _STAGES)
    drawing = Piles("seconds", tuple(map(_pile, longest)))
    return Chart(title, drawing, keys, _NOTE, wide=True)


def _pile(row: _Row) -> Pile:
    label = ", ".join(filter(None, (row.name, row.cell.shown)))
    parts = []
    for stage in _STAGES:
        found = _figure(row, stage)
        if found is None:
            continue
        share = found.median / row.whole.median if row.whole.median > 0 else 0.0
        shown = Tip(
            f"{row.name}: {stage.name}",
            f"{seconds(found.median)}, {percent(share)} of the whole",
            _meaning(row, stage),
            str(found.repeats),
            row.cell.shown,
        )
        parts.append(Part(found.median, stage.colour, shown))
    return Pile(label, tuple(parts), seconds(row.whole.median))


def _meaning(row: _Row, stage: _Stage) -> str:
    """Of the rest also which parts are in it."""
    untold = [other.name for other in _STAGES if _figure(row, other) is None]
    if stage.metric != "rest" or not untold:
        return stage.meaning
    return f"put together and handed over; {', '.join(untold)} {_NOT_TOLD}"


def _table(rows: Sequence[_Row]) -> Table:
    columns = (
        *("loop or loader", "first batch"),
        *(stage.name for stage in _STAGES),
    )
    return Table(
        "Parts of the time to the first batch, medians over repeats",
        columns,
        tuple(
            (
                Entry(row.name, note=_measured(row)),
                _entry(row.whole),
                *(_entry(_figure(row, stage)) for stage in _STAGES),
            )
            for row in rows
        ),
    )


def _measured(row: _Row) -> str:
    """How cold, and how often."""
    return ", ".join(filter(None, (row.cell.shown, counted(len(row.cell.trials), "repeat"))))


def _entry(found: Estimate | None) -> Entry:
    if found is None:
        return Entry(_NOT_TOLD)
    return Entry(seconds(found.median), repr(found.median), True, _range(found))


def _range(found: Estimate) -> str:
    """What it may lie between, the unit once where one does; nothing of one repeat."""
    if found.repeats <= 1:
        return ""
    low, high = seconds(found.low), seconds(found.high)
    number, *unit = low.split(_NO_BREAK)
    return f"{number if unit == high.split(_NO_BREAK)[1:] else low} to {high}"
