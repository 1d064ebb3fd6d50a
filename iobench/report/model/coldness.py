"""PURE. Cold, and how it is known: what each epoch found, what it moved, what was not possible."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dataprep.counted import counted
from iobench.epoch_coldness import LEFT
from iobench.report.model.cells import Cell, cells
from iobench.report.model.drawings import Curve, Curves, Point
from iobench.report.model.numbers import is_number, number, percent, seconds
from iobench.report.model.shapes import Block, Chart, Entry, Key, Section, Table, Words
from iobench.report.model.tips import tip
from iobench.report.model.trials import cold_table
from iobench.result import Result
from iobench.stats import estimate, median
from iobench.words import params_words

Record = Mapping[str, Any]

_KINDS = ("train", "loader", "layout", "disk")
_MARKS = "●■▲◆▼★⬢✚"
_MOST_CURVES, _MOST_OPEN, _MOST_TICKS = 8, 24, 20
_COLUMNS = (
    *("what", "epoch", "asked", "shown", "resident before", "physical ÷ logical"),
    *("samples/s", "first batch"),
)
_NOTE = (
    "Before: the share of the files’ pages in memory, by cachestat or mincore; more than 1 % is "
    "not cold. After: bytes that storage gave to the trial and its workers ÷ bytes of the samples "
    "that were read; below 0.95 it is warm, whatever was asked. Reads of single samples move more "
    "than they ask for: there the ratio is an amplification by read-ahead. An epoch that found "
    "the page cache as left by the one before was not prepared. Of repeats the largest "
    "residency, the least ratio and the median rate; an epoch’s rate is that of all of it, its "
    "first batch included."
)


def section(result: Result) -> Section | None:
    """A row an epoch of each point, rates over epochs, limits; None where nothing was read."""
    measured = [cell for kind in _KINDS for cell in cells(result.trials, kind)]
    known = [cell for cell in measured if any(trial.cold for trial in cell.trials)]
    rows = tuple(row for cell in known for row in _rows(cell))
    if not rows:
        return None
    each = cold_table(result)
    blocks: tuple[Block, ...] = (
        *_limits(known),
        *_charts(known),
        Table("Each epoch, or trial", _COLUMNS, rows, folded=len(rows) > _MOST_OPEN),
        Words((_NOTE,)),
        *((each,) if each is not None else ()),
    )
    return Section("cold", "Cold, and how it is known", blocks)


def epochs_of(cell: Cell) -> list[list[Record]]:
    """Records of each epoch, by its number, of all repeats that have one; empty of older runs."""
    by_number: dict[int, list[Record]] = {}
    for trial in cell.trials:
        told = trial.metrics.get("epochs")
        for one in told if isinstance(told, (list, tuple)) else ():
            if isinstance(one, Mapping) and is_number(one.get("number")):
                by_number.setdefault(int(one["number"]), []).append(one)
    return [by_number[number] for number in sorted(by_number)]


def _rows(cell: Cell) -> Iterator[tuple[Entry, ...]]:
    epochs = epochs_of(cell)
    if not epochs:
        colds = [trial.cold for trial in cell.trials if trial.cold is not None]
        yield _row(cell, "", [_as_record(one) for one in colds])
    for place, records in enumerate(epochs, start=1):
        yield _row(cell, str(place), records)


def _as_record(cold: Any) -> Record:
    names = ("asked", "resident_before", "physical_ratio", "amplification", "label", "why")
    return {name: getattr(cold, name) for name in names}


def _row(cell: Cell, epoch: str, records: Sequence[Record]) -> tuple[Entry, ...]:
    labels = dict.fromkeys(str(one.get("label") or "") for one in records)
    asked = str(records[0].get("asked") or "")
    # What was left as it was has a column for what it found.
    why = next((str(one["why"]) for one in records if one.get("why") and asked != LEFT), "")
    first = _numbers(records, "time_to_first_batch_s")
    rates = _numbers(records, "samples_per_s")
    return (
        Entry(_named(cell), note=counted(len(records), "repeat")),
        Entry(epoch, is_number=True),
        Entry(asked),
        Entry(", ".join(filter(None, labels)), note=why),
        _share(records),
        _ratio(records),
        Entry(number(median(rates)), repr(median(rates)), True) if rates else Entry(""),
        Entry(seconds(median(first)), repr(median(first)), True) if first else Entry(""),
    )


def _named(cell: Cell) -> str:
    kind, params = cell.trials[0].kind, cell.params
    if kind == "train":
        return f"{params.get('group', '')}, {params.get('input', '')}"
    try:
        return params_words(kind, {key: params[key] for key in params if key != "epochs"})
    except (LookupError, TypeError, ValueError):  # params of another version
        return kind


def _share(records: Sequence[Record]) -> Entry:
    found = _numbers(records, "resident_before")
    if len(found) < len(records):
        return Entry("cannot be told")
    return Entry(percent(max(found)), repr(max(found)), True)


def _ratio(records: Sequence[Record]) -> Entry:
    found = _numbers(records, "physical_ratio")
    if len(found) < len(records):
        return Entry("not counted")
    moved = len(_numbers(records, "amplification")) == len(records)
    least = min(found)
    return Entry(number(least), repr(least), True, "amplification" if moved else "")


def _numbers(records: Sequence[Record], name: str) -> list[float]:
    return [float(one[name]) for one in records if is_number(one.get(name))]


def _limits(known: Sequence[Cell]) -> tuple[Words, ...]:
    said = dict.fromkeys(
        str(limit)
        for cell in known
        for trial in cell.trials
        for limit in (trial.cold.limits if trial.cold else ())
    )
    if not said:
        return ()
    lines = tuple(f"{line[0].upper()}{line[1:]}." for line in said if line)
    return (Words(("What could not be done or seen on this machine:",)), Words(lines, listed=True))


def _charts(known: Sequence[Cell]) -> Iterator[Chart]:
    """Rates of epoch after epoch, of what had several; loops and loaders apart."""
    several = [(cell, epochs) for cell in known if len(epochs := epochs_of(cell)) > 1]
    for kind, whose in (("train", "training loops"), ("loader", "loaders")):
        members = [each for each in several if each[0].trials[0].kind == kind]
        if members:
            yield _chart(f"Epoch after epoch: {whose}", members)


def _chart(title: str, members: Sequence[tuple[Cell, Sequence[Sequence[Record]]]]) -> Chart:
    drawn = members[:_MOST_CURVES]
    curves = tuple(_curve(place, cell, epochs) for place, (cell, epochs) in enumerate(drawn))
    last = max(len(curve.points) for curve in curves)
    ticks = tuple((float(n), str(n)) for n in range(1, last + 1)) if last <= _MOST_TICKS else ()
    keys = tuple(
        Key(f"{curve.name}: {cell.shown}", _MARKS[curve.colour], curve.colour)
        for curve, (cell, _) in zip(curves, drawn, strict=True)
    )
    note = "All of each epoch, its first batch included. Whiskers are intervals of the median."
    if len(members) > len(drawn):
        note += f" {len(drawn)} of {len(members)} are drawn; the table has all."
    return Chart(title, Curves("epoch", "samples/s", curves, ticks), keys, note, wide=True)


def _curve(colour: int, cell: Cell, epochs: Sequence[Sequence[Record]]) -> Curve:
    name, points = _named(cell), []
    for place, records in enumerate(epochs, start=1):
        rates = _numbers(records, "samples_per_s")
        if rates:
            found = estimate(rates)
            label = ", ".join(dict.fromkeys(str(one.get("label") or "") for one in records))
            shown = tip(f"{name}, epoch {place}", found, "samples/s", label)
            points.append(Point(place, found.median, found.low, found.high, shown))
    return Curve(name, colour, tuple(points))
