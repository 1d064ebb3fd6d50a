"""PURE. What training costs, in lines for a terminal; the report takes its sentences from here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dataprep.counted import counted
from iobench.cost.epochs import worded


def lines(found: Mapping[str, Any]) -> Iterator[str]:
    """Each place, then what would pay, then what it rests on and what is missing."""
    if found.get("unknown"):
        yield f"What training costs cannot be told: {found['unknown']}."
        return
    yield of_what(found)
    for row in found["rows"]:
        yield f"{worded(row)}: {of_row(row, found)}"
    yield from (of_breakeven(each, found) for each in found["breakevens"])
    for key in ("basis", "missing"):
        if found[key]:
            yield f"{key}:"
            yield from (f"  - {line}" for line in found[key])


def of_what(found: Mapping[str, Any]) -> str:
    """Which loop, how many samples and epochs."""
    whose = "" if found["samples_given"] else ", as many as this run read"
    emulated = " (emulated)" if found["emulated"] else ""
    return (
        f"{found['group']}{emulated}: epochs of {found['samples']:,.0f} samples{whose}, "
        f"{counted(int(found['epochs']), 'epoch')}."
    )


def of_row(row: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    """Dollars an epoch and to all epochs, and what the device's idle hours are of it."""
    idle = f"the device waits {row['idle_hours']:,.3g} h of {row['hours']:,.3g} h an epoch"
    if not row["idle_known"]:
        idle = f"{row['hours']:,.3g} h an epoch; how long the device waits was not measured"
    if row["usd"] is None:
        return f"{idle}; dollars are not known."
    money = found["currency"]
    waits = f" ({dollars(row['idle_usd'], money)})" if row["idle_known"] else ""
    without = f" (without {', '.join(row['without'])})" if row["without"] else ""
    return (
        f"{dollars(row['usd'], money)} an epoch, {dollars(row['usd_to_epochs'], money)} to "
        f"{counted(int(found['epochs']), 'epoch')}{without}; {idle}{waits}."
    )


def of_breakeven(each: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    """From which epoch on a change pays, or why that is not known."""
    what = str(each["what"])
    if each.get("unknown"):
        return f"{what[0].upper()}{what[1:]}: not known; {each['unknown']}."
    way = f"{what[0].upper()}{what[1:]} ({each['from']} to {each['to']})"
    once, saved = f"{each['once_hours']:,.3g} h", f"{each['saved_hours']:,.3g} h"
    if each["compared"] == "usd":
        money = found["currency"]
        once = f"{dollars(each['once_usd'], money)} and {once}"
        saved = f"{dollars(each['saved_usd'], money)} and {saved}"
    saved += " an epoch"
    if without := ", ".join(each.get("without") or ()):
        saved += f" (without {without}, whose price is not known)"
    spent = f"{way} takes {once} once"
    if each["pays_from_epoch"] is None:
        if not each.get("told_apart", True):
            why = "repeats differ by more than that, so that no epoch can be named"
            return f"{spent} and saves {saved} by the medians; {why} ({each['basis']})."
        return f"{spent} and saves nothing: it does not pay ({each['basis']})."
    verdict = f"pays from epoch {each['pays_from_epoch']:,} on"
    if not each["pays"]:
        verdict += f", after the {counted(int(found['epochs']), 'epoch')} that are meant"
    return f"{spent}, saves {saved}, and {verdict} ({each['basis']})."


def dollars(value: float | None, currency: str) -> str:
    """``$1.20`` or ``1.20 EUR``; two digits below a cent."""
    if value is None:
        return "unknown"
    amount = f"{abs(value):,.2f}" if abs(value) >= 0.01 or value == 0 else f"{abs(value):.2g}"
    sign = "-" if value < 0 else ""
    return f"{sign}${amount}" if currency == "USD" else f"{sign}{amount} {currency}"
