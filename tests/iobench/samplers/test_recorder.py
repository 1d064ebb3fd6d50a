"""Readings as one table."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.clock import VirtualClock
from iobench.samplers import recorder
from iobench.samplers.recorder import Recorder, together
from tests.iobench.samplers.odd_samplers import Counting, Failing


def recorded(times: int, **samplers: Counting) -> Recorder:
    """After so many readings, one a second."""
    clock = VirtualClock()
    made = Recorder(samplers, clock)
    for _ in range(times):
        made.sample()
        clock.sleep(1)
    return made


def test_a_row_is_one_moment() -> None:
    """Columns are called by sampler and value, the time is the clock's."""
    assert recorded(3, a=Counting()).columns() == {"time_s": [0, 1, 2], "a.count": [1, 2, 3]}


def test_a_sampler_that_fails_leaves_and_is_named() -> None:
    """What it read is kept, the others go on."""
    broken = Failing()
    samples = recorded(4, bad=broken, good=Counting()).end(0.5, 10)
    assert samples.columns["bad.count"] == [1, 2, None, None]
    assert samples.columns["good.count"] == [1, 2, 3, 4]
    assert samples.notes == ("bad ended: OSError: the wire is cut",)
    assert samples.core_share == 0.05
    assert broken.closed


def test_nothing_to_read_is_no_row() -> None:
    """Times alone say nothing."""
    assert recorded(3).columns() == {}


def test_no_time_has_no_share() -> None:
    """A trial that ended at once."""
    assert recorded(0).end(0.1, 0.0).core_share == 0


def test_the_end_closes_samplers() -> None:
    """They may hold the driver of a device."""
    sampler = Counting()
    recorded(1, a=sampler).end(0, 1)
    assert sampler.closed


def test_long_runs_have_fewer_readings_of_longer_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neighbours are brought together at the time of their last; the table stays bounded."""
    monkeypatch.setattr(recorder, "MOST_ROWS", 4)
    columns = recorded(9, a=Counting()).columns()
    assert columns == {"time_s": [3, 7], "a.count": [2.5, 6.5]}
    assert len(recorded(1000, a=Counting()).columns()["time_s"]) < 4


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=8))
def test_brought_together_they_keep_their_mean(values: list[float]) -> None:
    """A value that one row lacks is the mean of the others."""
    rows = [{"time_s": float(i), "a": value} for i, value in enumerate(values)]
    rows.append({"time_s": 99.0})
    found = together(rows)
    assert found["time_s"] == 99
    assert found["a"] == pytest.approx(sum(values) / len(values))
