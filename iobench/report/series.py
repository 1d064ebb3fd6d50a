"""Divide the tables of steps and readings of a run by trial."""

from __future__ import annotations

import math
from typing import TypeAlias

import pandas as pd

Columns: TypeAlias = dict[str, list[float]]
"""The columns of the steps of a trial, by their names."""
Readings: TypeAlias = dict[str, list[tuple[float, float]]]
"""The readings during a trial, by column ``SAMPLER.NAME``: pairs of the seconds and the value."""

_COLUMNS = ("step_end_s", "wait_s", "compute_s", "time_s", "epoch", "elsewhere_s")


def by_trial(table: pd.DataFrame | None) -> dict[str, Columns]:
    """The columns of the steps of each trial.

    Args:
        table: a row for each step, with the column ``trial`` and any of ``step_end_s``,
            ``wait_s``, ``compute_s``, ``time_s``, ``epoch`` and ``elsewhere_s``.

    Returns:
        The columns by the id of the trial. Missing values are left out, so the columns of a trial
        may have different lengths.
    """
    if table is None or table.empty or "trial" not in table.columns:
        return {}
    names = [name for name in _COLUMNS if name in table.columns]
    columns_by_trial = {}
    for trial, rows in table.groupby("trial", sort=False):
        columns: Columns = {}
        for name in names:
            columns[name] = [float(value) for value in rows[name] if _is_finite(value)]
        columns_by_trial[str(trial)] = columns
    return columns_by_trial


def readings_by_trial(table: pd.DataFrame | None) -> dict[str, Readings]:
    """The readings of the machine during each trial.

    Args:
        table: a row for each reading, with the columns ``trial``, ``time_s``, and a column of
            numbers for each sampler's value.

    Returns:
        The readings by the id of the trial. Missing values and empty columns are left out.
    """
    if table is None or table.empty or not {"trial", "time_s"} <= set(table.columns):
        return {}
    names = [name for name in table.columns if name not in ("trial", "time_s")]
    all_readings: dict[str, Readings] = {}
    for trial, rows in table.groupby("trial", sort=False):
        times = [float(time_s) for time_s in rows["time_s"]]
        readings: Readings = {}
        for name in names:
            points = [
                (time_s, float(value))
                for time_s, value in zip(times, rows[name], strict=True)
                if _is_finite(value) and math.isfinite(time_s)
            ]
            if points:
                readings[str(name)] = points
        all_readings[str(trial)] = readings
    return all_readings


def _is_finite(value: object) -> bool:
    """Whether a value of a table is a number, and neither missing (NaN) nor infinite."""
    return isinstance(value, (int, float)) and math.isfinite(value)
