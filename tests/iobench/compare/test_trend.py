"""Several runs in order of time."""

from __future__ import annotations

from typing import Any

import pytest

from iobench.compare import Saved, Trend, trend
from iobench.errors import NotComparable
from tests.iobench.compare.saved_runs import MACHINE, STEADY, params, repeats, saved, scaled


def run(day: int, factor: float, *loaders: str) -> Saved:
    """Of one day in November."""
    trials = [
        trial
        for name in loaders or ("raw",)
        for trial in repeats(scaled(STEADY, factor), params(name))
    ]
    return saved(*trials, where=f"day {day}", started=f"2026-11-{day:02}T00:00:00+00:00")


def found_ratios(found: Trend, against: str) -> list[Any]:
    """Of the first row, one a step."""
    changes = [getattr(step, against) for step in found.rows[0].steps]
    return [change and pytest.approx(change.ratio.ratio) for change in changes]


def test_runs_stand_in_order_of_time() -> None:
    """However they were given; each against the base and against the one before."""
    found = trend(run(1, 1.0), [run(3, 0.5), run(2, 0.8)], 0.05)
    assert [each.where for each in found.runs] == ["day 1", "day 2", "day 3"]
    assert found.base == 0
    assert found_ratios(found, "from_base") == [None, 0.8, 0.5]
    assert found_ratios(found, "from_previous") == [None, 0.8, 0.625]
    assert [step.found.median for step in found.rows[0].steps] == pytest.approx(
        [100.1, 80.24, 50.15], rel=0.01
    )


def test_the_newest_run_decides() -> None:
    """A regression that was mended is shown and does not fail; one that is there now does."""
    assert trend(run(1, 1.0), [run(2, 0.5), run(3, 1.0)], 0.05).exit_code == 0
    assert trend(run(1, 1.0), [run(2, 1.0), run(3, 0.5)], 0.05).exit_code == 1


def test_a_base_may_be_in_the_middle() -> None:
    """It keeps its place in time."""
    found = trend(run(2, 1.0), [run(3, 0.5), run(1, 0.8)], 0.05)
    assert (found.base, found.newest.new.where) == (1, "day 3")
    assert found_ratios(found, "from_base") == [0.8, None, 0.5]
    assert found_ratios(found, "from_previous") == [None, 1.25, 0.5]


def test_a_point_that_a_run_lacks_is_held_against_the_last_that_has_it() -> None:
    """The gap stays a gap."""
    found = trend(run(1, 1.0, "raw", "null"), [run(2, 0.8, "null"), run(3, 0.5, "raw")], 0.05)
    rows = {row.point.params["loader"]: row for row in found.rows}
    assert [step.run for step in rows["raw"].steps] == [0, 2]
    last = rows["raw"].steps[-1].from_previous
    assert last is not None
    assert last.ratio.ratio == pytest.approx(0.5)
    assert [step.run for step in rows["null"].steps] == [0, 1]


def test_without_times_the_order_is_the_one_given() -> None:
    """And it is said to be."""
    odd = saved(*repeats(STEADY, params("raw")), where="odd", started="yesterday")
    found = trend(run(5, 1.0), [odd, run(1, 1.0)], 0.05)
    assert [each.where for each in found.runs] == ["day 5", "odd", "day 1"]
    assert not found.in_order


def test_one_unlike_machine_stops_a_trend() -> None:
    """Which of the runs, is said."""
    other = saved(
        *repeats(STEADY, params("raw")), where="laptop", environment={**MACHINE, "processors": 2}
    )
    with pytest.raises(NotComparable, match="laptop is of another machine"):
        trend(run(1, 1.0), [run(2, 1.0), other], 0.05)
    assert len(trend(run(1, 1.0), [run(2, 1.0), other], 0.05, force=True).runs) == 3
