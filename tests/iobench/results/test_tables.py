"""The tables of trials, series and readings that are written as Parquet."""

from __future__ import annotations

import math

from iobench.results.host_sums import combine_host_parts
from iobench.results.tables import (
    SAMPLE_COLUMNS,
    SERIES_COLUMNS,
    joined,
    samples_table,
    series_table,
    trials_table,
)
from iobench.results.trial import HostPart, Trial

SERIES = {"step_end_s": (0.1, 0.3), "wait_s": (0.0, 0.1), "compute_s": (0.1, 0.1)}


def test_series_have_a_row_a_step() -> None:
    """Steps of all trials are rows of one table, which has its columns without rows, too."""
    table = joined([series_table("a/0", SERIES), series_table("b/0", SERIES)])
    assert list(table.columns) == list(SERIES_COLUMNS)
    assert list(table["trial"]) == ["a/0", "a/0", "b/0", "b/0"]
    assert list(table["step"]) == [0, 1, 0, 1]
    assert list(joined([]).columns) == list(SERIES_COLUMNS)


def test_samples_have_a_row_a_reading() -> None:
    """A missing reading is NaN, as are the columns that only another trial has."""
    first = samples_table("a/0", {"time_s": [0.0, 0.5], "cpu.user_share": [None, 0.5]})
    second = samples_table("b\udcff/0", {"time_s": [0.0], "gpu.0_power_w": [250.0]})
    table = joined([first, second], SAMPLE_COLUMNS)
    assert list(table.columns) == ["trial", "time_s", "cpu.user_share", "gpu.0_power_w"]
    assert list(table["trial"]) == ["a/0", "a/0", "b\\udcff/0"]
    assert [value for value in table["cpu.user_share"] if not math.isnan(value)] == [0.5]
    assert list(joined([], SAMPLE_COLUMNS).columns) == list(SAMPLE_COLUMNS)


def test_trials_of_several_hosts_have_their_sums() -> None:
    """The table has the sums, and only the raw result has the parts of each host."""
    parts = [HostPart(host, "done", metrics={"mb_per_s": 2.0}) for host in range(3)]
    table = trials_table([Trial("a", "disk", {}, 0, "done", hosts=combine_host_parts(3, parts))])
    assert list(table["hosts.sums.mb_per_s"]) == [6.0]
    assert list(table["hosts.hosts"]) == [3]
    assert not [name for name in map(str, table) if name.startswith("hosts.parts")]
    alone = trials_table([Trial("a", "disk", {}, 0, "done")])
    assert not [name for name in map(str, alone) if name.startswith("hosts")]
