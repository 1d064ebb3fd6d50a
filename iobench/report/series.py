"""Series of a run, from its table to columns by trial."""

from __future__ import annotations

import math

import pandas as pd

_COLUMNS = ("step_end_s", "wait_s", "compute_s", "time_s", "epoch", "elsewhere_s")


def by_trial(table: pd.DataFrame | None) -> dict[str, dict[str, list[float]]]:
    """``{trial id: {column: values}}``, rows in their order; values that are missing left out.

    The table has a column ``trial`` and any of ``step_end_s``, ``wait_s``, ``compute_s``,
    ``time_s``, ``epoch`` and ``elsewhere_s``.
    """
    if table is None or table.empty or "trial" not in table.columns:
        return {}
    present = [name for name in _COLUMNS if name in table.columns]
    return {
        str(trial): {
            name: [float(value) for value in rows[name] if _is_finite(value)] for name in present
        }
        for trial, rows in table.groupby("trial", sort=False)
    }


def readings_by_trial(
    table: pd.DataFrame | None,
) -> dict[str, dict[str, list[tuple[float, float]]]]:
    """``{trial id: {column: [(time_s, value)]}}``; what was not read is left out.

    The table has the columns ``trial`` and ``time_s`` and any others of numbers.
    """
    if table is None or table.empty or not {"trial", "time_s"} <= set(table.columns):
        return {}
    names = [name for name in table.columns if name not in ("trial", "time_s")]
    found: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for trial, rows in table.groupby("trial", sort=False):
        times = [float(value) for value in rows["time_s"]]
        columns = {
            str(name): [
                (time_s, float(value))
                for time_s, value in zip(times, rows[name], strict=True)
                if _is_finite(value) and math.isfinite(time_s)
            ]
            for name in names
        }
        found[str(trial)] = {name: points for name, points in columns.items() if points}
    return found


def _is_finite(value: object) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)
