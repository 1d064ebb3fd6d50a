"""Counters into rates."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.samplers.rates import Rates


def test_the_first_reading_has_no_rates() -> None:
    """There is nothing to compare it with."""
    assert Rates().of({"a": 5.0}, 0.0) == {}


@given(st.floats(0, 1e12), st.floats(0, 1e9), st.floats(0.01, 100))
def test_a_rate_is_growth_over_time(before: float, growth: float, seconds: float) -> None:
    """Whatever the counter began at."""
    rates = Rates()
    rates.of({"a": before}, 3.0)
    found = rates.of({"a": before + growth}, 3.0 + seconds)
    assert found["a"] == pytest.approx(growth / seconds, abs=1e-3 / seconds)


def test_a_counter_that_fell_grew_by_nothing() -> None:
    """A device that went away took its count along."""
    rates = Rates()
    rates.of({"a": 5.0, "b": 1.0}, 0.0)
    assert rates.of({"a": 2.0, "b": 3.0, "new": 9.0}, 2.0) == {"a": 0.0, "b": 1.0}


def test_no_time_is_no_rate() -> None:
    """Two readings at one moment."""
    rates = Rates()
    rates.of({"a": 5.0}, 1.0)
    assert rates.of({"a": 6.0}, 1.0) == {}
