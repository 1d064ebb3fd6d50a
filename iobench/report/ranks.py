"""PURE. The ranks of a training loop on the page."""

from __future__ import annotations

from collections.abc import Iterator

from iobench.analysis.loops import Loop, median_by_rank
from iobench.report.tables import Table
from iobench.results.numbers import number, precise_percent

_SUMMARY_ROWS = (
    ("mean, computed like in MLPerf Storage's DLIO", "au_mlperf"),
    ("slowest rank", "au_mlperf_slowest"),
)
"""The last rows of the table: the name of the row, and the metric with its utilisation."""


def tables(loop: Loop) -> Iterator[Table]:
    """A table of the utilisation, the rate and the waiting of each rank of a loop.

    The trials are those that read from the farthest location. There is no table for a loop whose
    trials have no figures of ranks, because it has a single rank.
    """
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
    for name, metric in _SUMMARY_ROWS:
        value = loop.metric(metric)
        if value is not None:
            rows.append([name, precise_percent(value), "", ""])
    columns = ("rank", "accelerator utilisation (au_mlperf)", "samples/s", "waiting")
    note = "Medians over repeats. The slowest rank is chosen within each repeat."
    yield Table(f"Ranks: {loop.group}, {loop.farthest}", columns, rows, note)
