"""Which loader, with which settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from iobench.report.model.fastest import fastest
from tests.iobench.report.results import PROVED, WARM, Run


def rows(run: Run) -> list[list[str]]:
    """The table's texts; none without a table."""
    return [[entry.text for entry in row] for table in fastest(run.result()) for row in table.rows]


def swept(rates: Mapping[int, Sequence[float]]) -> Run:
    """torch-map by workers, each with its repeats."""
    run = Run(repeats=1)
    for workers, repeats in rates.items():
        for rate in repeats:
            run._loader("torch-map", "shards@disk", "warm", WARM, workers, 64, rate)
            last = run.trials[-1]
            run.trials[-1] = replace(last, metrics={**last.metrics, "samples_per_s": rate})
    return run


def test_fewest_workers_within_two_per_cent() -> None:
    """The fastest is 8, and 4 give 99 % of it; 2 do not."""
    ((data, _, loader, settings, _, fewest, _),) = rows(
        swept({2: [500.0], 4: [990.0], 8: [1000.0]})
    )
    assert (data, loader, settings, fewest) == ("shards@disk", "torch-map", "8 workers", "4")


def test_what_cannot_be_told_apart_is_named() -> None:
    """Intervals that overlap; where they do not, the fastest stands alone."""
    noisy = {4: [980.0, 990.0, 1000.0], 8: [995.0, 1005.0, 1010.0], 16: [970.0, 980.0, 996.0]}
    (row,) = rows(swept(noisy))
    assert row[-1] == "torch-map · 4 workers (990), and 1 more"
    (row,) = rows(swept({4: [100.0, 101.0], 8: [999.0, 1000.0]}))
    assert row[-1] == "none"


def test_groups() -> None:
    """Warm and cold apart; what decodes nothing is not set beside what does."""
    found = rows(Run(repeats=2).loaders())
    assert [(row[0], row[1], row[2]) for row in found] == [
        ("shards@nvme", "warm", "tf-data"),
        ("shards@nvme", "cold 99.8 %", "tf-data"),
    ]


def test_a_single_point_is_no_choice() -> None:
    """One loader with one setting is not the fastest of anything; nor is a loader of no data."""
    assert rows(swept({4: [100.0]})) == []
    run = Run(repeats=1)
    for workers in (1, 2):
        run._loader("mock", "", "warm", PROVED, workers, 64, 100.0)
    assert rows(run) == []
