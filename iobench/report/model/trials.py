"""PURE. Every trial, done, skipped or failed; and what showed that it was cold."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from iobench import badges
from iobench.report.model.cells import PROVED
from iobench.report.model.numbers import is_number, number, percent
from iobench.report.model.shapes import Entry, Section, Table
from iobench.result import Result
from iobench.trial import Trial

_KINDS = {
    "train": "Training",
    "watch": "Your loop",
    "loader": "Loaders",
    "layout": "Layouts",
    "disk": "Disks",
    "object": "Object stores",
}
# What a reader looks for first; the rest follows in the order of the result.
_FIRST = ("samples_per_s", "mb_per_s", "iops", "requests_per_s", "au_mlperf", "wait_share")
_LEFT_OUT = (
    *("notes", "sampling_notes"),
    "epochs",  # of a record each: they have a table of their own
    # A value a rank: they have a table of their own.
    *("rank_wait_s", "rank_wait_share", "rank_step_s", "rank_compute_s", "rank_au_mlperf"),
)


def section(result: Result) -> Section | None:
    """Tables of trials, failures first."""
    tables = [
        *_reasons(result, "failed", "Failed"),
        *_reasons(result, "skipped", "Skipped"),
        *_done(result),
    ]
    return Section("trials", "All trials", tuple(tables)) if tables else None


def cold_table(result: Result) -> Table | None:
    """For every trial that read: what was asked, what the cache held, what was read."""
    rows = []
    for trial in result.trials:
        cold = trial.cold
        if cold is None or trial.status != "done":
            continue
        resident, ratio = cold.resident_before, cold.physical_ratio
        rows.append(
            (
                Entry(trial.id),
                Entry(cold.asked),
                Entry(PROVED if cold.label == "cold" else cold.label),
                _share(resident),
                Entry(number(ratio), repr(ratio), True) if is_number(ratio) else Entry("unknown"),
                Entry({True: "yes", False: "no", None: "unknown"}[cold.cache_resident]),
                Entry(cold.why),
            )
        )
    if not rows:
        return None
    columns = (
        "trial",
        "asked",
        "shown",
        "resident before",
        "physical ÷ logical bytes",
        "below 5 × memory",
        "why",
    )
    return Table(f"What showed a trial cold ({len(rows)})", columns, tuple(rows), folded=True)


def _reasons(result: Result, status: str, word: str) -> list[Table]:
    rows: dict[tuple[str, str, str], int] = {}
    for trial in result.trials:
        if trial.status == status:
            named = trial.id.rsplit("/", 1)[0]
            key = (trial.kind, named, trial.reason)
            rows[key] = rows.get(key, 0) + 1
    if not rows:
        return []
    total = sum(rows.values())
    entries = tuple(
        (Entry(kind), Entry(named), Entry(reason), Entry(str(count), is_number=True))
        for (kind, named, reason), count in rows.items()
    )
    folded = len(entries) > 20
    return [Table(f"{word} ({total})", ("kind", "trial", "reason", "repeats"), entries, folded)]


def _done(result: Result) -> list[Table]:
    tables = []
    kinds = dict.fromkeys([*_KINDS, *(trial.kind for trial in result.trials)])
    for kind in kinds:
        trials = [t for t in result.trials if t.kind == kind and t.status == "done"]
        if not trials:
            continue
        params = _keys(trial.params for trial in trials)
        metrics = _keys(trial.metrics for trial in trials)
        metrics = sorted(metrics, key=lambda key: _FIRST.index(key) if key in _FIRST else 99)
        metrics = [key for key in metrics if key not in _LEFT_OUT]
        rows = tuple(_row(trial, params, metrics) for trial in trials)
        columns = (*params, "repeat", "shown", *metrics, "seconds of trial")
        title = f"{_KINDS.get(kind, kind)} ({len(trials)})"
        tables.append(Table(title, tuple(_head(column) for column in columns), rows, True))
    return tables


def _keys(mappings: Iterable[Any]) -> list[str]:
    return list(dict.fromkeys(str(key) for mapping in mappings for key in mapping))


def _head(key: str) -> str:
    """A key as a column: underscores would keep a long one from wrapping."""
    return key.replace("_", " ")


def _row(trial: Trial, params: Sequence[str], metrics: Sequence[str]) -> tuple[Entry, ...]:
    return (
        *(entry(trial.params.get(key)) for key in params),
        Entry(str(trial.repeat), is_number=True),
        Entry(badges.words(trial.cold)),
        *(entry(trial.metrics.get(key)) for key in metrics),
        entry(trial.seconds),
    )


def entry(value: Any) -> Entry:
    """A JSON value in a cell: numbers short, and exact when copied."""
    if value is None:
        return Entry("")
    if isinstance(value, bool):
        return Entry("yes" if value else "no")
    if isinstance(value, int):
        exact = str(value)
        return Entry(f"{value:,}".replace(",", "\u202f"), exact, True)
    if isinstance(value, float):
        return Entry(number(value), repr(value), True)
    return Entry(value if isinstance(value, str) else json.dumps(value, default=str))


def _share(value: float | None) -> Entry:
    if value is None or not is_number(value):
        return Entry("unknown")
    return Entry(percent(value), repr(value), True)
