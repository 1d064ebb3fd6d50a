"""PURE. Supply against consumption: every supply, with the device's line across them all."""

from __future__ import annotations

from collections.abc import Sequence

from iobench.report.model.drawings import Bar, Bars, Line
from iobench.report.model.numbers import interval, number
from iobench.report.model.shapes import Block, Chart, Entry, Key, Section, Table, Words
from iobench.report.model.supplies import STAGES, Demand, Supply, demands_of, supplies_of
from iobench.report.model.tips import tip
from iobench.result import Result

_UNIT = "samples/s"
_MOST_BARS = 40
_LOG_FROM = 30  # a range beyond which short bars could not be told apart


def section(result: Result) -> Section | None:
    """Every supply in samples/s, with the device's line across; None without a supply."""
    supplies = supplies_of(result)
    if not supplies:
        return None
    demands = demands_of(result)
    largest = max(supply.found.median for supply in supplies)
    least = min((supply.found.median for supply in supplies if supply.found.median > 0), default=1)
    ends = [demand.found.median for demand in demands if demand.found.median > 0]
    drawing = Bars(
        _UNIT,
        tuple(_bar(supply) for supply in supplies[:_MOST_BARS]),
        tuple(_line(demand, len(demands) > 1) for demand in demands),
        log=max([largest, *ends]) / min([least, *ends]) > _LOG_FROM,
    )
    note = (
        "Measured with nothing behind the loader: rates that a stage can give, alone. "
        "Of several settings the fastest is shown. Whiskers are intervals of the median."
    )
    if len(supplies) > _MOST_BARS:
        note += f" {_MOST_BARS} of {len(supplies)} are drawn; the table has all."
    if drawing.log:
        note += " The axis is logarithmic: places compare, lengths do not."
    chart = Chart(
        "Every supply, and what is taken" if demands else "Every supply",
        drawing,
        _keys(supplies, demands),
        note,
        wide=True,
    )
    blocks: tuple[Block, ...] = (*_said(supplies, demands), chart, _table(supplies, demands))
    return Section("supply", "Supply against consumption" if demands else "Supply", blocks)


def _bar(supply: Supply) -> Bar:
    found = supply.found
    named = " · ".join(filter(None, (supply.label, supply.at)))
    shown = tip(named, found, _UNIT, supply.cache)
    return Bar(supply.label, found.median, found.low, found.high, supply.stage, shown)


def _line(demand: Demand, several: bool) -> Line:
    found = demand.found
    who = demand.letter if several else "device"
    emulated = " (emulated)" if demand.emulated else ""
    label = f"{who} consumes {number(found.median)}{emulated}"
    return Line(found.median, found.low, found.high, label)


def _keys(supplies: Sequence[Supply], demands: Sequence[Demand]) -> tuple[Key, ...]:
    present = sorted({supply.stage for supply in supplies})
    several = len(demands) > 1
    return (
        *(Key(STAGES[stage], "■", stage) for stage in present),
        *(
            Key(f"{demand.letter + ': ' if several else ''}consumed by {demand.name}", "┃", None)
            for demand in demands
        ),
    )


def _said(supplies: Sequence[Supply], demands: Sequence[Demand]) -> tuple[Words, ...]:
    """Which supplies lie below the line, for each line."""
    if not demands:
        return ()
    lines = []
    for demand in demands:
        alike = [supply for supply in supplies if demand.compares(supply)]
        total = f"{len(alike)} suppl{'y' if len(alike) == 1 else 'ies'}"
        below = [s for s in alike if s.found.high < demand.found.low]
        unsure = [s for s in alike if s not in below and s.found.low <= demand.found.high]
        line = f"The device ({demand.name}) consumes {number(demand.found.median)} samples/s."
        if below:
            lie = "lies" if len(below) == 1 else "lie"
            line += f" Of {total} {len(below)} {lie} below that: {_named(below)}."
        else:
            line += f" Of {total} none lies below that."
        if unsure:
            line += f" Not to be told apart from it: {_named(unsure)}."
        if others := len(supplies) - len(alike):
            line += f" Not compared, since they make other images of the same files: {others}."
        lines.append(line)
    return (Words(tuple(lines)),)


def _named(supplies: Sequence[Supply], most: int = 5) -> str:
    named = "; ".join(
        f"{supply.label} ({number(supply.found.median)})" for supply in supplies[:most]
    )
    rest = len(supplies) - most
    return named + (f"; and {rest} more" if rest > 0 else "")


def _table(supplies: Sequence[Supply], demands: Sequence[Demand]) -> Table:
    rows = [
        (
            Entry(supply.label),
            Entry(STAGES[supply.stage]),
            Entry(supply.at),
            Entry(supply.cache),
            Entry(number(supply.found.median), repr(supply.found.median), is_number=True),
            Entry(interval(supply.found)),
            *(_multiple(supply, demand) for demand in demands),
        )
        for supply in supplies
    ]
    times = [f"of {demand.letter if len(demands) > 1 else 'consumption'}" for demand in demands]
    columns = ("supply", "stage", "with", "cache shown", "samples/s", "interval, repeats", *times)
    return Table("The same as a table", columns, tuple(rows), folded=True)


def _multiple(supply: Supply, demand: Demand) -> Entry:
    if not demand.compares(supply):
        return Entry("")
    times = supply.found.median / demand.found.median
    return Entry(f"{number(times)} ×", repr(times), is_number=True)
