"""Comparisons as JSON."""

from __future__ import annotations

import json

from iobench.compare import compare, trend
from iobench.compare.exported import comparison_object, trend_object
from tests.iobench.compare.saved_runs import MACHINE, STEADY, params, repeats, saved, scaled

OTHER = {**MACHINE, "kernel": "x", "processors": 2}


def test_a_comparison_has_everything_that_its_text_has() -> None:
    """And what a pipeline asks: exit code, verdicts, repeats that are lacking."""
    base = saved(*repeats(STEADY), *repeats([1.0], params("raw")), *repeats([1.0], params("a")))
    new = saved(
        *repeats(scaled(STEADY, 0.8)), *repeats([1.0], params("raw")), where="n", environment=OTHER
    )
    found = json.loads(json.dumps(comparison_object(compare(base, new, 0.05, force=True))))
    assert (found["schema"], found["exit_code"], found["threshold"]) == (1, 1, 0.05)
    assert found["verdict"].startswith("Regression: 1 of 2")
    assert found["unlike_machines"] is True
    assert [each["sort"] for each in found["environment"]] == ["machine", "software"]
    worse, unsure = found["changes"]
    assert (worse["verdict"], worse["more_repeats"]) == ("regression", None)
    assert worse["params"] == params()
    assert worse["low"] < worse["ratio"] < worse["high"]
    assert (unsure["verdict"], unsure["more_repeats"]) == ("underpowered", 3)
    assert unsure["more_repeats_at_least"] is True
    assert [each["why"] for each in found["apart"]] == ["missing"]
    assert "drift" in found["notes"][0]


def test_a_trend_has_its_runs_in_order_and_its_steps() -> None:
    """Each step against the base and against the one before."""
    runs = [
        saved(*repeats(scaled(STEADY, by)), where=str(by), started=f"2026-11-0{day}T00:00:00")
        for day, by in ((1, 1.0), (3, 0.5), (2, 0.8))
    ]
    found = json.loads(json.dumps(trend_object(trend(runs[0], runs[1:], 0.05))))
    assert [run["where"] for run in found["runs"]] == ["1.0", "0.8", "0.5"]
    assert (found["base"], found["exit_code"], found["in_order_of_time"]) == (0, 1, True)
    (row,) = found["rows"]
    assert [step["run"] for step in row["steps"]] == [0, 1, 2]
    assert row["steps"][0]["from_base"] is None
    assert round(row["steps"][2]["from_previous"]["ratio"], 6) == 0.625
    assert len(found["comparisons"]) == 2
