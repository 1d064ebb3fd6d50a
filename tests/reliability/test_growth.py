"""The slope of a soak's readings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reliability.growth import growth


@given(per_hour=st.floats(-1e3, 1e3), start=st.floats(0, 1e3), readings=st.integers(8, 900))
def test_a_line_has_its_slope(per_hour: float, start: float, readings: int) -> None:
    """However many of its points are looked at."""
    at_s = [10.0 * number for number in range(readings)]
    found = growth(at_s, [start + per_hour * at / 3600 for at in at_s])
    assert found.per_hour == pytest.approx(per_hour, abs=1e-6)


def test_what_stands_out_moves_nothing() -> None:
    """A saw of jobs that begin and end is flat; a leak below it is not."""
    at_s = [float(number) for number in range(400)]
    saw = [100.0 + number % 10 for number in range(400)]
    saw[37] = 9e9
    assert abs(growth(at_s, saw).per_hour) < 40  # a tenth of one tooth, over all
    leaking = [value + 0.05 * at for at, value in zip(at_s, saw, strict=True)]
    assert growth(at_s, leaking).per_hour == pytest.approx(180, abs=40)
    assert growth(at_s, leaking).last - growth(at_s, leaking).first == pytest.approx(15, abs=2)


def test_a_few_readings_say_nothing() -> None:
    """Seven are no slope."""
    with pytest.raises(ValueError, match="7 readings"):
        growth(range(7), range(7))
