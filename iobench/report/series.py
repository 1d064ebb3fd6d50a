"""Series of a run, from its table to columns by trial."""

from __future__ import annotations

import math

import pandas as pd

_COLUMNS = ("step_end_s", "wait_s", "compute_s")


def by_trial(table: pd.DataFrame | None) -> dict[str, dict[str, list[float]]]:
    """``{trial id: {column: values}}``, rows in their order; values that are missing left out.

    The table has a column ``trial`` and any of ``step_end_s``, ``wait_s`` and ``compute_s``.
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


def _is_finite(value: object) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)
