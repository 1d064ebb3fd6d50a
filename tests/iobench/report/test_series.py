"""Series from their table."""

from __future__ import annotations

import pandas as pd
import pytest

from iobench.report.series import by_trial, readings_by_trial


def test_rows_go_to_their_trial_in_order() -> None:
    """Values that are missing are left out, other columns are not asked for."""
    table = pd.DataFrame(
        {"trial": ["b", "a", "b"], "step_end_s": [1.0, 5.0, 2.0], "wait_s": [0.1, None, 0.2],
         "other": [1, 2, 3]}
    )  # fmt: skip
    assert by_trial(table) == {
        "b": {"step_end_s": [1.0, 2.0], "wait_s": [0.1, 0.2]},
        "a": {"step_end_s": [5.0], "wait_s": []},
    }


@pytest.mark.parametrize("table", [None, pd.DataFrame(), pd.DataFrame({"step": [1]})])
def test_no_table_is_no_series(table: pd.DataFrame | None) -> None:
    """Runs without a training loop have none."""
    assert by_trial(table) == {}


def test_readings_go_to_their_trial_with_their_times() -> None:
    """What a sampler did not say is left out, and a column of nothing is none."""
    table = pd.DataFrame(
        {"trial": ["a", "b", "a"], "time_s": [0.5, 0.5, 1.0], "cpu.x": [1.0, None, 2.0],
         "gpu.y": [None, 3.0, None]}
    )  # fmt: skip
    assert readings_by_trial(table) == {
        "a": {"cpu.x": [(0.5, 1.0), (1.0, 2.0)]},
        "b": {"gpu.y": [(0.5, 3.0)]},
    }


@pytest.mark.parametrize("table", [None, pd.DataFrame(), pd.DataFrame({"trial": ["a"]})])
def test_no_table_is_no_readings(table: pd.DataFrame | None) -> None:
    """Runs before there were samplers have none."""
    assert readings_by_trial(table) == {}
