"""What loaders take of memory and processors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from iobench.report.model.fastest import fastest
from iobench.report.model.loader_use import use_table
from iobench.result import Result
from tests.iobench.report.results import WARM, Run

USE = {"memory_counted": "PSS", "cores_busy": 1.9, "cpu_s_per_1000_samples": 2.5}


def swept(**changed: Any) -> Result:
    """Two and four workers, one repeat each, four of them hardly faster."""
    run = Run(repeats=1)
    for workers, rate, size in ((2, 990.0, 412e6), (4, 1000.0, 805e6)):
        run._loader("torch-map", "shards@disk", "warm", WARM, workers, 64, rate)
        last = run.trials[-1]
        use = {**USE, "memory_bytes": size, "samples_per_s": rate, **changed}
        run.trials[-1] = replace(last, metrics={**last.metrics, **use})
    return run.result()


def test_every_setting_has_its_row() -> None:
    """Rate, memory, processor time, cores."""
    (table,) = use_table(swept())
    assert table.columns[-3:] == ("memory, MB", "CPU s per 1,000 samples", "cores busy")
    texts = [[entry.text for entry in row] for row in table.rows]
    assert texts[0] == [
        *("torch-map", "shards@disk", "warm", "2 workers", "990"),
        *("412", "2.50", "1.90"),
    ]
    assert [row[5] for row in texts] == ["412", "805"]


def test_memory_by_another_count_says_so() -> None:
    """RSS is no PSS."""
    (table,) = use_table(swept(memory_counted="RSS"))
    assert [row[5].note for row in table.rows] == ["RSS", "RSS"]
    (table,) = use_table(swept())
    assert [row[5].note for row in table.rows] == ["", ""]


def test_the_fastest_shows_what_it_takes() -> None:
    """And what fewer workers would take that are as fast."""
    (table,) = fastest(swept())
    (row,) = table.rows
    shown = dict(zip(table.columns, row, strict=True))
    assert shown["memory, MB"].text == "805"
    assert shown["CPU s per 1,000 samples"].raw == "2.5"
    assert (shown["fewest workers within 2 %"].text, shown["fewest workers within 2 %"].note) == (
        "2",
        "412 MB",
    )


def test_runs_that_did_not_measure_it_have_no_such_columns() -> None:
    """As those of before."""
    run = Run(repeats=2).loaders().result()
    assert use_table(run) == ()
    (table,) = fastest(run)
    assert not set(table.columns) & {"memory, MB", "cores busy"}
