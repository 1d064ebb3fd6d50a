"""Stores: an upper bound that grows with streams and time and shrinks with size."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from iobench.forecast.rates import rates_of

streams = st.integers(1, 256)
seconds = st.floats(0.01, 100)
sizes = st.integers(0, 10**9)


@given(st.booleans(), streams, seconds, sizes)
def test_more_of_everything_is_not_less(amazon: bool, count: int, lasts: float, size: int) -> None:
    """Each stream finishes one request at least."""
    rates = rates_of(is_amazon=amazon)
    most = rates.most_requests(count, lasts, size)
    assert most >= count
    assert rates.most_requests(count + 1, lasts, size) >= most
    assert rates.most_requests(count, lasts * 2, size) >= most
    assert rates.most_requests(count, lasts, size + 1) <= most


def test_amazon_answers_in_10_ms() -> None:
    """One stream of small requests: a hundred a second, and the one under way."""
    assert rates_of(is_amazon=True).most_requests(1, 1.0, 0) == 101
    assert rates_of(is_amazon=True).most_bytes(2, 3.0) == 2 * 3 * 100e6
    assert rates_of(is_amazon=True).most_bytes(1000, 1.0) == 12.5e9
