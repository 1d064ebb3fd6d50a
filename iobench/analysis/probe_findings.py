"""PURE. Findings of the probes and of loaders alone: refused requests, small files, processes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from iobench.analysis.finding_remarks import remark_on
from iobench.analysis.finding_rules import MAX_REFUSED_SHARE, make_finding
from iobench.analysis.recommendations import shard_command
from iobench.analysis.repeats import by_settings, cold_label, data_name, median_of, rate_of
from iobench.analysis.summary_rows import processes_rows
from iobench.data.settings import AS_FILES
from iobench.results.numbers import percent
from iobench.results.result import Finding, Result
from iobench.results.trial import Trial
from iobench.results.wording import params_words

_SLOW_FILES = 0.5
"""Small files are slow if their rate / the rate of shards is below this."""
_LOW_EFFICIENCY = 0.8
"""Processes slow each other down if the rate of n processes / (n times the rate of one process) is
below this."""


def probe_findings(result: Result) -> Iterator[Finding]:
    """Yield findings about stores that refuse requests, and about slow small files."""
    yield from _refused_requests(result)
    yield from _small_files(result)


def shared_loader_findings(trials: Sequence[Trial]) -> Iterator[Finding]:
    """Yield a finding about the setting whose loader processes slow each other down most."""
    slow = [
        (row.efficiency.median, row)
        for row in processes_rows(trials)
        if row.efficiency is not None and row.efficiency.high < _LOW_EFFICIENCY
    ]
    if not slow:
        return
    efficiency, row = min(slow, key=lambda efficiency_and_row: efficiency_and_row[0])
    evidence = (
        f"{row.params['loader']} from {row.params['data']}: {row.processes} processes give "
        f"{efficiency * row.processes:.2f} times the rate of one"
    )
    yield make_finding("processes-share", evidence, remark_on("processes-share"))


def _refused_requests(result: Result) -> Iterator[Finding]:
    """Yield a finding about the first probed setting with many refused requests."""
    for params, repeats in by_settings(result.trials, "object"):
        refused = median_of(repeats, "refused") or 0.0
        requests = median_of(repeats, "requests") or 0.0
        if refused and refused / (refused + requests) > MAX_REFUSED_SHARE:
            share = percent(refused / (refused + requests))
            evidence = f"{params_words('object', params)}: {share} of its requests were refused"
            yield make_finding("store-throttles", evidence, remark_on("store-throttles"))
            return


def _small_files(result: Result) -> Iterator[Finding]:
    """Yield a finding for each item of ``_layout_rates`` whose small files are far slower."""
    data_names = set()
    for trial in result.trials:
        if trial.kind in ("loader", "train"):
            data_names.add(data_name(trial.params))
    if data_names and not data_names & AS_FILES:
        return  # No loader of this run opens small files.
    for (location, label), rates in _layout_rates(result):
        files, shards = rates.get("files"), rates.get("shards")
        if files and shards and files < _SLOW_FILES * shards:
            evidence = (
                f"on {location}, {label}: small files give {files:,.0f} samples/s, shards "
                f"{shards:,.0f}"
            )
            command = shard_command(result.config.get("data") or {})
            yield make_finding("tiny-files", evidence, command)


def _layout_rates(result: Result) -> list[tuple[tuple[str, str], dict[str, float]]]:
    """Return the highest samples/s of each way to read the data, such as ``files``.

    Only rates with the same location, the same state of the page cache and the same number of reads
    at a time are compared. Each item has a location and a state, and then the rates.
    """
    rates_by_key: dict[tuple[str, str, str], dict[str, float]] = {}
    for params, repeats in by_settings(result.trials, "layout"):
        rate = rate_of(repeats)
        if rate is None:
            continue
        location = str(params.get("data", "")).partition("@")[2]
        key = (location, cold_label(repeats), str(params.get("parallelism")))
        rates = rates_by_key.setdefault(key, {})
        access = str(params.get("access", ""))
        rates[access] = max(rates.get(access, 0.0), rate.median)
    return [((location, label), rates) for (location, label, _), rates in rates_by_key.items()]
