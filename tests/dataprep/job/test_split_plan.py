"""Tests of dataprep.job.split_plan."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dataprep.errors import DatasetError
from dataprep.plan import SplitPlan

PLAN = SplitPlan(
    names=["a", "b", "c"],
    sizes=np.array([1, 2, 3]),
    labels=np.array([0, 1, -1], np.int32),
    predicted=np.array([1, 2, 0]),
    shards=np.array([0, 1, -1], np.int32),
    statuses=["", "", "skipped"],
    reasons=["", "", "none"],
)


@pytest.mark.parametrize(
    "change",
    [
        {"sizes": np.array([1, -2, 3])},
        {"shards": np.array([1, 0, -1], np.int32)},
        {"shards": np.array([0, 2, -1], np.int32)},
        {"labels": np.array([0, -1, -1], np.int32)},
        {"labels": np.array([0.0, 1.0, 2.0])},
    ],
)
def test_a_plan_that_none_can_be_is_refused(change: dict[str, Any]) -> None:
    """By the name of its file, whatever its checksum says."""
    assert SplitPlan.from_parquet(PLAN.to_parquet(), "p").names == PLAN.names
    with pytest.raises(DatasetError, match=r"^p: damaged, or not a plan: "):
        SplitPlan.from_parquet(replace(PLAN, **change).to_parquet(), "p")


@pytest.mark.parametrize("data", [b"", b"PAR1", b"x" * 500])
def test_what_is_no_table_is_no_plan(data: bytes) -> None:
    """Arrow's words behind those of the file."""
    with pytest.raises(DatasetError, match=r"^p: damaged, or not a plan"):
        SplitPlan.from_parquet(data, "p")
