"""PURE. How the rates of loops and loaders were counted: the rule, and the balance of samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dataprep.message_text import counted
from iobench.analysis.repeats import Repeats, by_settings, is_number, median_of, rate_bounds
from iobench.report.tables import Table
from iobench.results.numbers import number, precise_percent, size
from iobench.results.result import Result
from iobench.results.trial import Params
from iobench.results.wording import params_words, samples_words
from iobench.trials.window import MIN_ROUNDS

INPUTS_WITHOUT_DATA = ("synthetic", "copy")
"""Inputs of a training loop that need no loader."""

_COLUMNS = ("loop or loader", "samples/s", "how it was counted", "fetched", "consumed", "balance")
_NOTE = (
    "Medians over repeats, within the counted time. Balance: fetched samples / consumed samples. "
    "It is 1 in a steady state and over whole epochs. A trial whose balance is off by more than "
    "5 % is no evidence. A cell is empty if the loader does not count the fetched samples."
)


def tables(result: Result) -> list[Table]:
    """A table with a row for each loop and loader that read data.

    If a warm trial used only a part of the data, the table has a column for this share. There are
    no rows for results of earlier versions, which counted by another rule.
    """
    rows, shares = [], []
    for kind, params, repeats in settings_with_data(result):
        rule = _rule_words(repeats)
        if rule and median_of(repeats, "samples") is not None:
            share = median_of(repeats, "warm_share")
            shares.append(1.0 if share is None else share)
            name = params_words(kind, params)
            rows.append([name, rate_words(repeats), rule, *_balance_cells(repeats)])
    if all(share >= 1 for share in shares):
        return [Table("", _COLUMNS, rows, _NOTE)]
    for row, share in zip(rows, shares, strict=True):
        row.append(precise_percent(share))
    return [Table("", (*_COLUMNS, "share of the data"), rows, _NOTE)]


def settings_with_data(result: Result) -> Iterator[tuple[str, Params, Repeats]]:
    """The kind, the parameters and the trials of each setting of a loop or loader with data."""
    for kind in ("train", "loader"):
        for params, repeats in by_settings(result.trials, kind):
            if params.get("input") not in INPUTS_WITHOUT_DATA:
                yield kind, params, repeats


def rate_words(repeats: Repeats) -> str:
    """The median rate in samples/s, without its unit.

    If no repeat has a rate, the text has the range between the bounds.
    """
    metrics = {"samples_per_s": median_of(repeats, "samples_per_s")}
    bounds = rate_bounds(repeats)
    if bounds is not None:
        metrics |= {"samples_per_s_low": bounds[0], "samples_per_s_high": bounds[1]}
    return samples_words(metrics, number).removesuffix(" samples/s")


def _rule_words(repeats: Repeats) -> str:
    """The rules by which the repeats were counted; empty if they are unknown.

    ``steady state: 240 batches, at least 3 rounds``, ``3 whole epochs with their starts``.
    """
    rules: list[str] = []
    for trial in repeats:
        rule = trial.metrics.get("rate_rule")
        if rule == "steady":
            batches = number(median_of(repeats, "batches") or 0)
            rules.append(f"steady state: {batches} batches, at least {MIN_ROUNDS} rounds")
        elif rule == "epochs":
            rules.append(f"{_epochs_words(repeats)} with their starts")
        elif rule == "bounds":
            rules.append("lower and upper bound of an endless loader")
        elif rule is not None:
            rules.append(str(rule))
    distinct_rules = dict.fromkeys(rules)
    return "; ".join(distinct_rules)


def _epochs_words(repeats: Repeats) -> str:
    """``3 whole epochs``, or the range of their numbers over the repeats."""
    counts = []
    for trial in repeats:
        epochs = trial.metrics.get("whole_epochs") or len(trial.metrics.get("epochs") or ())
        counts.append(int(epochs))
    if not all(counts):
        return "whole epochs"
    if min(counts) == max(counts):
        return counted(min(counts), "whole epoch")
    return f"{min(counts):,} to {max(counts):,} whole epochs"


def _balance_cells(repeats: Repeats) -> Sequence[str]:
    """The cells for the fetched samples, for the consumed samples, and for their balance."""
    samples = median_of(repeats, "samples") or 0.0
    sample_bytes = _mean_sample_bytes(repeats)
    consumed_bytes = None if sample_bytes is None else samples * sample_bytes
    consumed = _amount_words(samples, consumed_bytes)
    dropped = median_of(repeats, "dropped_samples")
    if dropped:
        consumed += f"; {counted(round(dropped), 'sample')} dropped from partial batches"
    fetched = median_of(repeats, "fetched_samples")
    if fetched is None:
        return "", consumed, ""
    balance = median_of(repeats, "balance")
    balance_text = f"{balance:.3f}" if is_number(balance) else ""
    return _amount_words(fetched, median_of(repeats, "fetched_bytes")), consumed, balance_text


def _amount_words(samples: float, amount_bytes: float | None) -> str:
    """``1,280 samples, 148 MB``; without the size if it is unknown."""
    text = f"{round(samples):,} samples"
    return f"{text}, {size(amount_bytes)}" if amount_bytes else text


def _mean_sample_bytes(repeats: Repeats) -> float | None:
    """The mean size of a stored sample in bytes: from the rates, or else from fetched samples.

    It is None if neither is known.
    """
    samples_per_s, mb_per_s = median_of(repeats, "samples_per_s"), median_of(repeats, "mb_per_s")
    if samples_per_s and mb_per_s:
        return mb_per_s * 1e6 / samples_per_s
    fetched_samples = median_of(repeats, "fetched_samples")
    fetched_bytes = median_of(repeats, "fetched_bytes")
    return fetched_bytes / fetched_samples if fetched_samples and fetched_bytes else None
