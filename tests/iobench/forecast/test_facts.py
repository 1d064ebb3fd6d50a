"""Means of data that are known between bounds."""

from __future__ import annotations

import pytest

from iobench.forecast import DataFacts, StoreFacts
from iobench.forecast.bounds import UNKNOWN, Bounds, exactly
from tests.iobench.forecast.made import data


def test_what_lies_there_has_exact_means() -> None:
    """Of a sample, and of a shard."""
    found = data(samples=1000, each=50_000, shards=4)
    assert found.sample_bytes == exactly(50_000)
    assert found.object_bytes == exactly(12_500_000)


def test_estimates_have_wide_ones() -> None:
    """The least over the most, and the other way round."""
    count, size = Bounds(10, 20), Bounds(1000, 4000)
    found = DataFacts(count, size, count, size, count)
    assert found.sample_bytes == Bounds(50, 400)
    nothing = DataFacts(UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN)
    assert nothing.sample_bytes == UNKNOWN


@pytest.mark.parametrize(("server", "amazon"), [("", True), ("http://127.0.0.1", False)])
def test_whose_store_it_is(server: str, amazon: bool) -> None:
    """One that names no other server is Amazon's."""
    assert StoreFacts(server=server).is_amazon == amazon
