"""PURE. Watched loops on the page: the line below the verdict, a table, changes, and notes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from iobench.analysis.finding_rules import RULES
from iobench.analysis.input_cost import (
    entry_ceiling_words,
    entry_loss_words,
    entry_median,
    entry_rate_words,
    largest_gain,
)
from iobench.report import starts
from iobench.report.charts import Bar, pile
from iobench.report.numbers import number, percent, seconds
from iobench.result import Finding
from iobench.trial import Trial

COLUMNS = (
    *("loader", "samples/s", "without the loader", "loss"),
    *("host waits", "GPU waits", "first batch", "first step"),
    *("start of a later epoch", "steps", "epochs"),
)
_FIGURES = (
    ("wait_share", percent),
    ("device_wait_share", percent),
    ("time_to_first_batch_s", seconds),
    ("first_step_s", seconds),
    ("epoch_start_s", seconds),
    ("steps", number),
    ("epochs", number),
)
_TO_CHANGE = ("cause", "start")


def lead(entry: Mapping[str, Any]) -> str:
    """The loss of a loop, its time to the first batch, and how its later epochs start."""
    starting = starts.sentence(
        entry_median(entry, "time_to_first_batch_s"), entry_median(entry, "epoch_start_s")
    )
    loss = entry_loss_words(entry)
    if not loss:
        return starting
    said = f"Loss {loss}: a step on a batch that the loop already has takes that much less time."
    return f"{said} {starting}".strip()


def step_bar(entry: Mapping[str, Any]) -> Markup | None:
    """Where the time of a sample goes: the loop itself, and its loader; None without a loss."""
    rate, ceiling = (
        entry_median(entry, name) for name in ("samples_per_s", "ceiling_samples_per_s")
    )
    loss = entry_median(entry, "loss_share")
    if rate is None or ceiling is None or loss is None or loss <= 0:
        return None
    own_ms, all_ms = 1e3 / ceiling, 1e3 / rate
    parts = [
        Bar("the loop without its loader", own_ms, f"{number(own_ms)} ms", "device"),
        Bar("its loader", all_ms - own_ms, f"{number(all_ms - own_ms)} ms", "input"),
    ]
    said = (
        f"Where the time of a step goes: {percent(1 - loss)} the loop, {percent(loss)} its loader"
    )
    return pile(parts, said)


def gain_words(entries: Sequence[Mapping[str, Any]]) -> str:
    """What a change can bring at most, where one loop was watched and its loss measured."""
    gain = largest_gain(entries[0]) if len(entries) == 1 else None
    if gain is None:
        return "gain not predicted"
    return f"at most {gain:.2f} times, measured without the loader"


def rows(entries: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """A row of cells for each loop."""
    table = []
    for entry in entries:
        cells = [str(entry.get("loader", "")), entry_rate_words(entry)]
        cells += [entry_ceiling_words(entry), entry_loss_words(entry)]
        for name, say in _FIGURES:
            value = entry_median(entry, name)
            cells.append(say(value) if value is not None else "")
        table.append(cells)
    return table


def actions(findings: Sequence[Finding]) -> list[str]:
    """What the findings about causes and starts advise, the primary finding first."""
    causes = [finding for finding in findings if RULES[finding.code].kind in _TO_CHANGE]
    causes.sort(key=lambda finding: (not finding.primary, finding.severity != "problem"))
    return list(dict.fromkeys(finding.advice for finding in causes if finding.advice))


def notes(trials: Sequence[Trial]) -> Iterator[str]:
    """What qualifies the figures of each loop."""
    watched = [trial for trial in trials if trial.kind == "watch" and trial.status == "done"]
    for trial in watched:
        named = f"{trial.params.get('loader', '')}: " if len(watched) > 1 else ""
        for note in trial.metrics.get("notes") or ():
            yield f"{named}{note}"
