"""PURE. How the rates of loops and loaders were counted: the rule, and the balance of bytes."""

from __future__ import annotations

from collections.abc import Sequence

from dataprep.counted import counted
from iobench.analysis.repeats import Repeats, by_settings, is_number, median_of, rate_bounds
from iobench.loops.window import MIN_ROUNDS
from iobench.report.numbers import number, percent
from iobench.report.tables import Table
from iobench.result import Result
from iobench.words import params_words, samples_words

_NOT_READ = ("synthetic", "copy")
_COLUMNS = ("loop or loader", "samples/s", "how it was counted", "fetched", "consumed", "balance")
_NOTE = (
    "Medians over repeats, in the time that counts. Balance: fetched samples / consumed ones, "
    "1 in a steady state and over whole epochs. A trial that is off by more than 5 % is no "
    "evidence. Empty: the loader does not count what it fetches."
)


def tables(result: Result) -> list[Table]:
    """A row for each loop and loader that read data; empty for results of the former rule."""
    points = [
        (params_words(kind, params), repeats)
        for kind in ("train", "loader")
        for params, repeats in by_settings(result.trials, kind)
        if params.get("input") not in _NOT_READ and median_of(repeats, "samples") is not None
    ]
    points = [(name, repeats) for name, repeats in points if _rule_words(repeats)]
    shares = [median_of(repeats, "warm_share") for _, repeats in points]
    has_shares = any(share is not None and share < 1 for share in shares)
    columns = (*_COLUMNS, "share of the data") if has_shares else _COLUMNS
    rows = []
    for (name, repeats), share in zip(points, shares, strict=True):
        row = [name, rate_words(repeats), _rule_words(repeats), *_balance(repeats)]
        rows.append([*row, percent(share if share is not None else 1.0)] if has_shares else row)
    return [Table("", columns, rows, _NOTE)]


def rate_words(repeats: Repeats) -> str:
    """The median rate, or the range between the bounds where no repeat has a rate."""
    rate, bounds = median_of(repeats, "samples_per_s"), rate_bounds(repeats)
    metrics = {"samples_per_s": rate}
    if bounds is not None:
        metrics |= {"samples_per_s_low": bounds[0], "samples_per_s_high": bounds[1]}
    return samples_words(metrics, number).removesuffix(" samples/s")


def _rule_words(repeats: Repeats) -> str:
    """``steady state: 240 batches``, ``3 whole epochs with their starts``; empty if unknown."""
    words: dict[str, None] = {}
    for trial in repeats:
        rule = trial.metrics.get("rate_rule")
        if rule == "steady":
            batches = number(median_of(repeats, "batches") or 0)
            words[f"steady state: {batches} batches, at least {MIN_ROUNDS} rounds"] = None
        elif rule == "epochs":
            words[f"{_epochs(repeats)} with their starts"] = None
        elif rule == "bounds":
            words["lower and upper bound of an endless loader"] = None
        elif rule is not None:
            words[str(rule)] = None
    return "; ".join(words)


def _epochs(repeats: Repeats) -> str:
    counts = []
    for trial in repeats:
        epochs = trial.metrics.get("whole_epochs") or len(trial.metrics.get("epochs") or ())
        counts.append(int(epochs))
    if not all(counts):
        return "whole epochs"
    if min(counts) == max(counts):
        return counted(min(counts), "whole epoch")
    return f"{min(counts):,} to {max(counts):,} whole epochs"


def _balance(repeats: Repeats) -> Sequence[str]:
    """Fetched and consumed samples and bytes, and their balance."""
    samples, size = median_of(repeats, "samples") or 0.0, _sample_bytes(repeats)
    consumed = _amount(samples, None if size is None else samples * size)
    if dropped := median_of(repeats, "dropped_samples"):
        consumed += f"; {counted(round(dropped), 'sample')} dropped from partial batches"
    fetched, balance = median_of(repeats, "fetched_samples"), median_of(repeats, "balance")
    if fetched is None:
        return "", consumed, ""
    shown = f"{balance:.3f}" if is_number(balance) else ""
    return _amount(fetched, median_of(repeats, "fetched_bytes")), consumed, shown


def _amount(samples: float, size: float | None) -> str:
    said = f"{round(samples):,} samples"
    return said if size is None else f"{said}, {number(size / 1e6)} MB"


def _sample_bytes(repeats: Repeats) -> float | None:
    """Stored bytes of a sample on average: of all data, else of what was fetched."""
    rate, stored = median_of(repeats, "samples_per_s"), median_of(repeats, "mb_per_s")
    if rate and stored:
        return stored * 1e6 / rate
    fetched, size = median_of(repeats, "fetched_samples"), median_of(repeats, "fetched_bytes")
    return size / fetched if fetched and size else None
