"""Objects of a store: time to first byte, stream, and what all connections share."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iobench.whatif.objects import Fetched, FetchLaw, fit_fetch

SIZES = (5_000, 100_000, 1_000_000, 8_000_000, 32_000_000, 128_000_000)
CONNECTIONS = (1, 4, 16, 64)


def sweep(law: FetchLaw) -> list[Fetched]:
    """Sizes over 4 connections, connections at 8 MB, as the probe does it."""
    places = [(size, 4) for size in SIZES] + [(8_000_000, n) for n in CONNECTIONS if n != 4]
    return [Fetched(size, n, law.bytes_per_s(size, n)) for size, n in places]


def test_a_store_is_found_again() -> None:
    """20 ms to the first byte, 90 MB/s a stream, a link of 2 GB/s that 64 streams fill."""
    law = FetchLaw(0.02, 1 / 90e6, 0.0, 1 / 2e9, 0.0)
    found = fit_fetch(sweep(law))
    assert found.first_byte_s == pytest.approx(0.02)
    assert 1 / found.s_per_byte == pytest.approx(90e6)
    assert found.link_bytes_per_s == pytest.approx(2e9)
    assert found.error < 1e-9
    assert found.bytes_per_s(2_000_000, 1) == pytest.approx(law.bytes_per_s(2_000_000, 1))


def test_a_client_that_is_busy_with_requests_is_found_again() -> None:
    """3 ms of one processor for each: small objects are bound by their number."""
    law = FetchLaw(0.0, 1 / 400e6, 0.003, 1 / 900e6, 0.0)
    found = fit_fetch(sweep(law))
    assert found.request_s == pytest.approx(0.003)
    assert found.link_bytes_per_s == pytest.approx(900e6)


def test_a_link_that_no_point_reached_is_unknown() -> None:
    """More connections then bring as much each."""
    law = FetchLaw(0.05, 1 / 90e6, 0.0, 0.0, 0.0)
    found = fit_fetch(sweep(law))
    assert found.link_bytes_per_s is None
    assert found.bytes_per_s(8_000_000, 128) == pytest.approx(law.bytes_per_s(8_000_000, 128))


def test_of_one_size_the_time_to_its_first_byte_parts_latency_from_stream() -> None:
    """As a run tells it that swept connections alone."""
    law = FetchLaw(0.05, 1 / 90e6, 0.0, 0.0, 0.0)
    points = [Fetched(10**6, n, law.bytes_per_s(10**6, n), 0.05) for n in (1, 2, 4)]
    found = fit_fetch(points)
    assert found.first_byte_s == pytest.approx(0.05)
    assert found.bytes_per_s(10**7, 1) == pytest.approx(law.bytes_per_s(10**7, 1))


seconds = st.floats(1e-4, 0.5)
streams = st.floats(1e6, 1e9)


@settings(deadline=None, max_examples=30)
@given(seconds, streams, seconds, streams)
def test_any_store_of_that_form_is_told_within_a_per_cent(
    first_s: float, stream: float, request_s: float, link: float
) -> None:
    """At the points that it was fitted to; which of two parts bounds them is found with them."""
    law = FetchLaw(first_s, 1 / stream, request_s / 10, 1 / link, 0.0)
    assert fit_fetch(sweep(law)).error < 0.01


@settings(deadline=None, max_examples=30)
@given(
    st.lists(st.tuples(st.sampled_from(SIZES), st.sampled_from(CONNECTIONS), streams), min_size=1)
)
def test_more_connections_never_bring_less(found: list[tuple[int, int, float]]) -> None:
    """Whatever was measured, however noisy."""
    law = fit_fetch([Fetched(*point) for point in found])
    for size in SIZES:
        got = [law.bytes_per_s(size, n) for n in CONNECTIONS]
        assert got == sorted(got)


@pytest.mark.parametrize("points", [[], [Fetched(0, 1, 1.0)], [Fetched(1, 1, 0.0)]])
def test_points_that_are_none_are_refused(points: list[Fetched]) -> None:
    """No points, no bytes, no rate."""
    with pytest.raises(ValueError, match="needs points"):
        fit_fetch(points)
