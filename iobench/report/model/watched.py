"""PURE. Somebody's own loop, watched: its figures, and what they cannot say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from iobench.report.model.numbers import as_estimate, interval, is_number, number, percent, seconds
from iobench.report.model.shapes import (
    Badge,
    Block,
    Entry,
    Figure,
    Section,
    Table,
    Words,
)
from iobench.result import Result
from iobench.trial import Trial

_LARGE: tuple[tuple[str, str, Callable[[float], str], str], ...] = (
    ("wait_share", "Waiting for data", percent, "time in next() ÷ time of all steps but the first"),
    (
        "device_wait_share",
        "The GPU idle meanwhile",
        percent,
        "idle time of its stream while a batch was waited for ÷ time of all steps but the first",
    ),
    ("samples_per_s", "The loop gets, samples/s", number, "of all steps but the first"),
    (
        "time_to_first_batch_s",
        "First batch",
        seconds,
        "from asking for the first epoch to holding its first batch; in no other figure",
    ),
    ("steps", "Steps", number, "that count: the first does not"),
    ("seconds", "Time of these steps", seconds, "between epochs nothing counts"),
    ("epochs", "Epochs", number, "passes over the loader, the last perhaps in part"),
)
_SHOWN, _LEADING = 5, 2
_CACHE = Badge("page cache as it was found", "caution")
_ROWS: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("wait_share", "waiting for data, share of the time", percent),
    ("device_wait_share", "GPU idle while a batch was waited for", percent),
    ("epoch_start_share", "of the time, waiting at the start of later epochs", percent),
    ("samples_per_s", "samples/s", number),
    ("steps", "steps that count", number),
    ("epochs", "epochs", number),
    ("seconds", "time of these steps", seconds),
    ("time_to_first_batch_s", "first batch", seconds),
    ("first_step_s", "first step, without its batch", seconds),
    ("epoch_start_s", "first batch of a later epoch, mean", seconds),
    ("cpu_busy_share", "processors busy meanwhile, of all", percent),
    ("loop_cpu_share", "of that by the loop and its workers", percent),
    ("disk_read_mb_per_s", "read from the machine's disks, MB/s", number),
    *((f"step_s_{q}", f"step, {q}", seconds) for q in ("p50", "p90", "p95", "p99", "p999")),
    *((f"batch_wait_s_{q}", f"wait, {q}", seconds) for q in ("p50", "p90", "p95", "p99", "p999")),
)


def section(result: Result) -> Section | None:
    """A column a loader, a row a figure; then what they mean."""
    trials = [trial for trial in result.trials if trial.kind == "watch" and trial.status == "done"]
    if not trials:
        return None
    rows = [
        (Entry(words), *(_entry(trial, key, say) for trial in trials))
        for key, words, say in _ROWS
        if any(is_number(trial.metrics.get(key)) for trial in trials)
    ]
    columns = ("figure", *(str(trial.params.get("loader", "")) for trial in trials))
    notes = dict.fromkeys(str(n) for trial in trials for n in trial.metrics.get("notes") or ())
    blocks: tuple[Block, ...] = (
        Table("Rates and waits", columns, tuple(rows)),
        Words(tuple(f"{note[0].upper()}{note[1:]}." for note in notes if note), listed=True),
    )
    return Section("watched", "Your loop", blocks)


def figures(result: Result) -> tuple[Figure, ...]:
    """Those of the loop of which the verdict speaks; none where none was watched."""
    entries = result.summary.get("watched") or ()
    if not entries:
        return ()
    made = (_figure(entries[0], *described) for described in _LARGE)
    shown = [figure for figure in made if figure is not None][:_SHOWN]
    return tuple(replace(one, leading=place < _LEADING) for place, one in enumerate(shown))


def _figure(
    entry: Mapping[str, Any], key: str, name: str, say: Callable[[float], str], meaning: str
) -> Figure | None:
    found = as_estimate(entry.get(key))
    if found is None:
        return None
    return Figure(name, say(found.median), interval(found, say), meaning, (_CACHE,))


def _entry(trial: Trial, key: str, say: Callable[[float], str]) -> Entry:
    value = trial.metrics.get(key)
    return Entry(say(value), repr(value), True) if is_number(value) else Entry("")
