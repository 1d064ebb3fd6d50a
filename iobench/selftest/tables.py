"""PURE. What was injected and what was found, as tables that are aligned, and Markdown as well."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from iobench.selftest.prefetched import Prefetched
from iobench.selftest.recovered import Recovered

_LADDER = (
    *("slowed", "on rung", "ms a sample", "recovered", "error"),
    *("most elsewhere", "diagnosis", "ok"),
)
_PREFETCH = ("slowed", "slowest stage", "ms a step", "found", "error", "ok")
_NUMBERS = frozenset({"ms a sample", "recovered", "error", "ms a step", "found"})


def ladder_table(rows: Sequence[Recovered]) -> Iterator[str]:
    """One line a delay."""
    lines = [
        (
            _shown(row),
            row.rung,
            f"{row.injected_s * 1e3:.1f}",
            f"{row.recovered_s * 1e3:.2f}",
            f"{row.error:+.1%}",
            f"{row.elsewhere[0]} {row.stray:+.1%}",
            _named(row),
            _mark(row.ok),
        )
        for row in rows
    ]
    return _aligned(_LADDER, lines)


def prefetch_table(rows: Sequence[Prefetched]) -> Iterator[str]:
    """One line a loop."""
    lines = [
        (
            row.case,
            row.slowest,
            f"{row.expected_s * 1e3:.1f}",
            f"{row.found_s * 1e3:.1f}",
            f"{row.error:+.1%}",
            _mark(row.ok),
        )
        for row in rows
    ]
    return _aligned(_PREFETCH, lines)


def without_line(parts: Mapping[str, float]) -> str:
    """What the rungs cost where nothing is injected, in milliseconds a sample."""
    said = ", ".join(f"{rung} {seconds * 1e3:.2f}" for rung, seconds in parts.items())
    return f"without any delay, ms a sample: {said}"


def _shown(row: Recovered) -> str:
    """``fetch``; of a pair ``fetch (and decode)``, so that each row says whose it is."""
    other = [stage for stage in row.case.split(" and ") if stage != row.stage]
    return f"{row.stage} (and {other[0]})" if other else row.stage


def _named(row: Recovered) -> str:
    if row.named:
        return f"{row.code}, primary" if row.code == row.primary else row.code
    return f"not named: {', '.join(row.findings[:2]) or 'nothing found'}"


def _mark(ok: bool) -> str:
    return "yes" if ok else "WRONG"


def _aligned(head: Sequence[str], lines: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(head, *lines, strict=True)]
    right = [name in _NUMBERS for name in head]

    def row(cells: Sequence[str]) -> str:
        padded = (
            cell.rjust(width) if number else cell.ljust(width)
            for cell, width, number in zip(cells, widths, right, strict=True)
        )
        return f"| {' | '.join(padded)} |"

    yield row(head)
    rules = (
        "-" * (width - 1) + (":" if number else "-")
        for width, number in zip(widths, right, strict=True)
    )
    yield f"| {' | '.join(rules)} |"
    yield from map(row, lines)
