"""Bounds hold what lies between them, whatever is done to them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from iobench.forecast.bounds import NOTHING, UNKNOWN, Bounds, exactly, total, up_to

values = st.floats(0, 1e12)
bounds = st.tuples(values, st.none() | values).map(
    lambda pair: Bounds(pair[0], None if pair[1] is None else pair[0] + pair[1])
)


@given(bounds, bounds, st.floats(0, 1), st.floats(0, 1))
def test_sums_hold_the_sums(one: Bounds, other: Bounds, at: float, there: float) -> None:
    """Of any two numbers within; a sum with something unbounded is unbounded."""
    first, second = (
        b.low if b.high is None else b.low + share * (b.high - b.low)
        for b, share in ((one, at), (other, there))
    )
    slack = exactly((first + second) * 1e-9)
    found = one.plus(other).plus(Bounds(0.0, slack.high))
    assert first + second + 1e-300 >= found.low * (1 - 1e-9)
    assert found.high is None or first + second <= found.high
    assert (one.plus(other).high is None) == (one.high is None or other.high is None)


@given(bounds)
def test_nothing_changes_nothing(one: Bounds) -> None:
    """Nor does once."""
    assert one.plus(NOTHING) == one == one.times(1)
    assert total([]) == NOTHING


def test_what_lies_between() -> None:
    """Both ends included; what is no number never does."""
    assert 3 in exactly(3)
    assert 4 not in exactly(3)
    assert 0 in up_to(5)
    assert 1e300 in UNKNOWN
    odd: object = "3"
    assert not UNKNOWN.__contains__(odd)
    assert exactly(2).times(3) == exactly(6)
    assert UNKNOWN.times(2) == UNKNOWN
