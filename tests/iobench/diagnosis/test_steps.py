"""Steps that stand out."""

from __future__ import annotations

from typing import Any

import pytest

from iobench.diagnosis.steps import outlier
from tests.iobench.diagnosis.made_loops import by_code, stalled


@pytest.mark.parametrize(("rare", "fires"), [(0.31, True), (0.29, False)])
@pytest.mark.parametrize(
    ("quantile", "of"), [("p99", "a hundred"), ("p95", "twenty"), ("p90", "ten")]
)
def test_three_times_the_median_stands_out(
    quantile: str, of: str, rare: float, fires: bool
) -> None:
    """By the highest quantile that enough steps stand behind."""
    steps: dict[str, Any] = {"step_s_p50": 0.1, f"step_s_{quantile}": rare}
    found = by_code(stalled(**steps))
    assert ("step-outliers" in found) is fires
    if fires:
        assert f"one step of {of} takes 3.1 times" in found["step-outliers"].evidence


def test_the_highest_quantile_decides() -> None:
    """A lower one is not asked where a higher one is known."""
    steps = {"step_s_p50": 0.1, "step_s_p90": 0.5, "step_s_p99": 0.2}
    assert list(outlier("loop", steps)) == []


def test_too_few_steps_tell_nothing() -> None:
    """A median alone has no outliers."""
    assert list(outlier("loop", {"step_s_p50": 0.1})) == []
    assert list(outlier("loop", {"step_s_p99": 0.1})) == []
