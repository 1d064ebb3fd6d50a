"""The self-test: measure loops whose figures are known, and compare the figures.

- ``known_rates``: loops of emulated loaders and devices, whose rates are known;
- ``links``: loaders behind a link to a store, whose bandwidth and latency are known;
- ``delays``: the injected delays, and whether the ladder and the diagnosis have found them;
- ``delay_bench``: training loops with these delays;
- ``memory_store``: the shards of ``links`` and ``delay_bench``, on disk and on a store in memory.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict

from iobench.clock import SystemClock
from iobench.results.numbers import percent, percent_change
from iobench.selftest import known_rates, links
from iobench.selftest.delay_bench import injected
from iobench.selftest.delays import Injected, Plan, Prefetched, Recovered
from iobench.selftest.known_rates import Check, NotRun

__all__ = ["Check", "Injected", "NotRun", "checks", "injected", "run", "text"]

_LADDER_HEAD = (
    "slowed",
    "on rung",
    "ms per sample",
    "recovered",
    "error",
    "largest change of another rung",
    "diagnosis",
    "ok",
)
_PREFETCH_HEAD = ("slowed", "slowest stage", "ms per step", "measured", "error", "ok")
_BUSY_SHARE = 0.2
"""If other programs use at least this share of the processors' time, figures may be wrong."""


def checks() -> Iterator[Check | NotRun]:
    """Measure all rates that are known, of emulated loops and of loaders behind links."""
    yield from known_rates.checks()
    yield from links.checks()


def run(
    rounds: int, *, as_json: bool, say: Callable[[str], None], note: Callable[[str], None]
) -> bool:
    """Run the self-test, and return whether all figures are right.

    Args:
        rounds: how often each case with delays is run.
        as_json: whether to print one JSON object instead of lines of text.
        say: prints results.
        note: prints progress.
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
        all_not_run = [*not_run, *delays.not_run]
        content = {
            "checks": [{**asdict(check), "ok": check.ok} for check in figures],
            **asdict(delays),
            "not_run": [asdict(entry) for entry in all_not_run],
            "ok": ok,
        }
        say(json.dumps(content, allow_nan=False))
    else:
        for line in text(delays):
            say(line)
    return ok


def text(delays: Injected) -> Iterator[str]:
    """Yield lines of text about the injected delays. Tables are in Markdown."""
    if delays.ladder:
        yield "\ndelays without prefetch, and the rungs on which the ladder finds them:\n"
        rows = [_ladder_cells(row) for row in delays.ladder]
        yield from _table([_LADDER_HEAD, *rows])
        rungs = [f"{rung} {seconds * 1e3:.2f}" for rung, seconds in delays.rungs_s.items()]
        yield f"\nwithout any delay, ms per sample: {', '.join(rungs)}"
    if delays.prefetch:
        yield (
            f"\ndelays with prefetch, {delays.prefetch[0].workers} workers: a step takes as long "
            "as its slowest stage:\n"
        )
        rows = [_prefetch_cells(row) for row in delays.prefetch]
        yield from _table([_PREFETCH_HEAD, *rows])
    if delays.others_busy_share is not None:
        share = percent(delays.others_busy_share)
        yield f"\nother programs took {share} of the processors meanwhile"
        if not delays.ok and delays.others_busy_share >= _BUSY_SHARE:
            yield "this may be the cause: try again on a quiet machine, or with more --rounds"
    yield from map(str, delays.not_run)


def _ladder_cells(row: Recovered) -> tuple[str, ...]:
    """The cells of a delay, in the order of ``_LADDER_HEAD``."""
    other_stages = [stage for stage in row.case.split(" and ") if stage != row.stage]
    slowed = f"{row.stage} (and {other_stages[0]})" if other_stages else row.stage
    diagnosis = row.code
    if row.code == row.primary:
        diagnosis = f"{row.code}, primary"
    if not row.named:
        findings = ", ".join(row.findings[:2]) or "nothing found"
        diagnosis = f"not named: {findings}"
    return (
        slowed,
        row.rung,
        f"{row.injected_s * 1e3:13.1f}",
        f"{row.recovered_s * 1e3:9.2f}",
        percent_change(row.error),
        f"{row.elsewhere.rung} {percent_change(row.stray)}",
        diagnosis,
        _verdict(row.ok),
    )


def _prefetch_cells(row: Prefetched) -> tuple[str, ...]:
    """The cells of a loop with prefetch, in the order of ``_PREFETCH_HEAD``."""
    return (
        row.case,
        row.slowest,
        f"{row.expected_s * 1e3:11.1f}",
        f"{row.found_s * 1e3:8.1f}",
        percent_change(row.error),
        _verdict(row.ok),
    )


def _verdict(ok: bool) -> str:
    return "yes" if ok else "WRONG"


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table with aligned columns. The first row is its head."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rule = ["-" * width for width in widths]
    for row in (rows[0], rule, *rows[1:]):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        yield f"| {' | '.join(cells)} |"
