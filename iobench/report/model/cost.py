"""PURE. What training costs, and from which epoch on a change pays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from iobench.cost.epochs import worded
from iobench.cost.words import dollars, of_breakeven, of_what
from iobench.report.model.numbers import is_number, number, percent
from iobench.report.model.shapes import Block, Entry, Section, Table, Words
from iobench.result import Result

_MONEY = (
    ("busy_usd", "device works"),
    ("idle_usd", "device waits"),
    ("requests_usd", "requests"),
    ("storage_usd", "storage"),
    ("usd", "an epoch"),
)


def section(result: Result) -> Section | None:
    """Dollars of an epoch by part, break-evens, and what they rest on; none unless asked for."""
    found = result.summary.get("cost")
    if not isinstance(found, Mapping):
        return None
    if found.get("unknown") or not found.get("rows"):
        why = f"It cannot be told: {found.get('unknown') or 'nothing was measured'}."
        return Section("cost", "What it costs", (Words((why,)),))
    missing = [f"missing: {line}" for line in found.get("missing") or ()]
    blocks: tuple[Block, ...] = (
        Words((of_what(found),)),
        _table(found),
        Words(tuple(of_breakeven(each, found) for each in found["breakevens"])),
        Words(("What this rests on:",)),
        Words((*map(str, found["basis"]), *missing), listed=True),
    )
    return Section("cost", "What it costs", blocks)


def _table(found: Mapping[str, Any]) -> Table:
    epochs = f"to {number(found['epochs'])} epochs"
    columns = ("data", "hours an epoch", *(words for _, words in _MONEY), epochs)
    rows = tuple(_row(row, str(found["currency"])) for row in found["rows"])
    return Table(f"An epoch of {found['samples']:,.0f} samples", columns, rows)


def _row(row: Mapping[str, Any], currency: str) -> tuple[Entry, ...]:
    waits = row["idle_hours"] / row["hours"] if row["hours"] > 0 else 0.0
    idle = f"{percent(waits)} waiting" if row["idle_known"] else ""
    without = f"without {', '.join(row['without'])}" if row["without"] else ""
    money = [_money(row.get(key), currency) for key, _ in _MONEY]
    if not row["idle_known"]:
        money[1] = Entry("not measured")
    return (
        Entry(worded(row)),
        Entry(number(row["hours"]), repr(row["hours"]), True, idle),
        *money,
        _money(row.get("usd_to_epochs"), currency, without),
    )


def _money(value: Any, currency: str, note: str = "") -> Entry:
    if not is_number(value):
        return Entry("unknown", note=note)
    return Entry(dollars(value, currency), repr(value), True, note)
