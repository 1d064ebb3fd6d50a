"""PURE. The ladder of each training loop as a table for terminals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dataprep.names import escape

_HEAD = ("rung", "s/1,000 samples", "adds", "between", "share", "cache")


def text(ladders: Sequence[Mapping[str, Any]]) -> str:
    """A table a loop; nothing where no rung was measured."""
    return "\n\n".join(map(_table, ladders))


def _table(entry: Mapping[str, Any]) -> str:
    rows = [_HEAD, *(_row(rung) for rung in entry["rungs"])]
    widths = [max(len(row[place]) for row in rows) for place in range(len(_HEAD))]
    lines = [
        "  ".join(
            cell.ljust(width) if place in (0, len(_HEAD) - 1) else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    emulated = " (emulated)" if entry.get("emulated") else ""
    missing: dict[str, list[str]] = {}
    for rung, why in entry["not_measured"].items():
        missing.setdefault(why, []).append(rung)
    left_out = [f"not measured: {', '.join(rungs)}: {why}" for why, rungs in missing.items()]
    return "\n".join(map(escape, [f"{entry['group']}{emulated}", *lines, *left_out]))


def _row(rung: Mapping[str, Any]) -> tuple[str, ...]:
    part, share = rung["part"], rung["share"]
    marked = "" if part is None or rung["tells"] else " ?"
    return (
        str(rung["words"]),
        _seconds(rung["seconds_per_sample"]["median"]),
        _seconds(part["median"]) + marked if part else "",
        f"{_seconds(part['low'])} to {_seconds(part['high'])}"
        if part and part["repeats"] > 1
        else "",
        f"{share['median'] * 100:.1f} %" if share else "",
        str(rung["badge"]),
    )


def _seconds(a_sample: float) -> str:
    return f"{a_sample * 1000:,.3g}" if abs(a_sample) < 1 else f"{a_sample * 1000:,.0f}"
