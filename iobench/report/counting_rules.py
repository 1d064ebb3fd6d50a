"""PURE. How the rates of loops and loaders were counted: the rule, and the balance of samples."""

from __future__ import annotations

from collections.abc import Sequence

from dataprep.message_text import counted
from iobench.analysis.repeats import Repeats, by_settings, is_number, median_of, rate_bounds
from iobench.report.tables import Table
from iobench.results.numbers import number, precise_percent, size
from iobench.results.result import Result
from iobench.results.wording import params_words, samples_words
from iobench.trials.window import MIN_ROUNDS

_INPUTS_WITHOUT_DATA = ("synthetic", "copy")
_COLUMNS = ("loop or loader", "samples/s", "how it was counted", "fetched", "consumed", "balance")
_NOTE = (
    "Medians over repeats, within the counted time. Balance: fetched samples / consumed samples. "
    "It is 1 in a steady state and over whole epochs. A trial whose balance is off by more than "
    "5 % is no evidence. A cell is empty if the loader does not count the fetched samples."
)


def tables(result: Result) -> list[Table]:
    """A row for each loop and loader that read data.

    There are no rows for results of earlier versions, which counted by another rule.
    """
    names, all_repeats = [], []
    for kind in ("train", "loader"):
        for params, repeats in by_settings(result.trials, kind):
            reads_data = params.get("input") not in _INPUTS_WITHOUT_DATA
            if reads_data and median_of(repeats, "samples") is not None and _rule_words(repeats):
                names.append(params_words(kind, params))
                all_repeats.append(repeats)
    shares = [median_of(repeats, "warm_share") for repeats in all_repeats]
    has_shares = any(share is not None and share < 1 for share in shares)
    rows = []
    for name, repeats, share in zip(names, all_repeats, shares, strict=True):
        row = [name, rate_words(repeats), _rule_words(repeats), *_balance_cells(repeats)]
        if has_shares:
            row.append(precise_percent(share if share is not None else 1.0))
        rows.append(row)
    columns = (*_COLUMNS, "share of the data") if has_shares else _COLUMNS
    return [Table("", columns, rows, _NOTE)]


def rate_words(repeats: Repeats) -> str:
    """The median rate, or the range between its bounds if no repeat has a rate."""
    metrics = {"samples_per_s": median_of(repeats, "samples_per_s")}
    bounds = rate_bounds(repeats)
    if bounds is not None:
        metrics |= {"samples_per_s_low": bounds[0], "samples_per_s_high": bounds[1]}
    return samples_words(metrics, number).removesuffix(" samples/s")


def _rule_words(repeats: Repeats) -> str:
    """The rules by which the repeats were counted; empty if they are unknown.

    ``steady state: 240 batches, at least 3 rounds``, ``3 whole epochs with their starts``.
    """
    rules: dict[str, None] = {}
    for trial in repeats:
        rule = trial.metrics.get("rate_rule")
        if rule == "steady":
            batches = number(median_of(repeats, "batches") or 0)
            rules[f"steady state: {batches} batches, at least {MIN_ROUNDS} rounds"] = None
        elif rule == "epochs":
            rules[f"{_epochs_words(repeats)} with their starts"] = None
        elif rule == "bounds":
            rules["lower and upper bound of an endless loader"] = None
        elif rule is not None:
            rules[str(rule)] = None
    return "; ".join(rules)


def _epochs_words(repeats: Repeats) -> str:
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
    text = f"{round(samples):,} samples"
    return text if not amount_bytes else f"{text}, {size(amount_bytes)}"


def _mean_sample_bytes(repeats: Repeats) -> float | None:
    """The mean size of a stored sample: from the rates, or else from the fetched samples."""
    samples_per_s, mb_per_s = median_of(repeats, "samples_per_s"), median_of(repeats, "mb_per_s")
    if samples_per_s and mb_per_s:
        return mb_per_s * 1e6 / samples_per_s
    fetched_samples = median_of(repeats, "fetched_samples")
    fetched_bytes = median_of(repeats, "fetched_bytes")
    return fetched_bytes / fetched_samples if fetched_samples and fetched_bytes else None
