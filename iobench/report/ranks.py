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
"""The last rows of the table: the name, and the metric of the utilisation."""


def tables(loop: Loop) -> Iterator[Table]:
    """Utilisation, rate and waiting of each rank, with the farthest input that was measured.

    There is no table for a loop with a single rank.
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
