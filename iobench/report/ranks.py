"""PURE. Ranks on the page: each beside the mean and the slowest, and accelerators side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from iobench.analysis.loops import Loop, median_by_rank
from iobench.report.numbers import number, percent
from iobench.report.tables import Table


def tables(loop: Loop) -> Iterator[Table]:
    """Utilisation, rate and waiting of each rank with the farthest input."""
    utilisations = median_by_rank(loop.trials, "rank_au_mlperf")
    if not utilisations:
        return
    rates = median_by_rank(loop.trials, "rank_samples_per_s")
    waits = median_by_rank(loop.trials, "rank_wait_share")
    rows = []
    for rank, utilisation in enumerate(utilisations):
        rate = number(rates[rank]) if rank < len(rates) else ""
        wait = percent(waits[rank]) if rank < len(waits) else ""
        rows.append([f"rank {rank}", percent(utilisation), rate, wait])
    for words, metric in (
        ("mean, as MLPerf Storage's DLIO computes it", "au_mlperf"),
        ("slowest rank", "au_mlperf_slowest"),
    ):
        value = loop.metric(metric)
        if value is not None:
            rows.append([words, percent(value), "", ""])
    columns = ("rank", "AU (au_mlperf)", "samples/s", "waiting")
    note = "Medians over repeats: the slowest is chosen within each repeat."
    yield Table(f"Ranks: {loop.group}, {loop.farthest}", columns, rows, note)


def side_by_side(entries: Sequence[Mapping[str, Any]]) -> Table:
    """A row for each number of emulated accelerators that ran side by side."""
    rows = []
    for entry in entries:
        each = [number(rate) for rate in entry["rank_samples_per_s"]]
        rows.append(
            [
                f"{entry['name']}, {entry['loader']}, {entry['source']}",
                str(entry["accelerators"]),
                number(entry["samples_per_s"]),
                ", ".join(each),
                percent(entry["au_mean"]),
                percent(entry["au_slowest"]),
                "yes" if entry["is_fed"] else f"no: {entry['limit'] or 'the cause is unknown'}",
            ]
        )
    columns = (
        *("accelerator, loader, input", "side by side", "samples/s", "of each"),
        *("mean AU", "slowest AU", "slowest at 90 % or more"),
    )
    note = "Each accelerator is emulated: a process with its own loader that keeps the pace."
    return Table("Accelerators side by side", columns, rows, note)
