"""Test the measurements of iobench with figures, links and delays that are known beforehand."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict

from iobench.clock import SystemClock
from iobench.numbers import percent, percent_change
from iobench.selftest import known, links
from iobench.selftest.delays import Injected, Plan, Prefetched, Recovered, injected
from iobench.selftest.known import Check, NotRun

__all__ = ["Check", "Injected", "NotRun", "checks", "injected", "run", "text"]

_LADDER = (
    *("slowed", "on rung", "ms a sample", "recovered", "error"),
    *("most elsewhere", "diagnosis", "ok"),
)
_PREFETCH = ("slowed", "slowest stage", "ms a step", "found", "error", "ok")
_BUSY = 0.2
"""From this share of the processors' time on, other programs may cause wrong figures."""


def checks() -> Iterator[Check | NotRun]:
    """Measure all figures that are known beforehand."""
    yield from known.checks()
    yield from links.checks()


def run(
    rounds: int, *, as_json: bool, say: Callable[[str], None], note: Callable[[str], None]
) -> bool:
    """Measure everything; return whether all results are right.

    ``say`` prints results, as lines of text or as one JSON object. ``note`` prints progress.
    """
    figures: list[Check] = []
    not_run: list[NotRun] = []
    for check in checks():
        if isinstance(check, NotRun):
            not_run.append(check)
        else:
            figures.append(check)
        if not as_json:
            say(str(check))
    delays = injected(note, Plan(rounds=rounds), SystemClock())
    ok = delays.ok and all(check.ok for check in figures)
    if as_json:
        rows = [{**asdict(check), "ok": check.ok} for check in figures]
        skipped = [asdict(entry) for entry in (*not_run, *delays.not_run)]
        content = {"checks": rows, **asdict(delays), "not_run": skipped, "ok": ok}
        say(json.dumps(content, allow_nan=False))
    else:
        for line in text(delays):
            say(line)
    return ok


def text(delays: Injected) -> Iterator[str]:
    """Yield lines about the delays; tables are in Markdown."""
    if delays.ladder:
        yield "\ndelays without prefetch, and where the ladder finds them:\n"
        yield from _table([_LADDER, *map(_ladder_cells, delays.ladder)])
        rungs = [f"{rung} {seconds * 1e3:.2f}" for rung, seconds in delays.rungs_s.items()]
        yield f"\nwithout any delay, ms a sample: {', '.join(rungs)}"
    if delays.prefetch:
        yield (
            f"\ndelays with prefetch, {delays.prefetch[0].workers} workers: a step takes "
            "what its slowest stage takes:\n"
        )
        yield from _table([_PREFETCH, *map(_prefetch_cells, delays.prefetch)])
    if delays.others_busy_share is not None:
        share = percent(delays.others_busy_share)
        yield f"\nother programs took {share} of the processors meanwhile"
        if not delays.ok and delays.others_busy_share >= _BUSY:
            yield "which may be why: try again on a quiet machine, or with more --rounds"
    yield from map(str, delays.not_run)


def _ladder_cells(row: Recovered) -> tuple[str, ...]:
    other = [stage for stage in row.case.split(" and ") if stage != row.stage]
    diagnosis = f"{row.code}, primary" if row.code == row.primary else row.code
    if not row.named:
        diagnosis = f"not named: {', '.join(row.findings[:2]) or 'nothing found'}"
    return (
        f"{row.stage} (and {other[0]})" if other else row.stage,
        row.rung,
        f"{row.injected_s * 1e3:11.1f}",
        f"{row.recovered_s * 1e3:9.2f}",
        percent_change(row.error),
        f"{row.elsewhere.rung} {percent_change(row.stray)}",
        diagnosis,
        _verdict(row.ok),
    )


def _prefetch_cells(row: Prefetched) -> tuple[str, ...]:
    return (
        row.case,
        row.slowest,
        f"{row.expected_s * 1e3:9.1f}",
        f"{row.found_s * 1e3:5.1f}",
        percent_change(row.error),
        _verdict(row.ok),
    )


def _verdict(ok: bool) -> str:
    return "yes" if ok else "WRONG"


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Align the columns; the first row is the heading."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rule = ["-" * width for width in widths]
    for row in (rows[0], rule, *rows[1:]):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        yield f"| {' | '.join(cells)} |"
