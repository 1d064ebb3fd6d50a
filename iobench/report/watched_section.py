"""PURE. Watched loops on the page: the texts and the bar of the first screen, a table and notes.

An *entry* is a watched loop in ``watched`` of the summary.
"""

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
from iobench.report import epoch_starts
from iobench.report.charts import Bar, stacked_bar
from iobench.results.numbers import duration, number, precise_percent
from iobench.results.result import Finding
from iobench.results.trial import Trial

COLUMNS = (
    "loader",
    "samples/s",
    "samples/s without the loader",
    "loss",
    "the host waits",
    "the GPU waits",
    "time to first batch",
    "first step",
    "start of a later epoch",
    "steps",
    "epochs",
)
"""The columns of the table of watched loops."""
_FIGURES = (
    ("wait_share", precise_percent),
    ("device_wait_share", precise_percent),
    ("time_to_first_batch_s", duration),
    ("first_step_s", duration),
    ("epoch_start_s", duration),
    ("steps", number),
    ("epochs", number),
)
"""The last columns of the table: the key of the figure in an entry, and how it is written."""
_KINDS_WITH_ADVICE = ("cause", "start")
"""The kinds of findings whose advice is shown as a change."""


def lead(entry: Mapping[str, Any]) -> str:
    """The sentences below the verdict: the loss of a loop, and the starts of its epochs.

    Args:
        entry: the entry of the loop.
    """
    first_batch_s = entry_median(entry, "time_to_first_batch_s")
    starts_text = epoch_starts.sentences(first_batch_s, entry_median(entry, "epoch_start_s"))
    loss = entry_loss_words(entry)
    if not loss:
        return starts_text
    loss_text = (
        f"Loss {loss}: a step on a batch that the loop already has takes that much less time."
    )
    return f"{loss_text} {starts_text}".strip()


def step_bar(entry: Mapping[str, Any]) -> Markup | None:
    """A bar with the two parts of a step: the loop, and its loader.

    It is None if the loop has no loss, or if its loss was not measured.
    """
    rate = entry_median(entry, "samples_per_s")
    ceiling = entry_median(entry, "ceiling_samples_per_s")
    loss = entry_median(entry, "loss_share")
    if rate is None or ceiling is None or loss is None or loss <= 0:
        return None
    loop_ms = 1e3 / ceiling
    loader_ms = 1e3 / rate - loop_ms
    parts = [
        Bar("the loop without its loader", loop_ms, f"{number(loop_ms)} ms", "device"),
        Bar("its loader", loader_ms, f"{number(loader_ms)} ms", "input"),
    ]
    shares = f"{precise_percent(1 - loss)} the loop, {precise_percent(loss)} its loader"
    return stacked_bar(parts, f"How the time of a step is spent: {shares}")


def gain_words(entries: Sequence[Mapping[str, Any]]) -> str:
    """The largest possible gain in words.

    It is known only if a single loop was watched and its loss was measured.
    """
    gain = largest_gain(entries[0]) if len(entries) == 1 else None
    if gain is None:
        return "gain not predicted"
    return f"at most {gain:.2f} times, measured without the loader"


def rows(entries: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """The cells of a row for each loop, in the order of ``COLUMNS``."""
    table_rows = []
    for entry in entries:
        cells = [
            str(entry.get("loader", "")),
            entry_rate_words(entry),
            entry_ceiling_words(entry),
            entry_loss_words(entry),
        ]
        for name, text_of in _FIGURES:
            value = entry_median(entry, name)
            cells.append(text_of(value) if value is not None else "")
        table_rows.append(cells)
    return table_rows


def actions(findings: Sequence[Finding]) -> list[str]:
    """The distinct advice of findings about causes and starts.

    The advice of the primary finding comes first, then the advice of other problems, then the rest.
    """
    ranked = [finding for finding in findings if RULES[finding.code].kind in _KINDS_WITH_ADVICE]
    ranked.sort(key=lambda finding: (not finding.primary, finding.severity != "problem"))
    return list(dict.fromkeys(finding.advice for finding in ranked if finding.advice))


def notes(trials: Sequence[Trial]) -> Iterator[str]:
    """Sentences about the limits of the figures of each loop that was measured.

    If there are several loops, each sentence begins with the name of the loader.
    """
    watched = [trial for trial in trials if trial.kind == "watch" and trial.status == "done"]
    for trial in watched:
        prefix = f"{trial.params.get('loader', '')}: " if len(watched) > 1 else ""
        for note in trial.metrics.get("notes") or ():
            yield f"{prefix}{note}"
