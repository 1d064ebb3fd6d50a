"""PURE. Ranks on the page, and emulated accelerators that ran side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from iobench.analysis.loops import Loop, median_by_rank
from iobench.report.tables import Table
from iobench.results.numbers import number, precise_percent


def tables(loop: Loop) -> Iterator[Table]:
    """Utilisation, rate and waiting of each rank, with the farthest input that was measured."""
    utilisations = median_by_rank(loop.trials, "rank_au_mlperf")
    if not utilisations:
        return
    rates = median_by_rank(loop.trials, "rank_samples_per_s")
    waits = median_by_rank(loop.trials, "rank_wait_share")
    rows = []
    for rank, utilisation in enumerate(utilisations):
        rate = number(rates[rank]) if rank < len(rates) else ""
        wait = precise_percent(waits[rank]) if rank < len(waits) else ""
        rows.append([f"rank {rank}", precise_percent(utilisation), rate, wait])
    for name, metric in (
        ("mean, computed like in MLPerf Storage's DLIO", "au_mlperf"),
        ("slowest rank", "au_mlperf_slowest"),
    ):
        value = loop.metric(metric)
        if value is not None:
            rows.append([name, precise_percent(value), "", ""])
    columns = ("rank", "accelerator utilisation (au_mlperf)", "samples/s", "waiting")
    note = "Medians over repeats. The slowest rank is chosen within each repeat."
    yield Table(f"Ranks: {loop.group}, {loop.farthest}", columns, rows, note)


def side_by_side(entries: Sequence[Mapping[str, Any]]) -> Table:
    """A row for each number of emulated accelerators that ran side by side."""
    rows = []
    for entry in entries:
        rates = [number(rate) for rate in entry["rank_samples_per_s"]]
        rows.append(
            [
                f"{entry['name']}, {entry['loader']}, {entry['source']}",
                str(entry["accelerators"]),
                number(entry["samples_per_s"]),
                ", ".join(rates),
                precise_percent(entry["au_mean"]),
                precise_percent(entry["au_slowest"]),
                _fed_words(entry),
            ]
        )
    columns = (
        "accelerator, loader, input",
        "accelerators",
        "samples/s of all",
        "samples/s of each",
        "mean utilisation",
        "utilisation of the slowest",
        "slowest at 90 % or more",
    )
    note = (
        "Each accelerator is simulated by a process that has its own loader and sleeps for each "
        "step."
    )
    return Table("Accelerators side by side", columns, rows, note)


def _fed_words(entry: Mapping[str, Any]) -> str:
    """Whether the slowest accelerator gets enough batches, and if not, why."""
    if entry["is_fed"]:
        return "yes"
    return f"no: {entry['limit'] or 'the cause is unknown'}"
