"""Trials and series as tables that Parquet takes."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest

from iobench.errors import ResultError
from iobench.run_tables import (
    SAMPLE_COLUMNS,
    SERIES_COLUMNS,
    all_series,
    read_series,
    samples_table,
    series_table,
    trials_table,
)
from iobench.trial import Cold, Trial

SERIES = {"step_end_s": (0.1, 0.3), "wait_s": (0.0, 0.1), "compute_s": (0.1, 0.1)}


def test_trials_have_a_row_each_and_dotted_columns(tmp_path: Path) -> None:
    """Params and metrics of different kinds stand side by side; lists become text."""
    cold = Cold("cold", "cold", 0.0, 1.0)
    made = [
        Trial("a/0", "disk", {"target": "x"}, 0, "done", {"mb_per_s": 1.5}, cold),
        Trial("b/0", "train", {"group": "\udcff"}, 0, "done", {"notes": ["n", "m"]}),
        Trial("c/0", "loader", {}, 0, "failed", reason="it broke"),
    ]
    path = tmp_path / "trials.parquet"
    trials_table(made).to_parquet(path)
    table = pd.read_parquet(path)
    assert list(table["id"]) == ["a/0", "b/0", "c/0"]
    assert table["metrics.mb_per_s"][0] == 1.5
    assert table["cold.label"][0] == "cold"
    assert table["metrics.notes"][1] == "[n, m]"
    assert table["params.group"][1] == "\\udcff"
    assert table["reason"][2] == "it broke"


def test_series_have_a_row_a_step() -> None:
    """Of all trials in one table, whose columns are there without a row as well."""
    table = all_series([series_table("a/0", SERIES), series_table("b/0", SERIES)])
    assert list(table.columns) == list(SERIES_COLUMNS)
    assert list(table["trial"]) == ["a/0", "a/0", "b/0", "b/0"]
    assert list(table["step"]) == [0, 1, 0, 1]
    assert list(all_series([]).columns) == list(SERIES_COLUMNS)


def test_samples_have_a_row_a_reading() -> None:
    """What a sampler did not say is no number; columns of one trial are empty for the other."""
    first = samples_table("a/0", {"time_s": [0.0, 0.5], "cpu.user_share": [None, 0.5]})
    second = samples_table("b\udcff/0", {"time_s": [0.0], "gpu.0_power_w": [250.0]})
    table = all_series([first, second], SAMPLE_COLUMNS)
    assert list(table.columns) == ["trial", "time_s", "cpu.user_share", "gpu.0_power_w"]
    assert list(table["trial"]) == ["a/0", "a/0", "b\\udcff/0"]
    assert [value for value in table["cpu.user_share"] if not math.isnan(value)] == [0.5]
    assert list(all_series([], SAMPLE_COLUMNS).columns) == list(SAMPLE_COLUMNS)


def test_series_are_read(tmp_path: Path) -> None:
    """No file is no table; half a file is an error with its name."""
    path = tmp_path / "series.parquet"
    assert read_series(path) is None
    all_series([series_table("a\udcff/0", SERIES), series_table("b/0", SERIES)]).to_parquet(path)
    found = read_series(path)
    assert found is not None
    assert list(found["step"]) == [0, 1, 0, 1]
    path.write_bytes(b"PAR1 half")
    with pytest.raises(ResultError, match=r"series\.parquet cannot be read"):
        read_series(path)
